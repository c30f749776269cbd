"""The hot loops alone: checksums beside Kafka's and the `crc32c` package, the walk over batches, folds, keys, headers.

A step of a fold must cost what memory costs, not more, however many producers there are: compare
`test_fold_producers[1]` with the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.peers.kafka import WarmKafka
from benchmarks.peers.python_clients import crc32c_package
from benchmarks.support.data import KIB, MIB, SEGMENT, scaled, segment_of, steps
from benchmarks.support.floors import Bytes, copying, library, reading, touching
from benchmarks.support.measure import Growth, Measured, Side
from logstore.client.producer.queues import murmur2
from logstore.columns.batch_table import BatchTable, scan
from logstore.columns.header_columns import HeaderColumns
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.columns.record_table import BatchRecords
from logstore.folds import producer_update, segment_indexes
from logstore.folds.producer_state import ProducerState
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels.decode import records as decode
from logstore.kernels.scan import batches as fields
from logstore.kernels.scan.crc32c import crc32c_range
from logstore.kernels.table import offset_map
from logstore.kernels.table.key_hashes import hash_keys, murmur2_keys
from logstore.kernels.table.offset_map import find_offsets, put_offsets

CRC_CALL_COUNT = 3  # of Kafka's in one order
BATCH_COUNT, BATCH_SIZE = 10_000, 16 * 1024
PRODUCER_COUNTS = steps(1, 1000, 1_000_000)
PRODUCER_COLUMNS = [
    fields.PRODUCER_ID,
    fields.PRODUCER_EPOCH,
    fields.BASE_SEQUENCE,
    fields.LAST_OFFSET_DELTA,
    fields.ATTRIBUTES,
]
KEY_COUNT, KEY_SIZE = scaled(10_000, 1_000_000), 16
HEADED_COUNT = scaled(5_000, 125_000)
TIME_MS = 1_700_000_000_000
NO_DATA: Bytes = np.zeros(1, np.uint8)  # the records of idempotent batches are not looked at

Int64Array = npt.NDArray[np.int64]


def columns_of(value_size: int, *, count: int, has_keys: bool = False) -> RecordColumns:
    """The same bytes every time: values, and keys of 8 bytes, out of one buffer of noise."""
    noise = np.random.default_rng(20261121).integers(32, 127, count * value_size + 8, np.uint8)
    values = BytesColumn.of_offsets(noise, np.arange(count + 1) * value_size)
    keys = BytesColumn(noise, values.starts, values.starts + 8) if has_keys else None
    return RecordColumns(count, keys, values, TIME_MS + np.arange(count) // 100)


def table_of(batch_count: int, producer_count: int) -> BatchTable:
    """Idempotent batches of one record each, the producers in turn."""
    matrix = np.zeros((fields.COLUMN_COUNT, batch_count), np.int64)
    number = np.arange(batch_count)
    matrix[fields.POSITION], matrix[fields.SIZE] = number * 200, 200
    matrix[fields.BASE_OFFSET] = matrix[fields.MAX_TIMESTAMP] = number
    matrix[fields.MAGIC], matrix[fields.RECORD_COUNT] = 2, 1
    matrix[fields.PRODUCER_ID] = number * 7919 % producer_count
    matrix[fields.BASE_SEQUENCE] = number // producer_count
    return BatchTable(matrix, batch_count, fields.END, batch_count * 200)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of more than the caches hold."""
    directory = tmp_path_factory.mktemp("kernels")
    segment_of(directory, scaled(256 * KIB, 256 * MIB))
    return directory / SEGMENT


@pytest.fixture(scope="module")
def data(path: Path) -> Bytes:
    return np.fromfile(path, np.uint8)


