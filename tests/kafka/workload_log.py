"""Workloads done by our log, answered as `java/Workloads.java` answers."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from logstore.columns.batch_table import scan
from logstore.columns.record_columns import PythonRecord, RecordColumns
from logstore.columns.record_table import BatchRecords
from logstore.errors import LogstoreError
from logstore.folds.producer_update import AppendOrigin
from logstore.layout.batch import TRANSACTIONAL_FLAG
from logstore.log.append.request import AppendInfo
from logstore.log.cleaner.choice import Cleanable
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.kafka.workloads import Step
from tests.recovery.comparison import UnsyncedSeam
from tests.support.judges import judged_config, told
from tests.support.logs import open_log
from tests.support.recovered_json import as_json

Answer = dict[str, Any]

BATCH_OVERHEAD = 12
FLUSHES_FEW = 2**62  # messages: with more the moment at which a closed segment is flushed makes no difference
LONG_MS = 10**15


class WorkloadLog:
    """The log of one workload, in the directory of that."""

    def __init__(self, work: dict[str, Any], directory: Path) -> None:
        self.work = work
        self.directory = directory
        self.now = work["now"]
        self.is_open = True
        self._cleaned: int | None = None
        self._later: list[Callable[[], None]] = []
        self.log = self._open(clean=True, log_start=0, recovery_point=0)

    def run(self) -> dict[str, Any]:
        """All steps, and the end; a log that does not open again ends its workload: its end is None."""
        answers = []
        for step in self.work["steps"]:
            answers.append(self._answer(step))
            if not self.is_open:
                return {"answers": answers, "end": None}
        end = described(self.log)
        if self.work["isClosedAfter"]:
            self.log.remove_deleted_files(self.now + LONG_MS)
            self.log.close()
        else:
            self.log.state.active.release()
        return {"answers": answers, "end": end}

    def _open(self, *, clean: bool, log_start: int, recovery_point: int) -> PartitionLog:
        config = judged_config(self.work["config"])
        return open_log(
            self.directory,
            LoadSettings(clean, recovery_point, log_start, self.now, config),
            seam=UnsyncedSeam(),
            now_ms=lambda: self.now,
            topic_id=self.work["topicId"],
            requires_verification=self.work["requiresVerification"],
            flush_later=self._later.append if config["flush.messages"] < FLUSHES_FEW else None,
        )

    def _answer(self, step: Step) -> Answer:
        try:
            answer = self._do(step)
        except LogstoreError as error:
            answer = {"error": self._named(told(error))}
            if not self.is_open:
                return answer
        self._run_later()
        return {**answer, "state": self._state()}

    def _run_later(self) -> None:
        while self._later:
            self._later.pop(0)()

    def _named(self, text: str) -> str:
        return text.replace(str(self.directory), "@DIR@").replace(str(self.directory.parent), "@PARENT@")

    def _do(self, step: Step) -> Answer:
        log = self.log
        match step["op"]:
            case "append" | "records" | "columns" | "marker" | "follow" as op:
                return _appended(getattr(self, f"_{op}")(step))
            case "verify":
                log.begin_verification(
                    step["producerId"],
                    sequence=step["sequence"],
                    producer_epoch=step["producerEpoch"],
                    supports_epoch_bump=step["supportsEpochBump"],
                )
            case "time":
                self.now += step["plus"]
            case "reopen":
                self._reopen(clean=step["clean"])
            case "roll" | "flush" as op:
                getattr(log, op)()
            case "retain":
                log.delete_old_segments(self.now)
            case "expire":
                log.drop_expired_producers()
            case "clean":
                return self._clean(step)
            case "restart":
                log.truncate_fully_and_start_at(self._offset(step))
            case "start":
                return {"result": log.increment_log_start_offset(self._offset(step))}
            case "configure":
                log.update_config(judged_config(step["config"]))
            case "find":
                found = log.offset_for_timestamp(step["timestamp"], FetchIsolation.READ_UNCOMMITTED)
                return {} if found is None else dict(zip(("timestamp", "offset", "epoch"), found, strict=True))
            case _:
                raise ValueError(step)
        return {}

    def _append(self, step: Step) -> AppendInfo:
        data = np.frombuffer(bytes.fromhex(step["batches"]), np.uint8)
        guard = None
        if step["begin"] is not None:
            first = scan(data).row(0)
            guard = self.log.begin_verification(
                first["producer_id"],
                sequence=first["base_sequence"],
                producer_epoch=first["producer_epoch"],
                supports_epoch_bump=step["begin"],
            )
        return self.log.append_as_leader(
            data,
            leader_epoch=step["epoch"],
            origin=AppendOrigin[step["origin"]],
            guard=guard,
            transaction_version=step["version"],
        )

    def _records(self, step: Step) -> AppendInfo:
        rows, fields = _taken_apart(step)
        keys, values, timestamps, headers = zip(*rows, strict=True)
        return self.log.append_records(values, keys, timestamps, headers, **fields)

    def _columns(self, step: Step) -> AppendInfo:
        rows, fields = _taken_apart(step)
        return self.log.append_columns(RecordColumns.from_records(rows), **fields)

    def _marker(self, step: Step) -> AppendInfo:
        return self.log.append_end_transaction(
            step["producerId"],
            step["producerEpoch"],
            is_commit=step["isCommit"],
            coordinator_epoch=step["coordinatorEpoch"],
            transaction_version=step["version"],
            leader_epoch=step["epoch"],
        )

    def _follow(self, step: Step) -> AppendInfo:
        data = bytearray.fromhex(step["batches"])
        at = 0
        while at + BATCH_OVERHEAD <= len(data):
            offset, size = struct.unpack_from(">qi", data, at)
            struct.pack_into(">q", data, at, offset + self.log.log_end_offset)
            at += BATCH_OVERHEAD + size
        return self.log.append_as_leader(data, leader_epoch=step["epoch"], origin=AppendOrigin.REPLICATION)

    def _clean(self, step: Step) -> Answer:
        chosen = self.log.cleanable(self._cleaned, self.now)
        answer = chosen_as_json(chosen)
        self._cleaned = chosen.first_dirty_offset
        if chosen.cleanable_size:
            answer["end"] = self._cleaned = self.log.clean(chosen, self.now, buffer_size=step["dedupe"])
        return answer

    def _reopen(self, *, clean: bool) -> None:
        old = self.log
        old.remove_deleted_files(self.now + LONG_MS)
        if clean:
            old.close()
        else:
            old.state.active.release()
        self.is_open = False
        self.log = self._open(
            clean=clean,
            log_start=old.log_start_offset,
            recovery_point=old.recovery_point,
        )
        self.is_open = True

    def _offset(self, step: Step) -> int:
        log = self.log
        places = {"end": log.log_end_offset, "highWatermark": log.high_watermark, "start": log.log_start_offset}
        return places.get(step["from"], 0) + step["plus"]

    def _state(self) -> Answer:
        log = self.log
        return {
            "logStartOffset": log.log_start_offset,
            "logEndOffset": log.log_end_offset,
            "highWatermark": log.high_watermark,
            "lastStableOffset": log.last_stable_offset,
            "recoveryPoint": log.recovery_point,
            "segments": len(log.state.segments),
            "producers": len(log.state.producers.state),
        }


def described(log: PartitionLog) -> Answer:
    """What the log knows, in the words of LogCheck."""
    answer: Answer = json.loads(json.dumps(as_json(log.state)))
    return answer


def chosen_as_json(chosen: Cleanable) -> Answer:
    """What of a log may be cleaned, in the words of Cleans.java."""
    return {
        "firstDirty": chosen.first_dirty_offset,
        "firstUncleanable": chosen.first_uncleanable_offset,
        "cleanBytes": chosen.clean_size,
        "cleanableBytes": chosen.cleanable_size,
        "delay": chosen.compaction_delay_ms,
        "isCheckpointWrong": chosen.is_checkpoint_wrong,
        "isWorthIt": chosen.is_worth_it,
    }


def _taken_apart(step: Step) -> tuple[list[PythonRecord], dict[str, Any]]:
    """The records of the one batch, and the other arguments of an append of it."""
    data = np.frombuffer(bytes.fromhex(step["batches"]), np.uint8)
    table = scan(data)
    (records,) = BatchRecords(data, table, 0).chunks()
    batch = table.row(0)
    fields = {
        "producer_id": batch["producer_id"],
        "producer_epoch": batch["producer_epoch"],
        "base_sequence": batch["base_sequence"],
        "is_transactional": bool(batch["attributes"] & TRANSACTIONAL_FLAG),
        "leader_epoch": step["epoch"],
    }
    times = records.timestamp.tolist()
    rows: list[PythonRecord] = [
        (records.key(row), records.value(row), times[row], records.headers(row)) for row in range(len(records))
    ]
    return rows, fields


def _appended(info: AppendInfo) -> Answer:
    return {
        "first": info.first_offset,
        "last": info.last_offset,
        "maxTimestamp": info.max_timestamp,
        "logAppendTime": info.log_append_time,
        "logStart": info.log_start_offset,
    }
