"""Appends to Kafka's own log, batch by batch, against the folds: answers, refusals and every file beside the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from logstore.errors import LogstoreError
from logstore.folds import aborted_transactions, leader_epochs, producer_update, segment_indexes
from logstore.folds.aborted_transactions import AbortedTransactions
from logstore.folds.leader_epochs import LeaderEpochs
from logstore.folds.producer_state import ProducerState
from logstore.folds.producer_update import AppendOrigin, ProducerUpdate
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.layout.producer_snapshot import parse_producer_snapshot
from tests.kafka.judge import Asked
from tests.properties.fold_stories import marker, scanned, stories
from tests.support.dice import Dice
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec
from tests.support.judges import told
from tests.support.oracle import Oracle
from tests.support.sampling import case_count
from tests.support.snapshots import comparable, sorted_snapshot

pytestmark = pytest.mark.kafka

STORY_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=25, whole=75)
INTERVAL = 200
NOW = 1000


@dataclass(frozen=True)
class Step:
    """One append; `begin`: None, or whether the producer whose verification begins is one of version 2."""

    batch: Batch
    origin: AppendOrigin
    version: int
    begin: bool | None

    def to_json(self) -> dict[str, Any]:
        data = replace(self.batch, base_offset=0).to_bytes().hex()
        return {"origin": self.origin.name, "version": self.version, "begin": self.begin, "batch": data}


@dataclass(frozen=True)
class Workload:
    steps: list[Step]
    verify: bool

    def to_json(self) -> str:
        steps = [step.to_json() for step in self.steps]
        return json.dumps({"interval": INTERVAL, "verify": self.verify, "steps": steps}) + "\n"


def step_of(batch: Batch, dice: Dice) -> Step:
    """A batch of a story as a client or a coordinator sends it: its timestamps are those of its records."""
    time = batch.max_timestamp
    is_control = bool(batch.flags & CONTROL)
    records = [replace(record, timestamp_delta=0) for record in batch.records]
    sent = replace(batch, records=records, base_timestamp=time, max_timestamp=time, codec=0)
    origin = AppendOrigin.COORDINATOR if is_control or dice.chance(10) else AppendOrigin.CLIENT
    begin = dice.choose((None, None, False, True)) if batch.flags & TRANSACTIONAL and not is_control else None
    return Step(sent, origin, dice.choose((0, 1, 2)) if is_control else -1, begin)


def collected(count: int) -> list[list[Batch]]:
    """Stories, the same every time."""
    found: list[list[Batch]] = []

    @settings(max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(stories(size_max=60) | stories(size_max=60, is_honest=True))
    def collect(batches: list[Batch]) -> None:
        found.append(batches)

    collect()
    return found


def workloads(count: int) -> Iterator[Workload]:
    """Stories whose batches are sent, some of them twice."""
    for number, batches in enumerate(collected(count)):
        dice = Dice(f"appends {number}")
        sent = [b for batch in batches if batch.records for b in [batch] * dice.choose((1, 1, 1, 2))]
        sent = [replace(batch, base_sequence=-1 if batch.flags & CONTROL else batch.base_sequence) for batch in sent]
        yield Workload([step_of(batch, dice) for batch in sent], verify=dice.chance(40))


class Folded:
    """One segment, appended to through the folds."""

    def __init__(self, workload: Workload) -> None:
        self.end_offset = self.size = 0
        self.state = ProducerState("t-0", requires_verification=workload.verify)
        self.indexes = SegmentIndexes(0, index_interval_bytes=INTERVAL, index_size_max=65536)
        self.aborted, self.epochs = AbortedTransactions(), LeaderEpochs()

    def append(self, step: Step) -> dict[str, Any]:
        try:
            answer = self._append(step)
        except LogstoreError as error:
            answer = {"error": told(error)}
        answer["unstable"] = self.state.transactions.first_unstable_offset
        return answer

    def _append(self, step: Step) -> dict[str, Any]:
        batch = replace(step.batch, base_offset=self.end_offset)
        guard = None
        if step.begin is not None:
            guard = self.state.begin_verification(
                batch.producer_id,
                sequence=batch.base_sequence,
                producer_epoch=batch.producer_epoch,
                supports_epoch_bump=step.begin,
                now_ms=NOW,
            )
        data, table = scanned([batch])
        leader_epochs.step(self.epochs, table, 0, 1)
        update = ProducerUpdate(self.state, step.origin, transaction_version=step.version, guard=guard)
        duplicate = update.step(data, table, 0, 1)
        if duplicate is not None:
            return {"first": duplicate.first_offset, "last": duplicate.last_offset, "time": duplicate.timestamp}
        table.position[0] = self.size
        segment_indexes.step(self.indexes, table, 0, 1)
        self.size += data.size
        last_offset = int(table.last_offset[0])
        aborted_transactions.step(self.aborted, update.commit(last_offset + 1))
        self.end_offset = last_offset + 1
        return {"first": batch.base_offset, "last": last_offset, "time": -1}

    def files(self) -> dict[str, bytes]:
        """Those of a closed log, without the log."""
        self.indexes.finish()
        files = {
            "index": self.indexes.offset_index_bytes(),
            "timeindex": self.indexes.time_index_bytes(),
            "txnindex": self.aborted.to_bytes(),
            "snapshot": self.state.to_snapshot_bytes() if self.end_offset else b"",
        }
        lines = "".join(f"{epoch} {start}\n" for epoch, start in self.epochs.entries)
        files["leader-epoch-checkpoint"] = f"0\n{len(self.epochs.entries)}\n{lines}".encode() if lines else b""
        return files


def test_appends_are_answered_and_kept_as_by_the_real_log(oracle: Oracle, tmp_path: Path) -> None:
    asked = [*workloads(STORY_COUNT), of_many_producers(), fenced()]
    real = oracle.lines("Appends", cwd=tmp_path, text="".join(workload.to_json() for workload in asked))
    kinds = set()
    for workload, line in zip(asked, real, strict=True):
        expected = json.loads(line)
        folded = Folded(workload)
        for step, answer in zip(workload.steps, expected["answers"], strict=True):
            is_repeated = "first" in answer and answer["first"] < folded.end_offset
            assert folded.append(step) == answer, step
            kinds.add(answer.get("error", "duplicate: " if is_repeated else "append: ").partition(": ")[0])
        files = {suffix: bytes.fromhex(content) for suffix, content in expected["files"].items()}
        files["snapshot"] = sorted_snapshot(files.get("snapshot", b""))
        for suffix, content in folded.files().items():
            assert content == files.get(suffix, b""), suffix
    assert {kind.rpartition(".")[2] for kind in kinds} == {
        "append",
        "duplicate",
        "OutOfOrderSequenceException",
        "InvalidProducerEpochException",
        "InvalidTxnStateException",
        "TransactionCoordinatorFencedException",
    }


@pytest.mark.slow
def test_recovered_and_rebuilt_logs_have_the_real_files_beside_them(
    asked: Callable[..., Asked], tmp_path: Path
) -> None:
    """Two segments, of whatever a replica may hold: recovered from nothing but their bytes, then opened again without
    the last snapshot, which is rebuilt from the one before."""
    logs = [
        laid_out(tmp_path / str(number) / "t-0", number, story) for number, story in enumerate(collected(STORY_COUNT))
    ]
    refused_count = rebuilt_count = 0
    for log, answer in zip(logs, opened(asked("LogCheck"), logs, clean=False), strict=True):
        expected, refusal = recovered_files(log.segments)
        assert answer.get("error") == refusal
        refused_count += refusal is not None
        assert {name: log.read(name) for name in expected} == expected
        log.snapshots = sorted(name for name in expected if name.endswith(".snapshot"))
    assert 0 < refused_count < len(logs)
    again = [log for log in logs if len(log.snapshots) == 2]
    for log in again:
        (log.directory / log.snapshots[-1]).unlink()
    for log, answer in zip(again, opened(asked("LogCheck"), again, clean=True), strict=True):
        assert "error" not in answer
        assert log.read(log.snapshots[-1]) == rebuilt_snapshot(log), log.directory
        rebuilt_count += 1
    assert rebuilt_count > 10


@dataclass
class Log:
    """A partition's directory, and the batches of its segments by base offset."""

    directory: Path
    segments: list[tuple[int, list[Batch]]]
    snapshots: list[str] = field(default_factory=list)

    def read(self, name: str) -> bytes:
        path = self.directory / name
        return comparable(path) if path.exists() else b""


