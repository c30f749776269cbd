"""Reads: a log in both isolation levels beside Kafka's, a segment decoded with every checksum beside Kafka's iteration,
memory beside the Python clients' parsers, records to Arrow, fetches, searches, a live directory.

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
from numpy.typing import NDArray

from benchmarks.bench_codec import THREADS, measure_file, partition
from benchmarks.peers.kafka import WarmKafka
from benchmarks.peers.python_clients import PARSERS, parsed
from benchmarks.support.data import (
    BASE_TIMESTAMP_MS,
    BATCH_SIZE,
    KIB,
    MIB,
    SEGMENT,
    columns_of,
    scaled,
    segment_of,
    steps,
    values,
    write_segment,
)
from benchmarks.support.floors import Bytes, Int64Array, copying, library, mapped, reading, touching_file
from benchmarks.support.logs import INT64_MAX, NAME, opened, twin
from benchmarks.support.measure import Growth, Measured
from logstore.columns.arrow_batches import record_batch
from logstore.columns.batch_table import BatchTable, scan
from logstore.columns.record_building import build_batches
from logstore.columns.record_table import RecordTable
from logstore.columns.record_windows import record_windows
from logstore.layout.batch import HEADER_SIZE
from logstore.layout.offset_index import ENTRY_DTYPE as OFFSET_ENTRY_DTYPE
from logstore.layout.offset_index import OffsetIndex, parse_offset_index
from logstore.layout.time_index import ENTRY_DTYPE as TIME_ENTRY_DTYPE
from logstore.layout.time_index import TimeIndex, parse_time_index
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from logstore.view import record_reader
from logstore.view.follower import LogFollower
from logstore.view.partition_reader import PartitionReader

SIZE = scaled(256 * KIB, 64 * MIB)
TRANSACTION_COUNT = scaled(20, 2000)
PRODUCER_COUNT, BATCH_RECORD_COUNT = 5, 100
ISOLATIONS = [FetchIsolation.READ_UNCOMMITTED, FetchIsolation.READ_COMMITTED]
FETCH_SIZE = 1024 * 1024
BATCH_COUNT = 10_000
ARROW_COUNT = scaled(20_000, 500_000)
STEP = 2654435761  # between targets, as in `RecordBench.java`, so that one is far from the next
CALL_COUNT = 200
KAFKA_CALL_COUNT = 200_000
OFFSETS_AN_ENTRY = 40
MS_AN_ENTRY = 10
ENTRY_COUNTS = steps(100, 1000, 10_000, 100_000, 1_000_000)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PartitionReader:
    """Open a partition of one segment: uncompressed batches of 16 KiB, values of 100 bytes."""
    directory = tmp_path_factory.mktemp("bench") / "t-0"
    directory.mkdir()
    write_segment(directory / SEGMENT, SIZE)
    return PartitionReader(str(directory))


@pytest.fixture(scope="module")
def transactions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PartitionLog, Path]]:
    """Yield the log, and a copy of its directory for Kafka."""
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


def sums_of_log(log: PartitionLog, isolation: FetchIsolation) -> tuple[int, int]:
    """Return the sum of the visible offsets, and that of the lengths of their values."""
    offsets = lengths = 0
    for chunk in log.records(isolation=isolation).chunks():
        offsets += int(chunk.offset.sum())
        lengths += int(chunk.value_size.sum())
    return offsets, lengths


@pytest.mark.parametrize("thread_count", [1, 2], ids=THREADS)
@pytest.mark.parametrize("isolation", ISOLATIONS, ids=lambda isolation: isolation.name.lower())
def test_read_log(
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
        with kafka.holding(copy):
            return kafka.seconds(op="fetch", committed=is_committed, size=50 * MIB, expected_count=seen_count)

    seen_count = read_all()
    size = sum(path.stat().st_size for path in Path(log.state.directory.path).glob("*.log"))
    count = measured(
        read_all,
        title=f"read {size / MIB:.4g} MiB of transactions, {isolation.name.lower()}, {THREADS[thread_count - 1]}",
        size=size,
        count=seen_count,
        peers={"Kafka": kafkas},
        floor=mapped(Path(log.state.directory.path) / SEGMENT, thread_count),
        reads=[Path(log.state.directory.path) / SEGMENT, copy / SEGMENT],
        hashed=lambda count: (count, *sums_of_log(log, isolation)),
    )
    assert count == (written_count // 2 if is_committed else written_count)


@pytest.mark.parametrize("segment_count", steps(1, 30, 100, 300, 1000))
def test_fetch_among_segments(measured: Measured, tmp_path: Path, segment_count: int) -> None:
    """The cost must not grow with the number of segments."""
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


def test_fetch(measured: Measured, reader: PartitionReader) -> None:
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


def test_live_log_first_look(measured: Measured, reader: PartitionReader) -> None:
    path = Path(reader.path, SEGMENT)
    floor = touching_file(path, scan(np.fromfile(path, np.uint8)).position)
    size, bounds = path.stat().st_size, lambda found: found.bounds
    found = measured(PartitionReader, reader.path, size=size, floor=floor, reads=[path], hashed=bounds)
    assert found.bounds == reader.bounds


def test_live_log_nothing_new(measured: Measured, reader: PartitionReader) -> None:
    floor = library("`os.stat`", os.stat, Path(reader.path, SEGMENT))
    measured(reader.refresh, floor=floor, hashed=lambda _: reader.bounds)
    assert isinstance(reader._follower, LogFollower)
    assert reader.bounds.log_end_offset > 0


@pytest.fixture(scope="module")
def plain_segment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Write a segment; return its path and the number of its records."""
    path = partition(tmp_path_factory.mktemp("decode"))
    return path, write_segment(path, scaled(256 * KIB, 256 * MIB))


