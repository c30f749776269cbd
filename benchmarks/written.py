"""What was written to logs, to be hashed when all rounds are done: of how many calls, and when, must not show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from logstore.columns.batch_table import BatchTable, scan
from logstore.disk.mapped import MappedFile
from logstore.kernels.scan import batches as fields
from logstore.log.partition_log import PartitionLog

WITHOUT_CLOCK = [fields.SIZE, fields.RECORD_COUNT, fields.LAST_OFFSET_DELTA, fields.ATTRIBUTES, fields.MAGIC]


def tables(directory: Path) -> list[BatchTable]:
    """The batches of each segment of a partition.

    Raises:
        ValueError: a checksum is wrong, or something else than batches is there.
    """
    found = []
    for path in sorted(directory.glob("*.log")):
        data = MappedFile(str(path)).data
        table = scan(data, check_crc=True)
        if table.next_position != data.size or not (table.is_valid == 1).all():
            raise ValueError(f"{path} holds something else than whole batches")
        found.append(table)
    return found


def kinds_of_batches(directory: Path) -> Any:
    """The batches of a partition, each kind once: their sizes and counts. All checksums are right."""
    rows = [table.matrix[WITHOUT_CLOCK, : len(table)] for table in tables(directory)]
    return np.unique(np.concatenate(rows, axis=1), axis=1)


def last_values(log: PartitionLog, count: int) -> list[Any]:
    """The values of the last records at so many offsets, as bytes; markers have none."""
    start = max(log.log_start_offset, log.log_end_offset - count)
    return [value for chunk in log.records(start).chunks() for value in chunk.to_lists()[4]]


def written(log: PartitionLog, count: int) -> tuple[Any, list[Any]]:
    """Kinds of all batches, and values at the last `count` offsets, of a log that is open."""
    return kinds_of_batches(Path(log.directory.path)), last_values(log, count)


def sizes_of_one(directory: Path, call: Callable[[], object]) -> Sequence[int]:
    """Bytes of each batch that a call adds to the partitions of a data directory: so many writes it takes at least."""
    before = {path: path.stat().st_size for path in directory.rglob("*.log")}
    call()
    sizes: list[int] = []
    for path in sorted(directory.rglob("*.log")):
        table = scan(MappedFile(str(path)).data)
        sizes += table.size[table.position >= before.get(path, 0)].tolist()
    return sizes