def laid_out(directory: Path, number: int, batches: list[Batch]) -> Log:
    """The story cut in two somewhere, each part a `.log`."""
    cut = Dice(f"cut {number}").between(0, len(batches))
    segments = based([part for part in (batches[:cut], batches[cut:]) if part])
    directory.mkdir(parents=True)
    for base_offset, part in segments:
        (directory / f"{base_offset:020d}.log").write_bytes(b"".join(batch.to_bytes() for batch in part))
    return Log(directory, segments)


def opened(check: Asked, logs: list[Log], *, clean: bool) -> list[dict[str, Any]]:
    """What the real log says when it opens the directories, and closes them again."""
    answers = []
    for log in logs:
        config = {"index.interval.bytes": str(INTERVAL), "segment.index.bytes": "65536"}
        question = {"directory": str(log.directory), "clean": clean, "logStart": 0, "recoveryPoint": 0, "now": NOW}
        answers.append(json.loads(check.answer(json.dumps({**question, "config": config}) + "\n")))
    return answers


def rebuilt_snapshot(log: Log) -> bytes:
    """The state at the end, from that at the second segment's base and all of its batches at once."""
    base_offset, part = log.segments[1]
    state = ProducerState("t-0")
    state.load(parse_producer_snapshot(log.read(log.snapshots[0])), base_offset, NOW)
    data, table = scanned(part)
    update = ProducerUpdate(state, AppendOrigin.REPLICATION)
    assert update.step(data, table, 0, len(table)) is None
    update.commit()
    return state.to_snapshot_bytes()