@pytest.mark.parametrize("threads", THREADS)
def test_decode_segment(measured: Measured, kafka: WarmKafka, plain_segment: tuple[Path, int], threads: str) -> None:
    title = f"decode with CRC, {threads}"
    assert measure_file(measured, kafka, plain_segment, threads, title) == plain_segment[1]


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB))
def test_decode_in_memory(measured: Measured, tmp_path: Path, size: int) -> None:
    """Decode without checksums, as the parsers do; they make a Python object of each record, we a table."""
    data = segment_of(tmp_path, size)
    content, table = data.tobytes(), scan(data)
    record_count = int(table.record_count.sum())

    few, value_length = size <= 4 * MIB, sum(int(each.value_size.sum()) for each in tables(data, table))
    found = measured(
        tables,
        *(data, table),
        title=f"decode {size / MIB:.4g} MiB in memory",
        size=data.size,
        count=record_count,
        peers={name: parsed(name, content, record_count, value_length) for name in PARSERS} if few else {},
        floor=reading(data),
        growth=Growth("bytes of a segment", "decode", size),
        hashed=lambda found: [each.matrix[:, : len(each)] for each in found],
    )
    assert sum(map(len, found)) == record_count


def tables(data: Bytes, table: BatchTable) -> list[RecordTable]:
    """Decode the records of all batches, without checksums."""
    windows = record_windows(data, table, np.arange(len(table)))
    return [window for window in windows if window.error is None]


@pytest.mark.parametrize("value_size", [8, 100])
@pytest.mark.parametrize("is_view", [False, True], ids=["binary", "views"])
@pytest.mark.parametrize("source", ["records", "bytes"])
def test_to_arrow(measured: Measured, source: str, is_view: bool, value_size: int) -> None:
    """Convert decoded records, or the bytes of batches as a reader has them."""
    pytest.importorskip("pyarrow")
    content = build_batches(columns_of(value_size, count=ARROW_COUNT, has_keys=True), batch_size=BATCH_SIZE)
    records = tables(content.data, content.table)

    def batches() -> list[Any]:
        decoded = records if source == "records" else tables(content.data, content.table)
        return [record_batch(each, is_view=is_view) for each in decoded]

    lent = [each.data for each in records] if source == "records" else [content.data]
    found = measured(
        batches,
        title=f"{ARROW_COUNT:,} {source} of {value_size} bytes to Arrow, values {'as views' if is_view else 'copied'}",
        count=ARROW_COUNT,
        size=ARROW_COUNT * value_size,
        floor=copying(made_size(batches(), lent)),
        hashed=contents,
    )
    assert sum(batch.num_rows for batch in found) == ARROW_COUNT


def made_size(batches: list[Any], datas: list[Bytes]) -> int:
    """Return the bytes of Arrow's buffers that are not those of the batches themselves: these must be copied."""
    lent = {data.ctypes.data for data in datas}
    buffers = [buffer for batch in batches for column in batch.columns for buffer in column.buffers() if buffer]
    return sum(buffer.size for buffer in buffers if buffer.address not in lent)


def contents(batches: list[Any]) -> list[Any]:
    """Return offsets, timestamps and values of all rows, the same for binary and for views."""
    return [
        (batch["offset"].to_numpy(), batch["timestamp"].cast("int64").to_numpy(), b"".join(batch["value"].to_pylist()))
        for batch in batches
    ]


def written_entries(path: Path, entries: NDArray[np.void]) -> bytes:
    """Write an index and return its bytes."""
    path.write_bytes(entries.tobytes())
    return entries.tobytes()