def test_crc_of_memory(measured: Measured, kafka: WarmKafka, path: Path, data: Bytes) -> None:
    def kafkas() -> float:
        order = {"op": "crc", "file": str(path), "count": CRC_CALL_COUNT}
        return kafka.seconds(**order, call_count=CRC_CALL_COUNT, expected_count=crc)

    peers: dict[str, Side] = {"Kafka": kafkas, "crc32c": crc32c_package(data)}
    crc = crc32c_range(data, 0, data.size)
    found = measured(
        crc32c_range,
        *(data, 0, data.size),
        title=f"CRC of {data.size / MIB:.1f} MiB in memory",
        size=data.size,
        peers=peers,
        floor=reading(data),
    )
    assert found == crc


@pytest.mark.parametrize("size", steps(64, 1024, 16 * KIB, MIB))
def test_crc_by_size(measured: Measured, data: Bytes, size: int) -> None:
    part = data[: min(size, data.size)]
    growth = Growth("bytes of a batch", "CRC", part.size)
    title = f"CRC of {part.size:,} bytes"
    crc = measured(crc32c_range, part, 0, part.size, title=title, size=part.size, floor=reading(part), growth=growth)
    assert 0 <= crc < 1 << 32


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB))
@pytest.mark.parametrize("check_crc", [False, True], ids=["headers", "checksums"])
def test_scan(measured: Measured, tmp_path: Path, size: int, check_crc: bool) -> None:
    data = segment_of(tmp_path, size)
    series = "scan with checksums" if check_crc else "scan of headers"
    table = measured(
        lambda: scan(data, check_crc=check_crc),
        title=f"{series}, {size / MIB:.4g} MiB",
        size=data.size,
        floor=reading(data) if check_crc else touching(data, scan(data).position),
        growth=Growth("bytes of a segment", series, size),
        hashed=lambda table: table.matrix,
    )
    assert table.next_position == data.size
    assert not check_crc or bool((table.is_valid == 1).all())


def test_decode_records(measured: Measured, data: Bytes) -> None:
    table = scan(data[: 64 * KIB])
    records = BatchRecords(data, table, 0)
    start = records.state.copy()
    matrix = np.zeros((decode.COLUMN_COUNT, int(table.record_count[0])), np.int64)

    def decode_one() -> Int64Array:
        records.state[:] = start
        decode.decode_records(data, records.state, matrix, matrix.shape[1])
        return matrix

    size = int(table.size[0])
    measured(decode_one, title="decode a batch", size=size, count=matrix.shape[1], floor=reading(data[:size]))
    assert matrix[decode.OFFSET].tolist() == list(range(matrix.shape[1]))


def test_fold_indexes(measured: Measured) -> None:
    table = table_of(BATCH_COUNT, 1)

    def fold_all() -> SegmentIndexes:
        state = SegmentIndexes(0)
        segment_indexes.step(state, table, 0, len(table))
        return state

    floor = reading(table.matrix[[fields.SIZE, fields.MAX_TIMESTAMP]])
    counted: dict[str, Any] = {"count": BATCH_COUNT, "unit": "batches", "floor": floor}
    state = measured(fold_all, **counted, hashed=lambda state: state.offset_index_bytes())
    assert len(state.offset_entries) == (BATCH_COUNT - 1) // 21


@pytest.mark.parametrize("producer_count", PRODUCER_COUNTS)
def test_fold_producers(measured: Measured, producer_count: int) -> None:
    table = table_of(BATCH_COUNT, producer_count)
    state = ProducerState("bench-0")
    producer_update.step(state, NO_DATA, table_of(producer_count, producer_count), 0, producer_count)
    measured(
        producer_update.step,
        *(state, NO_DATA, table, 0, BATCH_COUNT),
        title=f"fold of batches of {producer_count:,} producers",
        count=BATCH_COUNT,
        unit="batches",
        floor=reading(table.matrix[PRODUCER_COLUMNS]),
        growth=Growth("producers", f"fold of {BATCH_COUNT:,} batches", producer_count),
        hashed=lambda _: state.to_snapshot_bytes(),
    )
    assert len(state) == producer_count
    assert state.map_end_offset == BATCH_COUNT


