"""Entries of `.index` and `.timeindex`, and the batches they lead to (`OffsetIndex`, `TimeIndex`, `LogSegment.append`).

Which batches have an entry depends on when a broker opened the log, so an index is not compared with a rebuilt one.
Each entry must have the last offset of the batch it leads to, entries must ascend, and a time entry must have the
largest timestamp up to its batch, the first to have it. A closed segment's last time entry is its largest timestamp.
"""

from __future__ import annotations

import numpy as np

from ...columns.batch_table import BoolArray, Int64Array
from ...disk.directory import SegmentFiles
from ...disk.side_files import read_offset_index, read_time_index
from ...errors import DataDirectoryError
from ...layout import offset_index, time_index
from ...layout.batch import HEADER_SIZE
from ...view.walk import Damage
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import Ask, Breach, Where
from ..partition import unless_gone

_NO_TIMESTAMP = -1


class IndexFacts(Follower):
    """An index of the current segment; each entry is looked up among the batches.

    Attributes:
        path, size_bytes: of the file; path None without one.
        zero_count: entries at the end that are zeros of a preallocated file.
        is_in_use: a broker has it open, or rebuilds it on its next start.
        offsets, values: int64, of the entries; values are positions or timestamps.
        is_proven: entries whose batch was found, or may be damaged; the others lead to no batch.
        wrong: entries that contradict their batch, which has `batch_offsets` and `batch_values`.
    """

    entry_size: int
    suffix: str
    path: str | None

    def __init__(self, evidence: Evidence, ask: Ask) -> None:
        self.evidence, self._ask = evidence, ask

    def begin(self, segment: SegmentFiles) -> None:
        self.segment, self.is_in_use = segment, self.evidence.partition.will_be_recovered(segment)
        self.path, self.size_bytes = None, 0
        self.offsets = self.values = np.empty(0, np.int64)
        self._is_refused = False
        count = 0
        try:
            count = self._read(segment)
        except DataDirectoryError as error:
            self._is_refused = True
            self._ask(Breach.unreadable(self.evidence.partition.where(), error))
        self.zero_count = self.offsets.size - count
        self.offsets, self.values = self.offsets[:count], self.values[:count]
        self.is_proven, self.wrong = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.batch_offsets, self.batch_values = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def end(self) -> None:
        if not self._is_refused:
            self._ask(self)

    def _read(self, segment: SegmentFiles) -> int:
        """Read the file; return how many of its entries a broker has written."""
        raise NotImplementedError

    def _prove(self, entries: Int64Array, offsets: Int64Array, values: Int64Array, is_wrong: BoolArray) -> None:
        self.is_proven[entries], self.wrong[entries] = True, is_wrong
        self.batch_offsets[entries], self.batch_values[entries] = offsets, values

    def kept(self, is_wrong: BoolArray, is_beyond: BoolArray) -> int:
        """Return how many entries belong to the index.

        An index in use may end in entries that a truncation cut off (`AbstractIndex.truncateToEntries0` only moves the
        end): wrong ones, with no right one behind them, that lead beyond the log or follow a right one.

        Args:
            is_wrong, is_beyond: which entries are wrong, and which lead beyond the end of the log.
        """
        if not self.is_in_use:
            return is_wrong.size
        stays = np.flatnonzero(~(is_wrong & is_beyond))
        count = int(stays[-1]) + 1 if stays.size else 0
        right = np.flatnonzero(~is_wrong[:count])
        if not right.size and self._may_be_of_before():
            return 0
        return int(right[-1]) + 1 if right.size else count

    def _may_be_of_before(self) -> bool:
        """Return whether all entries may be of batches that a truncation cut off before others were appended."""
        return True

    def where(self, entry: int | None = None) -> Where:
        """Return the place of an entry, or of the file."""
        place = self.evidence.partition.where(self.path)
        if entry is None:
            return place
        return place._replace(position=entry * self.entry_size, offset=int(self.offsets[entry]))


class OffsetIndexFacts(IndexFacts):
    """An `.index`; values are positions. Each entry is looked up in the window that holds its position."""

    entry_size, suffix = offset_index.ENTRY_SIZE, ".index"

    def begin(self, segment: SegmentFiles) -> None:
        super().begin(segment)
        self._is_sorted = bool((np.diff(self.values) >= 0).all())

    def step(self, batches: AuditedBatches) -> None:
        positions = batches.table.position
        end = int(positions[-1] + batches.table.size[-1])
        here = _entries_in(self.values, int(positions[0]), end, is_sorted=self._is_sorted)
        rows = np.searchsorted(positions, self.values[here], side="right") - 1
        found = batches.last[rows], positions[rows]
        self._prove(here, *found, (found[0] != self.offsets[here]) | (found[1] != self.values[here]))

    def skip(self, piece: Damage) -> None:
        """Take entries that lead into damage for proven: they cannot be judged."""
        if self.evidence.may_hide_batches(piece):
            self.is_proven |= (self.values >= piece.start) & (self.values < piece.end)

    def _may_be_of_before(self) -> bool:
        return bool((np.diff(self.offsets) > 0).all() and ((self.values == 0) | (self.values >= HEADER_SIZE)).all())

    def _read(self, segment: SegmentFiles) -> int:
        index = unless_gone(read_offset_index, segment.offset_index)
        if index is None:
            return 0
        self.path, self.size_bytes = segment.offset_index, index.size_bytes
        self.offsets, self.values = index.offsets, index.positions
        return index.written_count


class TimeIndexFacts(IndexFacts):
    """A `.timeindex`; values are timestamps. Each entry is compared with the running maximum of the batches.

    Attributes:
        largest: timestamp of the batches so far, ms.
    """

    entry_size, suffix = time_index.ENTRY_SIZE, ".timeindex"

    def begin(self, segment: SegmentFiles) -> None:
        super().begin(segment)
        self.largest = _NO_TIMESTAMP
        self._is_sorted = bool((np.diff(self.offsets) >= 0).all())

    def step(self, batches: AuditedBatches) -> None:
        if not batches.is_ascending:
            return
        timestamps = batches.table.max_timestamp
        largest = np.maximum.accumulate(np.concatenate([[self.largest], timestamps]))[1:]
        self.largest = int(largest[-1])
        here = _entries_in(self.offsets, int(batches.base[0]), int(batches.last[-1]) + 1, is_sorted=self._is_sorted)
        here = here[~self.is_proven[here]]
        rows = np.minimum(np.searchsorted(batches.last, self.offsets[here]), batches.last.size - 1)
        is_right = (batches.last[rows] == self.offsets[here]) & (timestamps[rows] == self.values[here])
        is_right &= largest[rows] == self.values[here]
        if self.evidence.segment_has_damage:
            is_right |= self.values[here] >= largest[rows]  # the batch may be among those that are lost
        self._prove(here, batches.last[rows], largest[rows], ~is_right)

    def _read(self, segment: SegmentFiles) -> int:
        index = unless_gone(read_time_index, segment.time_index)
        if index is None:
            return 0
        self.path, self.size_bytes = segment.time_index, index.size_bytes
        self.offsets, self.values = index.offsets, index.timestamps
        return index.written_count


def _entries_in(values: Int64Array, start: int, end: int, *, is_sorted: bool) -> Int64Array:
    """Return the numbers of entries with a value in [start, end), int64; search if the values ascend."""
    if not is_sorted:
        return np.flatnonzero((values >= start) & (values < end))
    first, last = np.searchsorted(values, [start, end])
    return np.arange(first, last)
