"""Tasks for ranges of offsets: the driver cuts segments into slices of about equal size, and tasks read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from pyspark.sql.datasource import InputPartition

from logstore.columns.batch_table import BatchTable, Int64Array
from logstore.disk.loaded import LoadedFile
from logstore.view.walk import scan_loaded

from .bounds import PartitionRange
from .seen import SeenFiles
from .segments import PlannedSegment

Head = tuple[int, int, int]

OFFSET_MAX = 2**63 - 1
NO_HEAD: Head = (-1, -1, -1)
TASK_SIZE_MAX = 128 * 1024 * 1024  # bytes; as Spark cuts files: few enough to start fast, several for each core
ASKED_SIZE_MAX = 512 * 1024 * 1024  # bytes, if the user gives the least number of tasks


@dataclass(frozen=True, slots=True)
class Slice:
    """A run of batches of one segment.

    Attributes:
        path, base_offset: of the segment.
        start, end: byte positions of batches; `end` may be the end of the file.
        is_tail: a cut batch at `end` is being written, and no damage.
        first_offset, end_offset: records outside are left out; end exclusive.
        head: base offset, size and checksum of the first batch at planning, `NO_HEAD` without one; another head when
            the slice is read means that the segment was replaced.
        aborted: int64[n, 3]: producer id, first and last offset of aborted transactions, which are left out.
        seen: the segment as the driver saw it.
    """

    topic: str
    partition: int
    path: str
    base_offset: int
    start: int
    end: int
    is_tail: bool
    seen: SeenFiles
    first_offset: int = 0
    end_offset: int = OFFSET_MAX
    head: Head = NO_HEAD
    aborted: Int64Array = field(default_factory=lambda: np.empty((0, 3), np.int64))

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.end - self.start


@dataclass
class SliceTask(InputPartition):
    """One Spark task."""

    slices: tuple[Slice, ...]


def plan_tasks(ranges: Sequence[PartitionRange], task_count_min: int | None) -> list[SliceTask]:
    """Return tasks of about equal size, at least `task_count_min` if there is enough to cut.

    They have at most about `ASKED_SIZE_MAX` bytes, or `TASK_SIZE_MAX` for None.
    """
    sections = [section for one in ranges for section in _sections(one)]
    total = sum(end - start for _, _, start, end in sections)
    size = TASK_SIZE_MAX if task_count_min is None else min(ASKED_SIZE_MAX, max(1, -(-total // task_count_min)))
    return list(packed((piece for section in sections for piece in _pieces(*section, size)), size))


def _sections(one: PartitionRange) -> Iterator[tuple[PartitionRange, PlannedSegment, int, int]]:
    """Yield (range, segment, start, end) for all bytes that may hold an offset of the range."""
    for segment in one.bounds.segments:
        following = segment.following
        if following is not None and following <= one.first_offset:
            continue
        if segment.files.base_offset >= one.end_offset:
            break
        start, end = 0, segment.size
        with LoadedFile(segment.files.log) as log:
            if one.first_offset > segment.files.base_offset:
                start = segment.entries.position_at_or_before(log, one.first_offset)
            if one.end_offset < (one.bounds.log_end_offset if following is None else following):
                end = segment.entries.position_behind(log, one.end_offset)
        if start < end:
            yield one, segment, start, end


def _pieces(one: PartitionRange, segment: PlannedSegment, start: int, end: int, size: int) -> Iterator[Slice]:
    partition, following = one.bounds.partition, segment.following
    end_offset = one.end_offset if following is None else min(following, one.end_offset)
    aborted = one.bounds.aborted_between(segment.files.base_offset, end_offset)
    seen = partition.seen.of_log(segment.files.log, segment.size)
    with LoadedFile(segment.files.log) as log:
        for first, last in pairwise(segment.cuts(log, start, end, size)):
            yield Slice(
                topic=partition.topic,
                partition=partition.partition,
                path=segment.files.log,
                base_offset=segment.files.base_offset,
                start=first,
                end=last,
                is_tail=following is None and last == segment.size,
                seen=seen,
                first_offset=one.first_offset,
                end_offset=one.end_offset,
                head=head_at(log, first, last),
                aborted=aborted,
            )


def head_at(log: LoadedFile, position: int, end: int) -> Head:
    """Return the head of the batch at `position`; see `Slice`."""
    return head_of(scan_loaded(log, position, min(end, log.size), capacity=1))


def head_of(table: BatchTable) -> Head:
    """Return the head of a table's first batch."""
    if not len(table):
        return NO_HEAD
    row = table.row(0)
    return row["base_offset"], row["size"], row["crc"]


def packed(slices: Iterable[Slice], size: int) -> Iterator[SliceTask]:
    """Yield tasks of about `size` bytes, in order: a large slice alone, small slices together."""
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
