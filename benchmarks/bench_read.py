"""Reads: all records of a log in both isolation levels beside Kafka's, a fetch, an offset by time, a live directory.

Of the transactions in the log every other one was aborted; producers take turns, so that transactions lie over each
other. Kafka's side reads with `UnifiedLog.read` and leaves out what a consumer does.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.floors import checking, library, mapped, reading, touching_file
from benchmarks.logs import NAME, SEGMENT, opened, twin, values
from benchmarks.measured import Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import BASE_TIMESTAMP_MS, write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.columns.batch_table import BatchTable
from logstore.columns.batch_table import scan as scan_batches
from logstore.columns.in_order import in_order
from logstore.columns.record_table import RecordTable
from logstore.columns.record_windows import RecordWindow
from logstore.folds import committed_filter
from logstore.folds.committed_filter import CommittedFilter
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import HEADER_SIZE, TRANSACTIONAL_FLAG
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from logstore.view import records as record_reader
from logstore.view.follower import LogFollower
from logstore.view.partition_reader import PartitionReader
from logstore.view.read import INT_MAX
from logstore.view.window_decoder import WindowDecoder

SIZE = scaled(256 * KIB, 64 * MIB)
TRANSACTION_COUNT = scaled(20, 2000)
PRODUCER_COUNT, BATCH_RECORD_COUNT = 5, 100
FETCH_SIZE = 1024 * 1024
BATCH_COUNT = 10_000
THREADS = {1: "one thread", 2: "two threads"}
INT64_MAX = 2**63 - 1


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PartitionReader:
    """One segment of uncompressed batches of 16 KiB, values of 100 bytes."""
    directory = tmp_path_factory.mktemp("bench") / "t-0"
    directory.mkdir()
    write_segment(directory / SEGMENT, SIZE)
    return PartitionReader(str(directory))


@pytest.fixture(scope="module")
def transactions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PartitionLog, Path]]:
    """The log, and a copy of its directory for Kafka."""
    directory = tmp_path_factory.mktemp("transactions") / NAME
    log, batch = opened(directory), values(BATCH_RECORD_COUNT)
    for number in range(TRANSACTION_COUNT):
        for part in range(2):
            for producer_id in range(PRODUCER_COUNT):
                sequence = (2 * number + part) * BATCH_RECORD_COUNT
                producer = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
                log.append_records(batch, is_transactional=True, **producer)
        for producer_id in range(PRODUCER_COUNT):
            is_commit = (number + producer_id) % 2 == 0
            end = {"is_commit": is_commit, "coordinator_epoch": 0, "transaction_version": 1}
            log.append_end_transaction(producer_id, 0, **end)
    log.flush()
    yield log, twin(directory)
    log.close()


def sums_of(log: PartitionLog, isolation: FetchIsolation) -> tuple[int, int]:
    """Of the offsets that are seen, and of the lengths of values."""
    offsets = lengths = 0
    for chunk in log.records(isolation=isolation).chunks():
        offsets += int(chunk.records.offset.sum())
        lengths += int(chunk.records.value_size.sum())
    return offsets, lengths


@pytest.mark.parametrize("thread_count", [1, 2])
@pytest.mark.parametrize("isolation", [FetchIsolation.READ_UNCOMMITTED, FetchIsolation.READ_COMMITTED])
def test_read(
    measured: Measured,
    kafka: WarmKafka,
    transactions: tuple[PartitionLog, Path],
    isolation: FetchIsolation,
    thread_count: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, copy = transactions
    if thread_count == 1:  # decoded in turn, as what is small is
        monkeypatch.setattr(record_reader, "PARALLEL_SIZE_MIN", INT64_MAX)
    is_committed = isolation is FetchIsolation.READ_COMMITTED
    written_count = TRANSACTION_COUNT * PRODUCER_COUNT * 2 * BATCH_RECORD_COUNT

    def read_all() -> int:
        return sum(map(len, log.records(isolation=isolation).chunks()))

    def kafkas() -> float:
        kafka.measure(op="hold", dir=str(copy), clean=False)
        order = {"op": "fetch", "committed": is_committed, "size": 50 * MIB}
        seconds = kafka.seconds(**order, expected_count=seen_count)
        kafka.measure(op="release")
        return seconds

    seen_count = read_all()
    size = sum(path.stat().st_size for path in Path(log.directory.path).glob("*.log"))
    count = measured(
        read_all,
        title=f"read {size / MIB:.4g} MiB of transactions, {isolation.name.lower()}, {THREADS[thread_count]}",
        size=size,
        count=seen_count,
        peers={"Kafka": kafkas},
        floor=mapped(Path(log.directory.path) / SEGMENT, thread_count),
        reads=[Path(log.directory.path) / SEGMENT, copy / SEGMENT],
        hashed=lambda count: (count, *sums_of(log, isolation)),
    )
    assert count == (written_count // 2 if is_committed else written_count)


@pytest.mark.parametrize("segment_count", steps(1, 30, 100, 300, 1000))
def test_a_fetch_among_segments(measured: Measured, tmp_path: Path, segment_count: int) -> None:
    """What it costs must not grow with the segments that there are."""
    log, batch = opened(tmp_path / NAME), values(1)
    for _ in range(segment_count - 1):
        log.append_records(batch)
        log.roll()
    log.append_records(batch)
    title, growth = f"fetch among {segment_count:,} segments", Growth("segments", "fetch", segment_count)
    floor = library("`bisect` of their offsets", bisect_right, list(range(segment_count)), segment_count // 2)
    fetch = {"title": title, "count": 1, "unit": "fetches", "growth": growth, "floor": floor}
    found = measured(log.read, segment_count // 2, FETCH_SIZE, **fetch, hashed=lambda found: found.data[HEADER_SIZE:])
    assert found.start.message_offset == segment_count // 2
    log.close()


def test_a_fetch(measured: Measured, reader: PartitionReader) -> None:
    offset = reader.bounds.log_end_offset // 2
    fetched = measured(
        reader.read,
        offset,
        FETCH_SIZE,
        FetchIsolation.READ_COMMITTED,
        count=1,
        unit="fetches",
        floor="a look into an index: the bytes stay where they are",
        hashed=lambda found: found.data,
    )
    assert 0 < fetched.data.size <= FETCH_SIZE
    assert fetched.aborted_transactions == []


def test_an_offset_by_time(measured: Measured, reader: PartitionReader) -> None:
    time_ms, times = (
        BASE_TIMESTAMP_MS + 5,
        scan_batches(np.fromfile(Path(reader.path, SEGMENT), np.uint8)).max_timestamp,
    )
    floor = library("`np.searchsorted` of batches", np.searchsorted, times, time_ms)
    found = measured(reader.offset_for_timestamp, time_ms, count=1, unit="questions", floor=floor)
    assert found is not None
    assert found.timestamp == BASE_TIMESTAMP_MS + 5


@pytest.mark.parametrize("thread_count", [1, 2])
def test_all_records(measured: Measured, reader: PartitionReader, thread_count: int) -> None:
    fetched = reader.read(0, INT_MAX)

    def tables() -> Iterator[RecordTable]:
        decoder = WindowDecoder(fetched, 0, None, is_committed=False, check_crc=True)
        parts = decoder.decoded() if thread_count == 1 else in_order(decoder.next_window, decoder.decode)
        windows = (window for part in parts for window in part.windows)
        return (window.records for window in windows if isinstance(window, RecordWindow))

    def decode() -> int:
        return sum(map(len, tables()))

    count = reader.bounds.log_end_offset
    title = f"all records of {fetched.data.size / MIB:.4g} MiB that are fetched, {THREADS[thread_count]}"
    floor = checking(fetched.data, thread_count)
    lengths = sum(int(table.value_size.sum()) for table in tables())
    found = {"count": count, "floor": floor, "hashed": lambda found: (found, lengths)}
    reads = [Path(reader.path, SEGMENT)]
    assert measured(decode, title=title, size=fetched.data.size, reads=reads, **found) == count


@pytest.mark.parametrize("aborted_count", [0, 1, 1000])
def test_the_committed_filter(measured: Measured, aborted_count: int) -> None:
    matrix = np.zeros((scan.COLUMN_COUNT, BATCH_COUNT), np.int64)
    matrix[scan.BASE_OFFSET] = np.arange(BATCH_COUNT)
    matrix[scan.ATTRIBUTES] = TRANSACTIONAL_FLAG
    matrix[scan.PRODUCER_ID] = np.arange(BATCH_COUNT) % 2000
    table = BatchTable(matrix, BATCH_COUNT, scan.END, 0)
    aborted = [(producer_id, 0) for producer_id in range(aborted_count)]
    no_data = np.zeros(0, np.uint8)

    def filter_all() -> Any:
        return committed_filter.step(CommittedFilter(aborted), no_data, table, 0, BATCH_COUNT)

    floor = reading(matrix[[scan.ATTRIBUTES, scan.PRODUCER_ID] if aborted else [scan.ATTRIBUTES]])
    is_left_out = measured(filter_all, count=BATCH_COUNT, unit="batches", floor=floor)
    assert int(is_left_out.sum()) == BATCH_COUNT * aborted_count // 2000


def test_a_first_look(measured: Measured, reader: PartitionReader) -> None:
    path = Path(reader.path, SEGMENT)
    floor = touching_file(path, scan_batches(np.fromfile(path, np.uint8)).position)
    size, bounds = path.stat().st_size, lambda found: found.bounds
    found = measured(PartitionReader, reader.path, size=size, floor=floor, reads=[path], hashed=bounds)
    assert found.bounds == reader.bounds


def test_a_look_when_nothing_is_new(measured: Measured, reader: PartitionReader) -> None:
    floor = library("`os.stat`", os.stat, Path(reader.path, SEGMENT))
    measured(reader.refresh, floor=floor, hashed=lambda _: reader.bounds)
    assert isinstance(reader._follower, LogFollower)
    assert reader.bounds.log_end_offset > 0
