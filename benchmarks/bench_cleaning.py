"""A log cleaned by key beside the real Cleaner, and the kernels of it.

Both have a map with room for all keys, and one thread; what they leave is compared byte for byte. What a key costs must
not grow with their number by more than memory does.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.cleaning import NOW_MS, buffer_size, is_same, kafkas_clean, opened, write_log
from benchmarks.floors import copying, reading, writing
from benchmarks.measured import Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_segment
from benchmarks.sizes import MIB, scaled
from logstore.columns.batch_table import scan
from logstore.kernels import decode, offset_map
from logstore.kernels.decode_batches import decode_batches
from logstore.kernels.hash_keys import hash_keys
from logstore.kernels.offset_map import find_offsets, put_offsets

KEY_COUNT = scaled(10_000, 1_000_000)
RECORD_COUNT, CLEANED_KEY_COUNT = scaled(4000, 1_000_000), scaled(2000, 500_000)
KEY_SIZE = 16

Int64Array = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def keys() -> tuple[Bytes, Int64Array]:
    """Keys one after the other, and a record matrix over them."""
    data = np.frombuffer(b"".join(b"%016d" % number for number in range(KEY_COUNT)), np.uint8)
    records = np.zeros((decode.COLUMN_COUNT, KEY_COUNT), np.int64)
    records[decode.OFFSET] = np.arange(KEY_COUNT)
    records[decode.KEY_POSITION] = np.arange(KEY_COUNT) * KEY_SIZE
    records[decode.KEY_SIZE] = KEY_SIZE
    return data, records


def empty_map() -> tuple[Int64Array, Int64Array, Bytes]:
    """State, table with twice as many slots as there are keys, and marks."""
    state = np.zeros(offset_map.STATE_COUNT, np.int64)
    state[offset_map.SLOT_COUNT] = 2 * KEY_COUNT
    state[offset_map.ENTRY_COUNT_MAX] = KEY_COUNT
    state[offset_map.MARK_COUNT] = KEY_COUNT
    return state, np.zeros((2 * KEY_COUNT, offset_map.SLOT_WIDTH), np.int64), np.zeros(KEY_COUNT, np.uint8)


def hashes_of(keys: tuple[Bytes, Int64Array]) -> Int64Array:
    hashes = np.zeros((2, KEY_COUNT), np.int64)
    assert hash_keys(*keys, KEY_COUNT, KEY_COUNT, hashes) == KEY_COUNT
    return hashes


def test_hash_keys(keys: tuple[Bytes, Int64Array], measured: Measured) -> None:
    assert hash_keys.name in measured.benchmark.name
    hashes = measured(hashes_of, keys, count=KEY_COUNT, unit="keys", floor=reading(keys[0]))
    assert len(set(map(tuple, hashes.T[:1000].tolist()))) == min(KEY_COUNT, 1000)


def test_put_offsets(keys: tuple[Bytes, Int64Array], measured: Measured) -> None:
    records, hashes = keys[1], hashes_of(keys)
    state, table, marks = empty_map()

    def put_all() -> int:
        state[offset_map.ENTRY_COUNT] = 0
        table[:], marks[:] = 0, 0
        return put_offsets(records, hashes, KEY_COUNT, 0, KEY_COUNT, state, table, marks)

    assert measured(put_all, count=KEY_COUNT, unit="keys", floor=copying(table.nbytes)) == KEY_COUNT


def test_find_offsets(keys: tuple[Bytes, Int64Array], measured: Measured) -> None:
    records, hashes = keys[1], hashes_of(keys)
    state, table, marks = empty_map()
    put_offsets(records, hashes, KEY_COUNT, 0, KEY_COUNT, state, table, marks)
    found = np.zeros(KEY_COUNT, np.int64)
    arguments = (records, hashes, KEY_COUNT, KEY_COUNT, state, table, found)
    assert measured(find_offsets, *arguments, count=KEY_COUNT, unit="keys") == KEY_COUNT
    assert np.array_equal(found, records[decode.OFFSET])


def test_decode_batches(tmp_path_factory: pytest.TempPathFactory, measured: Measured) -> None:
    path = tmp_path_factory.mktemp("benchmark") / "00000000000000000000.log"
    record_count = write_segment(path, KEY_COUNT * 100)
    data = np.fromfile(path, np.uint8)
    table = scan(data)
    state = np.zeros(decode.STATE_COUNT, np.int64)
    records = np.zeros((decode.COLUMN_COUNT, record_count), np.int64)
    rows = np.zeros(table.capacity + 1, np.int64)

    def decode_all() -> int:
        return decode_batches(data, table.matrix, table.capacity, 0, len(table), state, records, record_count, rows)

    assert measured(decode_all, size=data.size, count=record_count, floor=reading(data)) == decode.OK
    assert np.array_equal(records[decode.OFFSET], np.arange(record_count))


def test_clean_a_log(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    source = tmp_path / "source" / "t-0"
    size = write_log(source, RECORD_COUNT, CLEANED_KEY_COUNT)
    copies = {side: tmp_path / side / "t-0" for side in ("ours", "kafka")}

    def fresh(side: str) -> Path:
        shutil.rmtree(copies[side], ignore_errors=True)
        return Path(shutil.copytree(source, copies[side]))

    def clean() -> int:
        log = opened(copies["ours"], was_clean=True)
        log.clean(log.cleanable(None, NOW_MS), NOW_MS, buffer_size=buffer_size(CLEANED_KEY_COUNT))
        log.close()
        return sum(path.stat().st_size for path in copies["ours"].glob("*.log"))

    cleaned_size = measured(
        clean,
        title=f"clean {size / MIB:.4g} MiB, {RECORD_COUNT:,} records of {CLEANED_KEY_COUNT:,} keys",
        size=size,
        count=RECORD_COUNT,
        prepare=lambda: fresh("ours"),
        peers={"Kafka": lambda: kafkas_clean(kafka, fresh("kafka"), CLEANED_KEY_COUNT)},
        floor=writing(tmp_path / "floor", size // 2),
        written_size=size + size // 2,
    )
    assert 0 < cleaned_size < size
    assert not copies["kafka"].exists() or is_same(copies["ours"], copies["kafka"])
