"""Slices of segments: what the driver plans and a task reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from pyspark.sql.datasource import InputPartition

from logstore.columns.batch_table import BatchTable, Int64Array, scan_chunk
from logstore.disk.mapped import MappedFile

Head = tuple[int, int, int]

OFFSET_MAX = 2**63 - 1
NO_HEAD: Head = (-1, -1, -1)


@dataclass(frozen=True, slots=True)
class Slice:
    """A run of batches of one segment.

    Attributes:
        path, base_offset: of the segment.
        start, end: byte positions of batches; `end` may be the end of the file.
        is_tail: a batch that is not whole at `end` is being written, and no damage.
        first_offset, end_offset: records outside of it are left out; end exclusive.
        head: base offset, size and checksum of the first batch at planning, `NO_HEAD` where there was none: if it is
            another one now, the segment was replaced meanwhile.
        aborted: int64[n, 3]: producer id, first and last offset of the transactions to leave out.
    """

    topic: str
    partition: int
    path: str
    base_offset: int
    start: int
    end: int
    is_tail: bool
    first_offset: int = 0
    end_offset: int = OFFSET_MAX
    head: Head = NO_HEAD
    aborted: Int64Array = field(default_factory=lambda: np.empty((0, 3), np.int64))

    @property
    def size(self) -> int:
        """Bytes to walk through."""
        return self.end - self.start


@dataclass
class SliceTask(InputPartition):
    """One Spark task."""

    slices: tuple[Slice, ...]


def head_at(log: MappedFile, position: int, end: int) -> Head:
    """What tells the batch at `position` from another one."""
    return head_of(scan_chunk(log.data, position, min(end, log.size), capacity=1))


def head_of(table: BatchTable) -> Head:
    """`head_at` of a table's first batch."""
    if not len(table):
        return NO_HEAD
    row = table.row(0)
    return row["base_offset"], row["size"], row["crc"]


def packed(slices: Iterable[Slice], size: int) -> Iterator[SliceTask]:
    """Tasks of about `size` bytes: a large slice alone, small ones together, in order."""
    held: list[Slice] = []
    held_size = 0
    for one in slices:
        if held and held_size + one.size > size:
            yield SliceTask(tuple(held))
            held, held_size = [], 0
        held.append(one)
        held_size += one.size
    if held:
        yield SliceTask(tuple(held))
