"""Segments of a partition as a plan needs them, their length fixed at planning: what is appended later is not read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from logstore.columns.batch_table import BatchTable, scan_chunk
from logstore.disk.directory import SegmentFiles
from logstore.disk.mapped import MappedFile, segment_size
from logstore.view.walk import find_batch

from .directories import ListedPartition
from .walking import IndexEntries, read_entries


@dataclass(frozen=True)
class PlannedSegment:
    """One segment.

    Attributes:
        size: bytes.
        is_last: it may be written to, so that a batch that is not whole at its end is no damage.
    """

    files: SegmentFiles
    size: int
    is_last: bool

    @cached_property
    def entries(self) -> IndexEntries:
        """The usable entries of the offset index."""
        return read_entries(self.files.offset_index, self.size)

    def position_at_or_before(self, offset: int) -> int:
        """Byte position of a batch from which on all offsets from `offset` are."""
        with MappedFile(self.files.log) as log:
            return self.entries.position_at_or_before(log, offset)

    def position_behind(self, offset: int) -> int:
        """Byte position from which on there is no offset below `offset`."""
        with MappedFile(self.files.log) as log:
            return self.entries.position_behind(log, offset)

    def cuts(self, start: int, end: int, size: int) -> list[int]:
        """Positions of batches that cut [start, end) into pieces of about `size` bytes; `start` first, `end` last."""
        found = [start]
        with MappedFile(self.files.log) as log:
            while end - found[-1] > size:
                position = self.entries.position_from(log, found[-1] + size)
                if position >= end:
                    break
                found.append(position)
        return [*found, end]

    def tables(self, log: MappedFile, start: int) -> Iterator[BatchTable]:
        """The headers of the batches from byte `start` on, without checksums; what is no batch is passed over."""
        position, end = start, min(self.size, log.size)
        while position < end:
            table = scan_chunk(log.data, position, end)
            yield table
            log.release(position, table.next_position)
            position = table.next_position
            if not table.has_more and position < end:
                position = find_batch(log.data[:end], position + 1, self.files.base_offset) or end


def plan_segments(partition: ListedPartition) -> list[PlannedSegment]:
    """The segments of a partition with their sizes as they are now.

    Raises:
        DataDirectoryError: one is gone since the directory was listed.
    """
    files = partition.files.segments
    return [
        PlannedSegment(segment, segment_size(segment.log), is_last=number == len(files) - 1)
        for number, segment in enumerate(files)
    ]
