"""A log cleaned by key beside the real Cleaner, and the kernels of it.

Both have a map with room for all keys, and one thread; what they leave is compared byte for byte. What a key costs must
not grow with their number by more than memory does. Opening and closing the log is in neither side's time.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.cleaning import NOW_MS, buffer_size, is_same, kafkas_clean, opened, write_log
from benchmarks.floors import library, reading, writing
from benchmarks.measured import Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_segment
from benchmarks.sizes import MIB, scaled
from logstore.columns.batch_table import scan
from logstore.kernels.decode import records as decode
from logstore.kernels.decode.batches import decode_batches
from logstore.kernels.table import offset_map
from logstore.kernels.table.key_hashes import hash_keys
from logstore.kernels.table.offset_map import find_offsets, put_offsets
from logstore.log.partition_log import PartitionLog

KEY_COUNT = scaled(10_000, 1_000_000)
KEY_SIZE = 16
NAME = "t-0"
RECORDS_AND_KEYS = {
    "small": (scaled(4000, 1_000_000), scaled(2000, 500_000)),
    "asked": (scaled(5600, 11_200_000), scaled(5000, 10_000_000)),  # a GiB of ten million keys
}
ASKED_ROUND_COUNT = 1  # of the asked size: it takes Kafka half a minute

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

    other = table.copy()
    floor = library("cleared table", other.fill, 0)
    done = measured(
        put_all, count=KEY_COUNT, unit="keys", floor=floor, hashed=lambda count: [count, state, table, marks]
    )
    assert done == KEY_COUNT


def test_find_offsets(keys: tuple[Bytes, Int64Array], measured: Measured) -> None:
    records, hashes = keys[1], hashes_of(keys)
    state, table, marks = empty_map()
    put_offsets(records, hashes, KEY_COUNT, 0, KEY_COUNT, state, table, marks)
    found = np.zeros(KEY_COUNT, np.int64)
    arguments = (records, hashes, KEY_COUNT, KEY_COUNT, state, table, found)
    floor, hashed = reading(hashes), lambda count: [count, found]
    assert measured(find_offsets, *arguments, count=KEY_COUNT, unit="keys", floor=floor, hashed=hashed) == KEY_COUNT
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
        bounds = (data, *table.record_bounds(0, len(table)), decode.PLAIN)
        return decode_batches(*bounds, table.matrix, table.capacity, 0, len(table), state, records, record_count, rows)

    floor, hashed = reading(data), lambda status: [status, records]
    assert measured(decode_all, size=data.size, count=record_count, floor=floor, hashed=hashed) == decode.OK
    assert np.array_equal(records[decode.OFFSET], np.arange(record_count))


class Cleaning:
    """A log that each side cleans a copy of; what ours has open is closed before the next copy."""

    def __init__(self, place: Path, record_count: int, key_count: int) -> None:
        self.place, self.record_count = place, record_count
        self.size = write_log(place / "source" / NAME, record_count, key_count)
        self.active = max(path.name for path in (place / "source" / NAME).glob("*.log"))
        self.log: PartitionLog | None = None

    def copy(self, side: str) -> Path:
        """Where a side cleans."""
        return self.place / side / NAME

    def fresh(self, side: str) -> Path:
        """The log as it was written."""
        shutil.rmtree(self.copy(side), ignore_errors=True)
        return Path(shutil.copytree(self.place / "source" / NAME, self.copy(side), copy_function=self._linked))

    def _linked(self, source: str, copy: str) -> None:
        """Segments are linked, which nobody writes to, but for the active one."""
        is_closed = source.endswith(".log") and not source.endswith(self.active)
        (os.link if is_closed else shutil.copy2)(source, copy)

    def open(self) -> None:
        """Open a fresh copy, for ours."""
        self.close()
        self.log = opened(self.fresh("ours"), was_clean=True)

    def close(self) -> None:
        """Close it."""
        if self.log is not None:
            self.log.close()

    def clean(self) -> int:
        """The offset up to which the log is clean then."""
        assert self.log is not None
        chosen = self.log.cleanable(None, NOW_MS)
        return self.log.clean(chosen, NOW_MS, buffer_size=buffer_size(self.record_count))

    def kafkas(self, kafka: WarmKafka) -> float:
        """Seconds of Kafka's cleaner."""
        return kafkas_clean(kafka, self.fresh("kafka"), self.record_count)

    def segments(self) -> list[bytes]:
        """What ours has left."""
        return [path.read_bytes() for path in sorted(self.copy("ours").glob("*.log"))]


@pytest.mark.parametrize(
    ("record_count", "key_count", "rounds"),
    [
        pytest.param(*RECORDS_AND_KEYS["small"], None, id="small"),  # first: it makes the JVM warm for the other
        pytest.param(*RECORDS_AND_KEYS["asked"], ASKED_ROUND_COUNT, id="asked"),
    ],
)
def test_clean_a_log(
    measured: Measured, kafka: WarmKafka, tmp_path: Path, record_count: int, key_count: int, rounds: int | None
) -> None:
    cleaning = Cleaning(tmp_path, record_count, key_count)
    kept_size = cleaning.size * key_count // record_count
    end_offset = measured(
        cleaning.clean,
        title=f"clean {cleaning.size / MIB:.4g} MiB, {record_count:,} records of {key_count:,} keys",
        size=cleaning.size,
        count=record_count,
        prepare=cleaning.open,
        peers={"Kafka": lambda: cleaning.kafkas(kafka)},
        floor=writing(tmp_path / "floor", kept_size),
        rounds=rounds,
        reads=(tmp_path / "source" / NAME).glob("*.log"),
        written_size=kept_size,
        growth=Growth("records of a cleaning", "clean", record_count),
        hashed=lambda end_offset: [end_offset, *cleaning.segments()],
    )
    assert cleaning.log is not None
    assert end_offset == cleaning.log.active.base_offset > 0
    cleaning.close()
    assert 0 < sum(map(len, cleaning.segments())) < cleaning.size
    assert not cleaning.copy("kafka").exists() or is_same(cleaning.copy("ours"), cleaning.copy("kafka"))
    shutil.rmtree(tmp_path)  # gigabytes