def measure_searches(
    measured: Measured, kafka: WarmKafka, index: OffsetIndex | TimeIndex, keys: Int64Array, first: int, step: int
) -> tuple[list[int], int]:
    """Look up targets between `first` and one step behind the last key; return them, and the sum of the answers."""
    kind = "offset" if isinstance(index, OffsetIndex) else "time"
    span = (keys.size + 1) * step
    order = {"op": f"search{kind.title()}s", "file": index.path, "first": first, "span": span}
    targets = [first + number * STEP % span for number in range(CALL_COUNT)]

    def search_all() -> int:
        return sum(index.lookup(target)[1] for target in targets)

    def kafkas() -> float:
        kafka.seconds(**order, count=CALL_COUNT, expected_count=answer)
        return kafka.seconds(**order, count=KAFKA_CALL_COUNT) / KAFKA_CALL_COUNT * CALL_COUNT

    answer = search_all()
    measured(
        search_all,
        title=f"{CALL_COUNT} searches among {keys.size:,} {kind}s",
        count=CALL_COUNT,
        unit="searches",
        peers={"Kafka": kafkas},
        floor=library("`np.searchsorted`, all at once", np.searchsorted, keys, np.array(targets)),
        growth=Growth("entries of an index", f"{CALL_COUNT} {kind} searches", keys.size),
    )
    return targets, answer


@pytest.mark.parametrize("entry_count", ENTRY_COUNTS)
def test_search_offset_index(measured: Measured, kafka: WarmKafka, tmp_path: Path, entry_count: int) -> None:
    path, entries = tmp_path / f"{0:020d}.index", np.zeros(entry_count, OFFSET_ENTRY_DTYPE)
    entries["relative_offset"] = np.arange(1, entry_count + 1) * OFFSETS_AN_ENTRY
    entries["position"] = np.arange(1, entry_count + 1) * 4096 % 2**31
    index = parse_offset_index(written_entries(path, entries), base_offset=0, path=str(path))
    targets, answer = measure_searches(measured, kafka, index, index.offsets, 0, OFFSETS_AN_ENTRY)
    assert answer == sum((target // OFFSETS_AN_ENTRY) * 4096 % 2**31 for target in targets)


@pytest.mark.parametrize("entry_count", ENTRY_COUNTS)
def test_search_time_index(measured: Measured, kafka: WarmKafka, tmp_path: Path, entry_count: int) -> None:
    path, entries = tmp_path / f"{0:020d}.timeindex", np.zeros(entry_count, TIME_ENTRY_DTYPE)
    entries["timestamp"] = BASE_TIMESTAMP_MS + np.arange(entry_count) * MS_AN_ENTRY
    entries["relative_offset"] = np.arange(entry_count) * OFFSETS_AN_ENTRY
    index = parse_time_index(written_entries(path, entries), base_offset=0, path=str(path))
    targets, answer = measure_searches(measured, kafka, index, index.timestamps, BASE_TIMESTAMP_MS, MS_AN_ENTRY)
    last = (entry_count - 1) * OFFSETS_AN_ENTRY
    slots = [(target - BASE_TIMESTAMP_MS) // MS_AN_ENTRY for target in targets]
    assert answer == sum(min(slot * OFFSETS_AN_ENTRY, last) for slot in slots)


def test_offsets_by_time(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    directory = tmp_path / "ours" / NAME
    directory.mkdir(parents=True)
    write_segment(directory / SEGMENT, scaled(256 * KIB, 64 * MIB))
    log = opened(directory, was_clean=False)
    last = log.offset_for_timestamp(-3)  # the record with the largest time
    assert last is not None
    span = last.timestamp - BASE_TIMESTAMP_MS + 1
    targets = [BASE_TIMESTAMP_MS + number * STEP % span for number in range(CALL_COUNT)]
    kafkas_directory = twin(directory)

    def ask_all() -> int:
        return sum(found.offset for found in map(log.offset_for_timestamp, targets) if found is not None)

    def kafkas() -> float:
        order = {"op": "times", "first": BASE_TIMESTAMP_MS, "span": span, "count": CALL_COUNT}
        with kafka.holding(kafkas_directory):
            return kafka.seconds(**order, expected_count=answer)

    answer = ask_all()
    title = f"{CALL_COUNT} offsets by time, of a log"
    times = scan(np.fromfile(directory / SEGMENT, np.uint8)).max_timestamp
    floor = library("`np.searchsorted` of batches, all at once", np.searchsorted, times, np.array(targets))
    asked = {"title": title, "count": CALL_COUNT, "unit": "questions"}
    reads = [directory / SEGMENT, kafkas_directory / SEGMENT]
    measured(ask_all, peers={"Kafka": kafkas}, floor=floor, reads=reads, **asked)
    assert answer > 0
    log.close()
