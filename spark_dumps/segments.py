"""Segments of a partition for planning. Their sizes are fixed at planning; bytes appended later are not read.

Entries of an offset index are checked before use: at the position there must be a batch with a right checksum, so that
a walk from there finds whole batches. Its offsets must be above the entry before and up to the entry's own, which is
that of the batch, or in Kafka before 4.1 that of a later batch of the same append.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logstore.columns.batch_table import BatchTable, Int64Array
from logstore.disk.directory import SegmentFiles
from logstore.disk.file_range import FileRange
from logstore.disk.loaded import LoadedFile
from logstore.disk.mapped import segment_size
from logstore.disk.names import file_name
from logstore.disk.paths import real_path
from logstore.layout.file_names import base_offset_of
from logstore.layout.offset_index import ENTRY_SIZE, parse_offset_index
from logstore.view.walk import batch_at, tables_around_damage

from .listed_partition import ListedPartition

PIECE_SIZE = 16_384 * ENTRY_SIZE  # bytes of an index that are read at once, up to the last entry


@dataclass(frozen=True)
class IndexEntries:
    """Entries of an offset index, int64[n], up to the first that does not ascend, or lies beyond byte `end`."""

    last_offsets: Int64Array
    positions: Int64Array
    end: int

    def position_at_or_before(self, log: LoadedFile, offset: int) -> int:
        """Return the position of a batch before which all offsets are below `offset`; 0 if no entry helps."""
        return self._last_to(log, int(np.searchsorted(self.last_offsets, offset, side="right")) - 1)

    def position_to(self, log: LoadedFile, position: int) -> int:
        """Return the position of the last indexed batch at or before `position`; 0 if there is none."""
        return self._last_to(log, int(np.searchsorted(self.positions, position, side="right")) - 1)

    def position_behind(self, log: LoadedFile, offset: int) -> int:
        """Return the position of a batch from which on no offset is below `offset`; the end if no entry helps."""
        # the batch of the first entry at or above `offset` may begin below it
        return self._first_from(log, int(np.searchsorted(self.last_offsets, offset)) + 1)

    def position_from(self, log: LoadedFile, position: int) -> int:
        """Return the position of the first indexed batch at or behind `position`; the end if there is none."""
        return self._first_from(log, int(np.searchsorted(self.positions, position)))

    def _last_to(self, log: LoadedFile, slot: int) -> int:
        while slot >= 0 and not self._holds(log, slot):
            slot -= 1
        return int(self.positions[slot]) if slot >= 0 else 0

    def _first_from(self, log: LoadedFile, slot: int) -> int:
        while slot < self.positions.size:
            if self._holds(log, slot):
                return int(self.positions[slot])
            slot += 1
        return self.end

    def _holds(self, log: LoadedFile, slot: int) -> bool:
        end = min(self.end, log.size)
        table = batch_at(log, int(self.positions[slot]), end, check_crc=True)
        if len(table) != 1 or not table.is_valid[0]:
            return False
        is_above = slot == 0 or int(table.base_offset[0]) > int(self.last_offsets[slot - 1])
        return is_above and int(table.last_offset[0]) <= int(self.last_offsets[slot])


class PlannedSegment(NamedTuple):
    """A segment at planning.

    Attributes:
        size: bytes.
        following: base offset of the next segment; None for the last, which may be growing: a cut batch at its end is
            no damage.
    """

    files: SegmentFiles
    size: int
    following: int | None

    @property
    def entries(self) -> IndexEntries:
        """The usable entries of the offset index."""
        return read_entries(self.files.offset_index, self.size)

    def tables(self, log: LoadedFile, start: int, *, check_crc: bool = False) -> Iterator[BatchTable]:
        """Iterate over tables of the batches from byte `start` on; damage is skipped."""
        end = min(self.size, log.size)
        return tables_around_damage(log, start, end, self.files.base_offset, check_crc=check_crc)


def plan_segments(partition: ListedPartition) -> list[PlannedSegment]:
    """Return the segments of a partition with their sizes of now; raise DataDirectoryError if one is gone."""
    files = partition.files.segments
    followings = [*(segment.base_offset for segment in files[1:]), None]
    return [
        PlannedSegment(segment, segment_size(segment.log), following)
        for segment, following in zip(files, followings, strict=False)
    ]


def read_entries(path: str | None, end: int) -> IndexEntries:
    """Read the usable entries of an index; `path` None has none; `end` is the size of the segment.

    Behind its entries, the index of an active segment has up to 10 MiB of zeros, which are not read. It is not mapped,
    because the writer cuts the zeros off when the segment rolls.
    """
    if path is None:
        return IndexEntries(np.empty(0, np.int64), np.empty(0, np.int64), end)
    base_offset = base_offset_of(file_name(path))
    offsets, positions = [np.array([base_offset - 1])], [np.zeros(1, np.int64)]
    with FileRange(real_path(path)) as index:
        for start in range(0, index.size, PIECE_SIZE):
            piece = parse_offset_index(index.read(start, PIECE_SIZE), base_offset=base_offset, path=path)
            is_good = np.diff(piece.offsets, prepend=offsets[-1][-1]) > 0
            is_good &= (np.diff(piece.positions, prepend=positions[-1][-1]) > 0) & (piece.positions < end)
            count = is_good.size if is_good.all() else int(is_good.argmin())
            if count:
                offsets.append(piece.offsets[:count])
                positions.append(piece.positions[:count])
            if count < PIECE_SIZE // ENTRY_SIZE:
                break
    return IndexEntries(np.concatenate(offsets)[1:], np.concatenate(positions)[1:], end)
