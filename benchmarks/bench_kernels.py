"""The hot loops alone: checksums beside Kafka's and the `crc32c` package, the walk over batches, folds, keys.

A step of a fold must cost what memory costs, not more, however many producers there are: compare
`test_fold_producers[1]` with the others.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.kafka import WarmKafka
from benchmarks.peers.python_clients import crc32c_package
from benchmarks.support.data import KIB, MIB, SEGMENT, scaled, segment_of, steps
from benchmarks.support.floors import Bytes, reading, touching
from benchmarks.support.measure import Growth, Measured, Side
from logstore.client.producer.queues import murmur2
from logstore.columns.batch_table import BatchTable, scan
from logstore.folds import producer_update
from logstore.folds.producer_state import ProducerState
from logstore.kernels.scan import batches as fields
from logstore.kernels.scan.crc32c import crc32c_range
from logstore.kernels.table.key_hashes import murmur2_keys

CRC_CALL_COUNT = 3  # of Kafka's in one order
BATCH_COUNT = 10_000
PRODUCER_COUNTS = steps(1, 1000, 1_000_000)
PRODUCER_COLUMNS = [
    fields.PRODUCER_ID,
    fields.PRODUCER_EPOCH,
    fields.BASE_SEQUENCE,
    fields.LAST_OFFSET_DELTA,
    fields.ATTRIBUTES,
]
KEY_COUNT, KEY_SIZE = scaled(10_000, 1_000_000), 16
NO_DATA: Bytes = np.zeros(1, np.uint8)  # the records of idempotent batches are not looked at


def table_of(batch_count: int, producer_count: int) -> BatchTable:
    """Return a table of idempotent batches of one record each, the producers in turn."""
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
    """Write a segment that is larger than the caches."""
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


def test_keys_partitioned(measured: Measured) -> None:
    data = np.frombuffer(b"".join(b"%016d" % number for number in range(KEY_COUNT)), np.uint8)
    starts, hashes = np.arange(KEY_COUNT) * KEY_SIZE, np.zeros(KEY_COUNT, np.int64)
    arguments = (data, starts, starts + KEY_SIZE, KEY_COUNT, hashes)
    counted = {"count": KEY_COUNT, "unit": "keys", "floor": reading(data)}
    assert measured(murmur2_keys, *arguments, **counted, hashed=lambda count: (count, hashes)) == KEY_COUNT
    assert hashes[-1] == murmur2(b"%016d" % (KEY_COUNT - 1))