class Keys:
    """Keys one after the other, a record matrix over them, and a map with twice as many slots."""

    def __init__(self) -> None:
        self.data = np.frombuffer(b"".join(b"%016d" % number for number in range(KEY_COUNT)), np.uint8)
        self.records = np.zeros((decode.COLUMN_COUNT, KEY_COUNT), np.int64)
        self.records[decode.OFFSET] = np.arange(KEY_COUNT)
        self.records[decode.KEY_POSITION] = np.arange(KEY_COUNT) * KEY_SIZE
        self.records[decode.KEY_SIZE] = KEY_SIZE
        self.hashes = np.zeros((2, KEY_COUNT), np.int64)
        self.state = np.zeros(offset_map.STATE_COUNT, np.int64)
        self.state[offset_map.SLOT_COUNT] = 2 * KEY_COUNT
        self.state[offset_map.ENTRY_COUNT_MAX] = self.state[offset_map.MARK_COUNT] = KEY_COUNT
        self.table = np.zeros((2 * KEY_COUNT, offset_map.SLOT_WIDTH), np.int64)
        self.marks = np.zeros(KEY_COUNT, np.uint8)

    def hash_all(self) -> Int64Array:
        hash_keys(self.data, self.records, KEY_COUNT, KEY_COUNT, self.hashes)
        return self.hashes

    def put_all(self) -> int:
        self.state[offset_map.ENTRY_COUNT] = 0
        self.table[:], self.marks[:] = 0, 0
        return put_offsets(self.records, self.hashes, KEY_COUNT, 0, KEY_COUNT, self.state, self.table, self.marks)

    def find_all(self) -> Int64Array:
        found = np.zeros(KEY_COUNT, np.int64)
        find_offsets(self.records, self.hashes, KEY_COUNT, KEY_COUNT, self.state, self.table, found)
        return found


COUNTED_KEYS: dict[str, Any] = {"count": KEY_COUNT, "unit": "keys"}


def test_keys_hashed_by_cleaner(measured: Measured) -> None:
    keys = Keys()
    hashes = measured(keys.hash_all, **COUNTED_KEYS, floor=reading(keys.data))
    assert len(set(map(tuple, hashes.T[:1000].tolist()))) == min(KEY_COUNT, 1000)


def test_keys_put_into_offset_map(measured: Measured) -> None:
    keys = Keys()
    keys.hash_all()
    floor = library("cleared table", keys.table.copy().fill, 0)
    put = {"floor": floor, "hashed": lambda count: [count, keys.state, keys.table, keys.marks]}
    assert measured(keys.put_all, **COUNTED_KEYS, **put) == KEY_COUNT


def test_keys_found_in_offset_map(measured: Measured) -> None:
    keys = Keys()
    keys.hash_all()
    keys.put_all()
    found = measured(keys.find_all, **COUNTED_KEYS, floor=reading(keys.hashes))
    assert np.array_equal(found, keys.records[decode.OFFSET])


def test_keys_hashed_by_partitioner(measured: Measured) -> None:
    keys, hashes = Keys(), np.zeros(KEY_COUNT, np.int64)
    starts = keys.records[decode.KEY_POSITION].copy()
    arguments = (keys.data, starts, starts + KEY_SIZE, KEY_COUNT, hashes)
    floor, hashed = reading(keys.data), lambda count: (count, hashes)
    assert measured(murmur2_keys, *arguments, **COUNTED_KEYS, floor=floor, hashed=hashed) == KEY_COUNT
    assert hashes[-1] == murmur2(b"%016d" % (KEY_COUNT - 1))


def test_headers_encoded(measured: Measured) -> None:
    """Two a record, as tracing adds them."""
    rows = [[("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736"), ("retry", None)]] * HEADED_COUNT
    columns = HeaderColumns.of_lists(rows)
    size = columns.encoded().data.size
    encoded = measured(
        columns.encoded, size=size, count=HEADED_COUNT, floor=copying(size), hashed=lambda encoded: encoded.data
    )
    assert len(encoded.starts) == HEADED_COUNT
