"""Logs to be cleaned by key, the same bytes for both sides."""

from __future__ import annotations

import filecmp
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.page_cache import read_again
from benchmarks.peers.warm_kafka import WarmKafka
from logstore.columns.record_building import build_batches
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.log.config import parse_config
from logstore.log.load import opening
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog

NOW_MS = 1_700_000_000_000
KEY_SIZE, VALUE_SIZE = 16, 70  # with the rest of a record some 100 bytes
BATCH_SIZE = 16_384
RECORDS_AT_ONCE = 500_000
DIGITS = 10 ** np.arange(KEY_SIZE - 1, -1, -1)
SEGMENT_SIZE = 128 << 20
CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(1 << 30)}


def records(rng: np.random.Generator, numbers: npt.NDArray[np.int64]) -> RecordColumns:
    """Of the keys with these numbers; values are noise."""
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
    """Segments of records, and an active one behind them; the bytes of the segments.

    Every key is there, in no order; those that are there again are drawn by chance.
    """
    directory.mkdir(parents=True)
    rng = np.random.default_rng(20231114)
    numbers = np.concatenate([np.arange(key_count), rng.integers(0, key_count, record_count - key_count)])
    rng.shuffle(numbers)
    offset, path = 0, directory / f"{0:020d}.log"
    while offset < record_count:
        part = numbers[offset : offset + RECORDS_AT_ONCE]
        built = build_batches(records(rng, part), batch_size=BATCH_SIZE, base_offset=offset)
        if path.exists() and path.stat().st_size + built.data.size > SEGMENT_SIZE:
            path = directory / f"{offset:020d}.log"
        with path.open("ab") as file:
            file.write(built.data.data)
        offset += len(part)
    size = sum(each.stat().st_size for each in directory.glob("*.log"))
    last = build_batches(records(rng, numbers[:1]), batch_size=BATCH_SIZE, base_offset=offset)
    (directory / f"{offset:020d}.log").write_bytes(last.data.tobytes())
    opened(directory, was_clean=False).close()
    for segment in directory.glob("*.log"):
        read_again(segment)
    return size


def opened(directory: Path, *, was_clean: bool) -> PartitionLog:
    """The log, to be cleaned at NOW_MS."""
    settings = LoadSettings(
        was_clean=was_clean, recovery_point=0, log_start_offset=0, now_ms=NOW_MS, config=parse_config(CONFIG)
    )
    return opening.open_log(str(directory), settings, now_ms=lambda: NOW_MS)


def kafkas_clean(kafka: WarmKafka, directory: Path, record_count: int) -> float:
    """Seconds of Kafka's cleaner, without opening and closing the log."""
    return kafka.seconds(op="clean", dir=str(directory), slots=buffer_size(record_count) // 24, config=CONFIG)


def buffer_size(record_count: int) -> int:
    """Bytes of a map with room for the keys of all records at a load of 0.8: nobody knows how many are the same."""
    return 24 * (record_count * 5 // 4 + 1000)


def is_same(one: Path, other: Path) -> bool:
    """Whether the segments hold the same bytes."""
    names = sorted(path.name for path in one.glob("*.log"))
    return names == sorted(path.name for path in other.glob("*.log")) and all(
        filecmp.cmp(one / name, other / name, shallow=False) for name in names
    )
