"""What an append that is refused, or fails half-way, leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.errors import (
    IndexFullError,
    InvalidTxnStateError,
    KafkaStorageError,
    LogstoreError,
    ReentrantCallError,
)
from logstore.folds import segment_indexes
from logstore.folds.producer_update import ProducerUpdate
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.log.partition_log import PartitionLog
from tests.support.encoder import SOME_TIME
from tests.support.logs import numbered_values, open_partition_log


class Clock:
    """Does something, once, when it is asked for the n-th time."""

    def __init__(self) -> None:
        self.inner: Callable[[], object] | None = None
        self.left_count = 0

    def __call__(self) -> int:
        self.left_count -= 1
        if self.inner is not None and self.left_count <= 0:
            inner, self.inner = self.inner, None
            inner()
        return SOME_TIME


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> Iterator[PartitionLog]:
    config = {"internal.segment.bytes": "1000"}
    log = open_partition_log(tmp_path / "t-0", config, now_ms=clock, requires_verification=False)
    log.append_records([b"first"])
    yield log
    log.close()


def producer(producer_id: int, sequence: int = 0) -> dict[str, Any]:
    return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}


def refusing(error: BaseException) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


def test_a_bind_that_fails_is_tried_again(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.state.invalidate()
    with monkeypatch.context() as patched:
        patched.setattr(SegmentIndexes, "reserve", refusing(MemoryError()))
        with pytest.raises(MemoryError):
            log.append_records([b"v"])
    assert log.append_records([b"w"]).first_offset == 1
    assert log.fast.struct.is_bound
    assert numbered_values(log) == [(0, b"first"), (1, b"w")]


def test_the_producer_of_a_refused_batch_is_as_before(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.roll()
    with monkeypatch.context() as patched:
        patched.setattr(segment_indexes, "step", refusing(IndexFullError("full")))
        log.update_config(log.config)
        log.fast.try_append = lambda _: None  # type: ignore[method-assign]
        with pytest.raises(IndexFullError):
            log.append_records([b"refused"], is_transactional=True, **producer(5))
        del log.fast.try_append
    assert log.append_records([b"v"]).first_offset == 1
    assert log.append_records([b"w"], **producer(6)).first_offset == 2
    assert [entry.producer_id for entry in log.producer_entries()] == [6]
    assert (log.first_unstable_offset, log.last_stable_offset) == (None, 3)
    assert log.append_records([b"x"], **producer(5)).first_offset == 3


def test_a_refusal_behind_the_write_ends_the_writing(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append_records([b"begun"], is_transactional=True, **producer(5))
    end: dict[str, Any] = {"is_commit": False, "coordinator_epoch": 0, "transaction_version": 1}
    with monkeypatch.context() as patched:
        patched.setattr(ProducerUpdate, "commit", refusing(InvalidTxnStateError("not open")))
        with pytest.raises(KafkaStorageError, match="Error while appending records to t-0") as failed:
            log.append_end_transaction(5, 0, **end)
    assert isinstance(failed.value.__cause__, InvalidTxnStateError)
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.append_records([b"v"])


def test_a_refusal_before_the_write_does_not_end_it(log: PartitionLog) -> None:
    with pytest.raises(LogstoreError):
        log.append_records([b"v"], **producer(5, -2))
    assert log.append_records([b"v"], **producer(5)).first_offset == 1


@pytest.mark.parametrize("call_number", range(6))
@pytest.mark.parametrize("inner", ["append", "roll", "close"])
def test_a_clock_that_changes_the_log_is_refused_or_harmless(
    inner: str, call_number: int, log: PartitionLog, clock: Clock
) -> None:
    def append_inside() -> None:
        log.append_records([b"inner"])

    log.append_records([bytes(900)])  # so that the next one rolls
    clock.inner = {"append": append_inside, "roll": log.roll, "close": log.close}[inner]
    clock.left_count = call_number
    told = None
    try:
        told = log.append_records([b"outer" * 20], **producer(5))
    except ReentrantCallError:
        told = None
    clock.inner = None
    if inner != "close":
        last = log.append_records([b"last"])
        assert last.first_offset == log.log_end_offset - 1
        records = numbered_values(log)
        assert [offset for offset, _ in records] == list(range(log.log_end_offset))
        assert [value for _, value in records].count(b"outer" * 20) == (told is not None)
    if told is not None and inner != "close":
        assert dict(records)[told.first_offset] == b"outer" * 20