def based(segments: list[list[Batch]]) -> list[tuple[int, list[Batch]]]:
    """Each with its base offset, where the one before ends."""
    ends = [part[-1].base_offset + part[-1].last_offset_delta + 1 for part in segments]
    return list(zip([segments[0][0].base_offset, *ends], segments, strict=False))


def recovered_files(segments: list[tuple[int, list[Batch]]]) -> tuple[dict[str, bytes], str | None]:
    """Name to bytes of indexes and snapshots, or what Kafka dies of.

    Each segment begins with what the snapshot at its base has kept.
    """
    files: dict[str, bytes] = {}
    state = ProducerState("t-0")
    for base_offset, part in segments:
        if files:
            snapshot = parse_producer_snapshot(state.to_snapshot_bytes())
            state.load(snapshot, base_offset, NOW)
        data, table = scanned(part)
        indexes, aborted = SegmentIndexes(base_offset, index_interval_bytes=INTERVAL), AbortedTransactions()
        segment_indexes.step(indexes, table, 0, len(table))
        try:
            aborted_transactions.step(aborted, producer_update.step(state, data, table, 0, len(table)))
        except LogstoreError as error:
            return {}, told(error)
        indexes.finish()
        files[f"{base_offset:020d}.index"] = indexes.offset_index_bytes()
        files[f"{base_offset:020d}.timeindex"] = indexes.time_index_bytes()
        files[f"{base_offset:020d}.txnindex"] = aborted.to_bytes()
        files[f"{state.map_end_offset:020d}.snapshot"] = state.to_snapshot_bytes()
    return files, None


def of_many_producers() -> Workload:
    """Producers whose ids come from several blocks of a coordinator, in no order."""
    dice = Dice("many producers")
    ids = list(dict.fromkeys(1000 * dice.below(60) + dice.below(8) for _ in range(300)))
    batches = [Batch(0, [Rec()], max_timestamp=5, producer_id=pid, producer_epoch=0, base_sequence=0) for pid in ids]
    return Workload([step_of(batch, Dice("")) for batch in batches], verify=False)


def fenced() -> Workload:
    """One transactional producer, its coordinators, and those that they have replaced."""

    same = {"producer_id": 7, "base_timestamp": 9, "max_timestamp": 9}

    def data(epoch: int, sequence: int, flags: int = TRANSACTIONAL) -> Step:
        batch = Batch(0, [Rec()], flags=flags, base_sequence=sequence, producer_epoch=epoch, **same)
        return Step(batch, AppendOrigin.CLIENT, -1, None)

    def end(epoch: int, coordinator_epoch: int, version: int) -> Step:
        batch = marker(0, is_abort=True, coordinator_epoch=coordinator_epoch, producer_epoch=epoch, **same)
        return Step(batch, AppendOrigin.COORDINATOR, version, None)

    steps = [data(0, 0), end(0, 5, 0), data(0, 1), end(0, 4, 0), end(0, 5, 2), end(1, 5, 2), end(1, 5, 2)]
    steps += [data(0, 2), data(1, 5), data(1, 0), data(1, 1, flags=0), end(0, 5, 1), end(1, 6, 1)]
    steps += [data(32767, 0), end(32767, 6, 2), end(32767, 6, 2), end(32766, 6, 2), end(32766, 7, 0), data(32767, 0)]
    return Workload(steps, verify=False)
