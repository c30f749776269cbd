"""From options to tasks: which bytes of which segments are read, in pieces of about one size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from logstore.columns.batch_table import Int64Array
from logstore.disk.mapped import MappedFile

from .ranges import PartitionRange
from .segments import PlannedSegment
from .slices import Slice, SliceTask, head_at, packed

TASK_SIZE_MAX = 128 * 1024 * 1024  # bytes; as Spark cuts files: a task has its price, and cores are to get several
ASKED_SIZE_MAX = 512 * 1024 * 1024  # bytes, where somebody says how many tasks are enough


def plan_tasks(ranges: Sequence[PartitionRange], task_count_min: int | None) -> list[SliceTask]:
    """Tasks of about equal size, at least `task_count_min` where there is enough to cut.

    Without it they have at most about `TASK_SIZE_MAX` bytes, else `ASKED_SIZE_MAX`.
    """
    sections = [section for one in ranges for section in _sections(one)]
    total = sum(end - start for _, _, start, end in sections)
    size = TASK_SIZE_MAX if task_count_min is None else min(ASKED_SIZE_MAX, max(1, -(-total // task_count_min)))
    return list(packed((piece for section in sections for piece in _pieces(*section, size)), size))


def _sections(one: PartitionRange) -> Iterator[tuple[PartitionRange, PlannedSegment, int, int]]:
    """(range, segment, start, end) of all bytes that may hold an offset of the range."""
    for number, segment in enumerate(one.segments):
        following = one.segments[number + 1].files.base_offset if number + 1 < len(one.segments) else None
        if following is not None and following <= one.first_offset:
            continue
        if segment.files.base_offset >= one.end_offset:
            break
        starts_inside = one.first_offset > segment.files.base_offset
        start = segment.position_at_or_before(one.first_offset) if starts_inside else 0
        ends_inside = one.end_offset < (one.log_end_offset if following is None else following)
        end = segment.position_behind(one.end_offset) if ends_inside else segment.size
        if start < end:
            yield one, segment, start, end


def _pieces(one: PartitionRange, segment: PlannedSegment, start: int, end: int, size: int) -> Iterator[Slice]:
    cuts = segment.cuts(start, end, size)
    with MappedFile(segment.files.log) as log:
        for first, last in pairwise(cuts):
            yield Slice(
                topic=one.partition.topic,
                partition=one.partition.partition,
                path=segment.files.log,
                base_offset=segment.files.base_offset,
                start=first,
                end=last,
                is_tail=segment.is_last and last == segment.size,
                first_offset=one.first_offset,
                end_offset=one.end_offset,
                head=head_at(log, first, last),
                aborted=_aborted(one, segment),
            )


def _aborted(one: PartitionRange, segment: PlannedSegment) -> Int64Array:
    if one.committed is None:
        return np.empty((0, 3), np.int64)
    bases = [other.files.base_offset for other in one.segments if other.files.base_offset > segment.files.base_offset]
    return one.committed.aborted_between(segment.files.base_offset, min([*bases, one.end_offset]))
