"""A KeyboardInterrupt at any line of an append loses an answer at most: the log says what its file does."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.disk.seam import Seam
from logstore.errors import InvalidTxnStateError
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec
from tests.support.encoder import SOME_TIME
from tests.support.interrupts import interrupted_at
from tests.support.logs import numbered_values, open_partition_log
from tests.support.sampling import IS_LONG
from tests.support.seams import OtherSystem, UnsyncedSeam, WritingSeam


class LazySystem(OtherSystem):
    """A system whose write takes half."""

    def system_write(self, descriptor: int, data: bytes) -> int:
        return os.write(descriptor, data[: len(data) // 2])


def producer(number: int, *, is_transactional: bool = False) -> dict[str, Any]:
    return {
        "producer_id": 7,
        "producer_epoch": 0,
        "base_sequence": number,
        "is_transactional": is_transactional,
    }


def verified(log: PartitionLog, value: bytes, number: int) -> object:
    guard = log.begin_verification(7, sequence=number, producer_epoch=0, supports_epoch_bump=False)
    return log.append_records([value], guard=guard, **producer(number, is_transactional=True))


def a_batch(log: PartitionLog, value: bytes, number: int, codec: Codec = Codec.NONE) -> object:
    columns = RecordColumns.from_records([(None, value, SOME_TIME, ())])
    return log.append_as_leader(build_batch(columns, codec=codec))


def columns(log: PartitionLog, value: bytes, number: int) -> object:
    return log.append_columns(RecordColumns(1, None, BytesColumn.of_values([value])))


APPENDS: dict[str, Callable[[PartitionLog, bytes, int], Any]] = {
    "records": lambda log, value, number: log.append_records([value]),
    "keys": lambda log, value, number: log.append_records([value], [b"k"], [SOME_TIME]),
    "idempotent": lambda log, value, number: log.append_records([value], **producer(number)),
    "verified": verified,
    "batch": a_batch,
    "compressed": lambda log, value, number: a_batch(log, value, number, Codec.LZ4),
    "columns": columns,
}
CASES = [
    *[(kind, "bound", UnsyncedSeam) for kind in APPENDS],
    *[(kind, "new config", UnsyncedSeam) for kind in ("records", "verified")],
    ("idempotent", "roll", UnsyncedSeam),
    ("idempotent", "bound", LazySystem),
    ("columns", "bound", LazySystem),
    ("idempotent", "bound", WritingSeam),
]


def opened(path: Path, *, was_clean: bool = True, seam: Seam | None = None) -> PartitionLog:
    return open_partition_log(path, {"index.interval.bytes": "0"}, was_clean=was_clean, seam=seam)


@pytest.mark.parametrize(("kind", "state", "seam"), CASES)
def test_an_append_may_be_interrupted_at_any_line(kind: str, state: str, seam: type[Seam], tmp_path: Path) -> None:
    append, line_count, was_interrupted = APPENDS[kind], 0, True
    step = 1 if IS_LONG and state == "bound" and seam is UnsyncedSeam else 3
    while was_interrupted:
        path = tmp_path / f"{line_count}" / "t-0"
        path.parent.mkdir()
        log = opened(path, seam=seam())
        told = {append(log, b"a%d" % number, number).first_offset: b"a%d" % number for number in range(3)}
        if state == "new config":
            log.update_config(log.config)
        elif state == "roll":
            log.roll()
        was_interrupted = interrupted_at(line_count, partial(append, log, b"interrupted", 3))
        assert log.state.struct.log_end_offset in (3, 4)
        assert append(log, b"interrupted", 3).last_offset in (3, 4)
        for number in range(4, 7):
            told[append(log, b"b%d" % number, number).first_offset] = b"b%d" % number
        assert log.high_watermark == log.log_end_offset
        assert told.items() <= dict(numbered_values(log)).items(), line_count
        log.close()
        log = opened(path)
        records = numbered_values(log)
        assert [offset for offset, _ in records] == list(range(log.log_end_offset)), line_count
        assert told.items() <= dict(records).items(), line_count
        assert [value for _, value in records].count(b"interrupted") <= (1 if kind in ("idempotent", "verified") else 2)
        log.close()
        line_count += step
    assert line_count > 10


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_may_be_interrupted_at_any_line(is_commit: bool, tmp_path: Path) -> None:
    end = {"is_commit": is_commit, "coordinator_epoch": 0, "transaction_version": 1}
    line_count, was_interrupted = 0, True
    while was_interrupted:
        path = tmp_path / f"{line_count}" / "t-0"
        path.parent.mkdir()
        log = opened(path)
        for number in range(2):
            verified(log, b"v", number)
            log.append_end_transaction(7, 0, **end)
        verified(log, b"v", 2)
        was_interrupted = interrupted_at(line_count, partial(log.append_end_transaction, 7, 0, **end))
        is_ended = log.view().bounds.log_end_offset == 6
        assert (log.first_unstable_offset is None) == is_ended
        assert log.last_stable_offset == (6 if is_ended else 4)
        log.append_end_transaction(7, 0, **end)
        assert verified(log, b"v", 3).first_offset == log.last_stable_offset  # type: ignore[attr-defined]
        log.append_end_transaction(7, 0, **end)
        assert log.last_stable_offset == log.log_end_offset
        log.close()
        log = opened(path)
        assert log.state.active.transaction_index.entry_count == (0 if is_commit else 4)
        assert log.first_unstable_offset is None
        log.close()
        line_count += 1 if is_commit else 4
    assert line_count > 10


def test_a_guard_that_an_interrupt_left_unused_is_used_up(tmp_path: Path) -> None:
    """The kernel has appended the batch, and its producer's verification is still there."""
    log = opened(tmp_path / "t-0")
    log.append_records([b"first"])
    guard = log.begin_verification(7, sequence=0, producer_epoch=0, supports_epoch_bump=False)
    log.append_records([b"v"], guard=guard, **producer(0, is_transactional=True))
    question = {"sequence": 0, "epoch": 0, "supports_epoch_bump": False, "now_ms": SOME_TIME, "end_offset": 1}
    left = log.state.producers.state.verification.begin(7, **question)
    assert log.append_records([b"w"], **producer(1, is_transactional=True)).first_offset == 2
    assert len(log.state.producers.state.verification) == 0
    log.append_end_transaction(7, 0, is_commit=True, coordinator_epoch=0, transaction_version=1)
    with pytest.raises(InvalidTxnStateError):
        log.append_records([b"x"], guard=left, **producer(2, is_transactional=True))
    log.close()


USES: list[Callable[[PartitionLog], object]] = [PartitionLog.roll, PartitionLog.flush, PartitionLog.view]


@pytest.mark.parametrize("use", USES)
def test_bytes_that_nobody_counted_are_cut_by_the_next_use(
    tmp_path: Path, use: Callable[[PartitionLog], object]
) -> None:
    """As an interrupt leaves them behind a write that took a part, before anything can be done about it."""
    log = opened(tmp_path / "t-0")
    log.append_records([b"first"])
    os.write(log.state.active.descriptor, np.zeros(10, np.uint8).tobytes())
    log.state.struct.unfinished_size = 70
    assert log.is_writable
    use(log)
    assert log.append_records([b"second"]).first_offset == 1
    log.close()
    log = opened(tmp_path / "t-0")
    assert numbered_values(log) == [(0, b"first"), (1, b"second")]
    log.close()
