"""Partitions to read: batches of known offsets in segments, with the indexes that Kafka would write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from logstore.columns.batch_table import scan
from logstore.folds.segment_indexes import SegmentIndexes, step
from tests.naive.encoder import NONE, SOME_TIME, Batch, Rec

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


def write_segment(partition: Path, base_offset: int, content: bytes, *, index_interval: int = 400) -> Path:
    """A segment of the partition directory with its indexes; returns the path of the `.log`."""
    partition.mkdir(parents=True, exist_ok=True)
    path = partition / f"{base_offset:020d}.log"
    path.write_bytes(content)
    table = scan(np.frombuffer(content, np.uint8))
    indexes = SegmentIndexes(base_offset, index_interval_bytes=index_interval)
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
