"""Partitions to read: batches of known offsets in segments, with the indexes that Kafka would write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from logstore.columns.batch_table import scan
from logstore.folds.segment_indexes import SegmentIndexes, step
from tests.support.encoder import CONTROL, NONE, SOME_TIME, TRANSACTIONAL, Batch, Rec

RECORDS_A_BATCH = 10


def batch(number: int, codec: int = NONE, size: int = 40) -> bytes:
    """Records 10 * number to 10 * number + 9; the time of record n is SOME_TIME + n, its value says n."""
    base = RECORDS_A_BATCH * number
    records = [
        Rec(key=b"k", value=b"%08d" % (base + delta) + b"." * size, offset_delta=delta, timestamp_delta=delta)
        for delta in range(RECORDS_A_BATCH)
    ]
    last = RECORDS_A_BATCH - 1
    return Batch(
        base, records, last, codec, base_timestamp=SOME_TIME + base, max_timestamp=SOME_TIME + base + last
    ).to_bytes()


def marker(offset: int, producer_id: int, *, is_commit: bool) -> bytes:
    """The marker that ends the producer's transaction."""
    key, value = b"\0\0\0" + bytes([is_commit]), bytes(6)
    flags = TRANSACTIONAL | CONTROL
    return Batch(offset, [Rec(key, value)], 0, flags=flags, producer_id=producer_id, producer_epoch=0).to_bytes()


def data(offset: int, producer_id: int, sequence: int = 0) -> bytes:
    """A batch of one record in a transaction of the producer."""
    return Batch(
        offset,
        [Rec(value=b"x")],
        flags=TRANSACTIONAL,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    ).to_bytes()


def write_segment(partition: Path, base_offset: int, content: bytes) -> Path:
    """A segment of the partition directory with its indexes; returns the path of the `.log`."""
    partition.mkdir(parents=True, exist_ok=True)
    path = partition / f"{base_offset:020d}.log"
    path.write_bytes(content)
    table = scan(np.frombuffer(content, np.uint8))
    indexes = SegmentIndexes(base_offset, index_interval_bytes=400)
    step(indexes, table, 0, len(table))
    indexes.finish()
    path.with_suffix(".index").write_bytes(indexes.offset_index_bytes())
    path.with_suffix(".timeindex").write_bytes(indexes.time_index_bytes())
    return path


def write_partition(root: Path, name: str = "orders-0", segments: Sequence[int] = (20, 20, 20)) -> list[Path]:
    """A partition of some segments of so many batches; returns the paths of the `.log` files."""
    paths, number = [], 0
    for count in segments:
        content = b"".join(map(batch, range(number, number + count)))
        paths.append(write_segment(root / name, RECORDS_A_BATCH * number, content))
        number += count
    return paths


def leave_at_rest(directory: Path) -> None:
    """Make all files older than a moment, so that one look at them is enough."""
    for path in directory.rglob("*"):
        at_rest_s = path.stat().st_mtime - 10
        os.utime(path, (at_rest_s, at_rest_s))
