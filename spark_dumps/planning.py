"""Tasks for ranges of offsets: the driver shares the bytes of segments out, and tasks find the batches in them.

The driver opens a segment only to note its first and last bytes, or to look an offset up. So a segment is cut at any
byte, with an index or without: a batch belongs to the task that has its first byte. Opening a file counts as reading
`FILE_COST`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from logstore.columns.batch_table import Int64Array
from logstore.disk.files import FILE_COST, ends_of
from logstore.disk.loaded import LoadedFile
from logstore.disk.names import child, file_name, is_url
from logstore.layout.file_names import base_offset_of

from .bounds import PartitionRange
from .seen import SeenFiles, etag_of, packed
from .segments import PlannedSegment
from .tables import CompressedTask

TASK_SIZE_MAX = 128 * 1024 * 1024  # bytes; as Spark cuts files: few enough to start fast, several for each core
ASKED_SIZE_MAX = 512 * 1024 * 1024  # bytes, if the user gives the least number of tasks
HEAD_SIZE = 21  # bytes: base offset, length, leader epoch, magic and checksum of a batch
TAIL_SIZE = 4096  # bytes: the cleaner may keep the first batch of a segment, and merge others into it
NO_MARK = -1


class Slice(NamedTuple):
    """The batches that begin in [start, end) of one segment.

    Attributes:
        path, base_offset, segment_size: of the segment at planning.
        is_last: of the log; a cut batch at its end is being written, and no damage.
        end_offset: records from there on are left out.
        mark: of the segment, see `mark_of`; another one when the slice is read means that it was replaced.
    """

    run: SegmentRun
    path: str
    base_offset: int
    segment_size: int
    start: int
    end: int
    is_last: bool
    end_offset: int
    mark: int


class SegmentRun(NamedTuple):
    """Consecutive segments of a partition, the first and the last perhaps in part.

    Attributes:
        path: the directory of the partition.
        names: of the logs.
        sizes, marks: at planning.
        start, end: bytes in the first and in the last segment.
        has_last: the last segment is the last of the log.
        properties, etags: as of `SeenFiles`.
        first_offset, end_offset: records outside are left out; end exclusive.
        aborted: int64[n, 3]: producer id, first and last offset of aborted transactions, which are left out.
    """

    topic: str
    partition: int
    path: str
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    marks: tuple[int, ...]
    start: int
    end: int
    has_last: bool
    properties: frozenset[str] | None
    etags: dict[str, str]
    first_offset: int
    end_offset: int
    aborted: Int64Array

    def require(self) -> None:
        """Check that this process sees the segments; raises as `SeenFiles.require`."""
        logs = {child(self.path, name): size for name, size in zip(self.names, self.sizes, strict=True)}
        SeenFiles.of_sizes(self.path, logs, self.properties, self.etags).require()

    def slices(self) -> Iterator[Slice]:
        """Yield the slices of the segments, in order."""
        first, last = self.names[0], self.names[-1]
        # of a segment that was merged into the one before and is still there, the offsets come once
        ends = [*map(base_offset_of, self.names[1:]), self.end_offset]
        for name, size, mark, end_offset in zip(self.names, self.sizes, self.marks, ends, strict=True):
            yield Slice(
                run=self,
                path=child(self.path, name),
                base_offset=base_offset_of(name),
                segment_size=size,
                start=self.start if name == first else 0,
                end=self.end if name == last else size,
                is_last=self.has_last and name == last,
                end_offset=min(end_offset, self.end_offset),
                mark=mark,
            )


@dataclass
class SliceTask(CompressedTask):
    """One Spark task."""

    runs: tuple[SegmentRun, ...]

    @property
    def slices(self) -> list[Slice]:
        return [one for run in self.runs for one in run.slices()]


class _Piece(NamedTuple):
    """Bytes `start` … `end` - 1 of a segment of a partition that is read."""

    of: PartitionRange
    number: int
    start: int
    end: int

    @property
    def cost(self) -> int:
        return self.end - self.start + FILE_COST


def plan_tasks(ranges: Sequence[PartitionRange], task_count_min: int | None) -> list[SliceTask]:
    """Return tasks of about equal size, at least `task_count_min` if there is enough to cut.

    They have at most about `ASKED_SIZE_MAX` bytes, or `TASK_SIZE_MAX` for None.
    """
    pieces = [piece for one in ranges for piece in _pieces(one)]
    most = size = TASK_SIZE_MAX
    if task_count_min is not None:
        most = ASKED_SIZE_MAX
        size = min(most, max(1, -(-sum(piece.end - piece.start for piece in pieces) // task_count_min)))
    pieces = [part for piece in pieces for part in _cut(piece, size)]
    groups = packed(pieces, lambda piece: piece.cost, task_count_min, most)
    return [SliceTask(tuple(_runs(group))) for group in groups]


def _pieces(one: PartitionRange) -> Iterator[_Piece]:
    """Yield a piece for each segment that may hold an offset of the range."""
    for index, segment in enumerate(one.bounds.segments):
        following, base_offset = segment.following, segment.files.base_offset
        if following is not None and following <= one.first_offset:
            continue
        if base_offset >= one.end_offset:
            break
        start, end = 0, segment.size
        is_cut_behind = one.end_offset < (one.bounds.log_end_offset if following is None else following)
        if one.first_offset > base_offset or is_cut_behind:
            start, end = _around(one, segment, is_cut_behind=is_cut_behind)
        if start < end:
            yield _Piece(one, index, start, end)


def _around(one: PartitionRange, segment: PlannedSegment, *, is_cut_behind: bool) -> tuple[int, int]:
    """Return the bytes of the segment that hold the offsets of the range, by the index."""
    start, end, entries = 0, segment.size, segment.entries
    with LoadedFile(segment.files.log) as log:
        if one.first_offset > segment.files.base_offset:
            start = entries.position_at_or_before(log, one.first_offset)
        if is_cut_behind:
            end = entries.position_behind(log, one.end_offset)
    return start, end


def _cut(piece: _Piece, size: int) -> Iterator[_Piece]:
    """Yield the piece in parts of equal size, of at most `size` bytes."""
    count = -(-(piece.end - piece.start) // size)
    if count <= 1:
        yield piece
        return
    cuts = [piece.start + (piece.end - piece.start) * number // count for number in range(count + 1)]
    for start, end in pairwise(cuts):
        yield piece._replace(start=start, end=end)


def _runs(pieces: Sequence[_Piece]) -> Iterator[SegmentRun]:
    """Yield a run for the pieces of each partition, which follow each other."""
    for _, group in groupby(pieces, lambda piece: id(piece.of)):
        of_partition = list(group)
        first, last = of_partition[0], of_partition[-1]
        one, partition = first.of, first.of.bounds.partition
        segments = one.bounds.segments[first.number : last.number + 1]
        following = segments[-1].following
        end_offset = one.end_offset if following is None else min(following, one.end_offset)
        logs, sizes = [segment.files.log for segment in segments], [segment.size for segment in segments]
        yield SegmentRun(
            topic=partition.topic,
            partition=partition.partition,
            path=partition.files.path,
            names=tuple(map(file_name, logs)),
            sizes=tuple(sizes),
            marks=tuple(map(mark_of, logs, sizes)),
            start=first.start,
            end=last.end,
            has_last=following is None,
            properties=partition.properties,
            etags={log: etag_of(log) for log in logs} if is_url(partition.files.path) else {},
            first_offset=one.first_offset,
            end_offset=end_offset,
            aborted=one.bounds.aborted_between(segments[0].files.base_offset, end_offset),
        )


def mark_of(path: str, size: int) -> int:
    """Return a checksum of the ends of the first `size` bytes of a log; `NO_MARK` for an object, which has an ETag."""
    return NO_MARK if is_url(path) else zlib.crc32(ends_of(path, size, HEAD_SIZE, TAIL_SIZE))
