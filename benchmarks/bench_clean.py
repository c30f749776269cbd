"""A log cleaned by key beside the real Cleaner.

Both have a map with room for all keys, and one thread; what they leave is compared byte for byte. What a key costs must
not grow with their number by more than memory does. Opening and closing the log is in neither side's time.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.peers.kafka import WarmKafka
from benchmarks.support.data import MIB, scaled
from benchmarks.support.floors import writing
from benchmarks.support.logs import NAME
from benchmarks.support.measure import Growth, Measured
from benchmarks.support.page_cache import read_again
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.config.topic import parse_config
from logstore.log.load.loader import LoadSettings
from logstore.log.load.opening import PlannedLog
from logstore.log.partition_log import PartitionLog
from logstore.log.state import LogHost

NOW_MS = 1_700_000_000_000
KEY_SIZE, VALUE_SIZE = 16, 70  # with the rest of a record some 100 bytes
BATCH_SIZE = 16_384
RECORDS_AT_ONCE = 500_000
DIGITS = 10 ** np.arange(KEY_SIZE - 1, -1, -1)
SEGMENT_SIZE = 128 << 20
CONFIG = {"cleanup.policy": "compact"}
RECORDS_AND_KEYS = {
    "small": (scaled(4000, 1_000_000), scaled(2000, 500_000)),
    "large": (scaled(5600, 11_200_000), scaled(5000, 10_000_000)),  # a GiB of ten million keys
}
LARGE_ROUND_COUNT = 1  # of the large one: it takes Kafka half a minute


def records(rng: np.random.Generator, numbers: npt.NDArray[np.int64]) -> RecordColumns:
    """Return records of the keys with these numbers; the values are noise."""
    count = len(numbers)
    keys = (numbers[:, None] // DIGITS % 10 + ord("0")).astype(np.uint8).reshape(-1)
    values = np.frombuffer(rng.bytes(count * VALUE_SIZE), np.uint8)
    return RecordColumns(
        count,
        BytesColumn.of_offsets(keys, np.arange(count + 1) * KEY_SIZE),
        BytesColumn.of_offsets(values, np.arange(count + 1) * VALUE_SIZE),
        np.full(count, NOW_MS, np.int64),
    )


def write_log(directory: Path, record_count: int, key_count: int) -> int:
    """Write segments of records and an active one behind them; return the bytes of the closed segments.

    Every key occurs at least once, in random order; the other records have random keys.
    """
    rng = np.random.default_rng(20231114)
    numbers = np.concatenate([np.arange(key_count), rng.integers(0, key_count, record_count - key_count)])
    rng.shuffle(numbers)
    directory.mkdir(parents=True)
    log = opened(directory, segment_size=SEGMENT_SIZE)
    for start in range(0, record_count, RECORDS_AT_ONCE):
        log.append_columns(records(rng, numbers[start : start + RECORDS_AT_ONCE]), batch_size=BATCH_SIZE)
    log.roll()
    size = sum(each.stat().st_size for each in directory.glob("*.log"))
    log.append_columns(records(rng, numbers[:1]))
    log.close()
    for segment in directory.glob("*.log"):
        read_again(segment)
    return size


def opened(directory: Path, segment_size: int = 1 << 30) -> PartitionLog:
    """Open the log with its clock at NOW_MS."""
    config = parse_config({**CONFIG, "segment.bytes": str(segment_size)})
    settings = LoadSettings(was_clean=True, recovery_point=0, log_start_offset=0, now_ms=NOW_MS, config=config)
    return PlannedLog(str(directory), settings).open(LogHost(lambda: NOW_MS))


def buffer_size(record_count: int) -> int:
    """Return the bytes of a map with room for as many keys as records, at a load of 0.8."""
    return 24 * (record_count * 5 // 4 + 1000)


def is_same(one: Path, other: Path) -> bool:
    """Return whether the segments hold the same bytes."""
    names = sorted(path.name for path in one.glob("*.log"))
    return names == sorted(path.name for path in other.glob("*.log")) and all(
        filecmp.cmp(one / name, other / name, shallow=False) for name in names
    )


class Cleaning:
    """A log of which each side cleans a copy; our open copy is closed before the next one is made."""

    def __init__(self, place: Path, record_count: int, key_count: int) -> None:
        self.place, self.record_count = place, record_count
        self.size = write_log(place / "source" / NAME, record_count, key_count)
        self.active = max(path.name for path in (place / "source" / NAME).glob("*.log"))
        self.log: PartitionLog | None = None

    def copy(self, side: str) -> Path:
        """Return the directory that a side cleans."""
        return self.place / side / NAME

    def fresh(self, side: str) -> Path:
        """Copy the log as it was written for a side; return the copy."""
        shutil.rmtree(self.copy(side), ignore_errors=True)
        return Path(shutil.copytree(self.place / "source" / NAME, self.copy(side), copy_function=self._linked))

    def _linked(self, source: str, copy: str) -> None:
        """Link closed segments, which no side writes to, and copy all other files."""
        is_closed = source.endswith(".log") and not source.endswith(self.active)
        (os.link if is_closed else shutil.copy2)(source, copy)

    def open(self) -> None:
        """Open a fresh copy for our side."""
        self.close()
        self.log = opened(self.fresh("ours"))

    def close(self) -> None:
        """Close our copy."""
        if self.log is not None:
            self.log.close()

    def clean(self) -> int:
        """Clean our copy; return the offset up to which it is clean."""
        assert self.log is not None
        chosen = self.log.cleanable(None, NOW_MS)
        return self.log.clean(chosen, NOW_MS, buffer_size=buffer_size(self.record_count))

    def kafkas(self, kafka: WarmKafka) -> float:
        """Return the seconds of Kafka's cleaner, without opening and closing the log."""
        slots, fresh = buffer_size(self.record_count) // 24, str(self.fresh("kafka"))
        return kafka.seconds(op="clean", dir=fresh, slots=slots, config=CONFIG)

    def segments(self) -> list[bytes]:
        """Return the segments of our copy."""
        return [path.read_bytes() for path in sorted(self.copy("ours").glob("*.log"))]


@pytest.mark.parametrize(
    ("record_count", "key_count", "rounds"),
    [
        pytest.param(*RECORDS_AND_KEYS["small"], None, id="small"),  # first: it makes the JVM warm for the other
        pytest.param(*RECORDS_AND_KEYS["large"], LARGE_ROUND_COUNT, id="large"),
    ],
)
def test_clean_log(
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
    assert end_offset == cleaning.log.state.active.base_offset > 0
    cleaning.close()
    assert 0 < sum(map(len, cleaning.segments())) < cleaning.size
    assert not cleaning.copy("kafka").exists() or is_same(cleaning.copy("ours"), cleaning.copy("kafka"))
    shutil.rmtree(tmp_path)  # gigabytes
