"""An index of a segment whose entries are looked up among the batches, and what belongs to it (`AbstractIndex`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray, Int64Array
from ...disk.directory import SegmentFiles
from ...errors import DataDirectoryError
from ..cluster import Known
from ..evidence import Evidence, Follower
from ..finding import Broken, Rule, Silence, Where, unreadable


class IndexCheck(Follower):
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
    rules: tuple[Rule, ...]
    path: str | None

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def begin(self, segment: SegmentFiles) -> Iterator[Broken]:
        self.segment, self.is_in_use = segment, self.evidence.partition.will_be_recovered(segment)
        self.path, self.size_bytes = None, 0
        self.offsets = self.values = np.empty(0, np.int64)
        self._is_refused = False
        count = 0
        try:
            count = self._read(segment)
        except DataDirectoryError as error:
            self._is_refused = True
            yield unreadable(error, self.evidence.partition.where())
        self.zero_count = self.offsets.size - count
        self.offsets, self.values = self.offsets[:count], self.values[:count]
        self.is_proven, self.wrong = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.batch_offsets, self.batch_values = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def end(self) -> Iterator[Broken]:
        for one in () if self._is_refused else self.rules:
            yield from one(self)

    def _read(self, segment: SegmentFiles) -> int:
        """Read the file; return how many of its entries a broker has written."""
        raise NotImplementedError

    def _prove(self, entries: Int64Array, offsets: Int64Array, values: Int64Array, is_wrong: BoolArray) -> None:
        self.is_proven[entries], self.wrong[entries] = True, is_wrong
        self.batch_offsets[entries], self.batch_values[entries] = offsets, values

    @property
    def unless_in_use(self) -> Silence | None:
        """The reason not to ask of an index in use; None of another."""
        return Silence.OPEN if self.is_in_use else None

    def kept(self, rule: Rule, is_wrong: BoolArray, is_beyond: BoolArray) -> int:
        """Return how many entries belong to the index, by which are wrong, and which lead beyond the end of the log.

        An index in use may end in entries that a truncation cut off (`AbstractIndex.truncateToEntries0` only moves the
        end): wrong ones, with no right one behind them, that lead beyond the log or follow a right one. The rule is not
        asked of these.
        """
        count = self._kept_count(is_wrong, is_beyond) if self.is_in_use else is_wrong.size
        self.evidence.note(rule, Silence.OPEN, is_wrong[count:])
        return count

    def _kept_count(self, is_wrong: BoolArray, is_beyond: BoolArray) -> int:
        stays = np.flatnonzero(~(is_wrong & is_beyond))
        count = int(stays[-1]) + 1 if stays.size else 0
        right = np.flatnonzero(~is_wrong[:count])
        if not right.size and self._may_be_of_before():
            return 0
        return int(right[-1]) + 1 if right.size else count

    def _may_be_of_before(self) -> bool:
        """Return whether all entries may be of batches that a truncation cut off before others were appended."""
        return True

    @property
    def may_be_of_older_kafka(self) -> bool:
        """Whether Kafka before 4.1 may have written entries."""
        return self.evidence.cluster.indexes_by_batch is not Known.YES

    def where(self, entry: int | None = None) -> Where:
        """Return the place of an entry, or of the file."""
        place = self.evidence.partition.where(self.path)
        if entry is None:
            return place
        return place._replace(position=entry * self.entry_size, offset=int(self.offsets[entry]))


def entries_in(values: Int64Array, start: int, end: int, *, is_sorted: bool) -> Int64Array:
    """Return the numbers of entries with a value in [start, end), int64; search if the values ascend."""
    if not is_sorted:
        return np.flatnonzero((values >= start) & (values < end))
    first, last = np.searchsorted(values, [start, end])
    return np.arange(first, last)
