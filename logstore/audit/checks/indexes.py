"""Entries of `.index` and `.timeindex`, and the batches they lead to (`OffsetIndex`, `TimeIndex`, `LogSegment.append`).

Which batches have an entry depends on when a broker opened the log, so an index is not compared with a rebuilt one.
Each entry must have the last offset of the batch it leads to, entries must ascend, and a time entry must have the
largest timestamp up to its batch, the first to have it. A closed segment's last time entry is its largest timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray, Int64Array
from ...disk.directory import SegmentFiles
from ...disk.side_files import read_offset_index, read_time_index
from ...errors import DataDirectoryError
from ...layout import offset_index as offset_index_file
from ...layout import time_index as time_index_file
from ...layout.batch import HEADER_SIZE
from ...view.walk import Damage
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import Broken, Place, Rule, Silence, Where, rule, unreadable
from ..partition import unless_gone
from .batches import ERROR, WARNING

_OPEN = (Silence.OPEN,)
_OPEN_OR_UNKNOWN = (Silence.OPEN, Silence.DAMAGED, Silence.GROWING)
_NO_TIMESTAMP = -1


# without `.index` a broker reads the segment, and makes both; without `.timeindex` it makes an empty one
_REBUILD = (
    "`logstore repair`; or delete the segment's `.index` while the broker is down: both indexes are made anew on its "
    "next start"
)


@rule(ERROR, _REBUILD, unless=_OPEN_OR_UNKNOWN)
def offset_index(index: OffsetIndexCheck) -> Iterator[Place]:
    """An entry of an `.index` does not lead to the batch of its offset."""
    size = index.evidence.segment_size
    is_beyond = index.values >= size
    leads_nowhere = ~index.is_proven
    if index.evidence.is_growing:
        index.evidence.note(offset_index, Silence.GROWING, leads_nowhere & is_beyond)
        leads_nowhere &= ~is_beyond
    kept = index.kept(offset_index, index.wrong | leads_nowhere, is_beyond)
    yield from _odd_size(index)
    yield from _order(index, index.offsets[:kept], "offset", is_strict=True)
    for entry in np.flatnonzero((index.wrong | leads_nowhere)[:kept]).tolist():
        offset, position = int(index.offsets[entry]), int(index.values[entry])
        if leads_nowhere[entry]:
            yield index.where(entry), f"a position of a batch in {size} bytes of log", position
            continue
        expected = f"offset {int(index.batch_offsets[entry])} at byte {int(index.batch_values[entry])} of the log"
        yield index.where(entry), expected, f"offset {offset} at byte {position}"


@rule(WARNING, "a broker makes it anew on its next start", unless=_OPEN)
def offset_index_missing(index: OffsetIndexCheck) -> Iterator[Place]:
    """A segment has no `.index`."""
    return _missing(index)


@rule(ERROR, "`logstore repair`", unless=_OPEN_OR_UNKNOWN)
def time_index(index: TimeIndexCheck) -> Iterator[Place]:
    """An entry of a `.timeindex` is not what the log says."""
    leads_nowhere, silence = ~index.is_proven, index.evidence.unknown_end
    if silence is not None:
        index.evidence.note(time_index, silence, leads_nowhere)
        leads_nowhere[:] = False
    kept = index.kept(time_index, index.wrong | leads_nowhere, index.offsets >= index.evidence.end_offset)
    yield from _odd_size(index)
    yield from _order(index, index.values[:kept], "timestamp", is_strict=True)
    yield from _order(index, index.offsets[:kept], "offset", is_strict=False)
    for entry in np.flatnonzero((index.wrong | leads_nowhere)[:kept]).tolist():
        expected = "an offset of a batch in the segment"
        if not leads_nowhere[entry]:
            expected = f"a batch that ends with offset {int(index.batch_offsets[entry])} and has the largest timestamp "
            expected += f"so far, {int(index.batch_values[entry])}"
        found = f"timestamp {int(index.values[entry])} at offset {int(index.offsets[entry])}"
        yield index.where(entry), expected, found


@rule(WARNING, "a broker goes on with an empty one, and looks for times in vain: `logstore repair`", unless=_OPEN)
def time_index_missing(index: TimeIndexCheck) -> Iterator[Place]:
    """A segment has no `.timeindex`."""
    return _missing(index)


@rule(WARNING, "retention by time goes by that entry: `logstore repair`", unless=(Silence.DAMAGED, Silence.GROWING))
def time_index_end(index: TimeIndexCheck) -> Iterator[Place]:
    """The last entry of a closed segment's `.timeindex` is not its largest timestamp."""
    is_closed = not index.evidence.partition.is_active(index.segment)
    last = int(index.values[-1]) if index.values.size else -1
    if is_closed and index.path is not None and last < index.largest:
        yield index.where(), f"timestamp {index.largest} at the end", last, index.evidence.unknown_end


@rule(ERROR, _REBUILD)
def index_zeros(index: IndexCheck) -> Iterator[Place]:
    """An index that is not going to be rebuilt ends in zeros, which count as entries."""
    if index.zero_count and not index.is_in_use:
        yield index.where(), "entries up to the end", f"{index.zero_count} of zeros"


def _missing(index: IndexCheck) -> Iterator[Place]:
    if index.path is None:
        where = index.evidence.partition.where(index.segment.log)
        yield where, f"a {index.suffix} beside it", "none", index.unless_in_use


def _odd_size(index: IndexCheck) -> Iterator[Place]:
    """Find a size of no whole entries; an index in use may have been copied while it was made smaller."""
    if index.size_bytes % index.entry_size:
        yield index.where(), f"a multiple of {index.entry_size} bytes", index.size_bytes, index.unless_in_use


def _order(index: IndexCheck, values: Int64Array, name: str, *, is_strict: bool) -> Iterator[Place]:
    wrong: BoolArray = values[1:] <= values[:-1] if is_strict else values[1:] < values[:-1]
    for entry in np.flatnonzero(wrong).tolist():
        above = "above" if is_strict else "not below"
        yield index.where(), f"entry {entry + 1} with a {name} {above} {values[entry]}", int(values[entry + 1])


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
        """Return how many entries belong to the index; the rule is not asked of the others.

        An index in use may end in entries that a truncation cut off (`AbstractIndex.truncateToEntries0` only moves the
        end): wrong ones, with no right one behind them, that lead beyond the log or follow a right one.

        Args:
            is_wrong, is_beyond: which entries are wrong, and which lead beyond the end of the log.
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

    def where(self, entry: int | None = None) -> Where:
        """Return the place of an entry, or of the file."""
        place = self.evidence.partition.where(self.path)
        if entry is None:
            return place
        return place._replace(position=entry * self.entry_size, offset=int(self.offsets[entry]))


class OffsetIndexCheck(IndexCheck):
    """An `.index`; values are positions. Each entry is looked up in the window that holds its position."""

    entry_size, suffix = offset_index_file.ENTRY_SIZE, ".index"
    rules = offset_index, offset_index_missing, index_zeros

    def begin(self, segment: SegmentFiles) -> Iterator[Broken]:
        yield from super().begin(segment)
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
            is_inside = (self.values >= piece.start) & (self.values < piece.end)
            self.evidence.note(offset_index, Silence.DAMAGED, is_inside)
            self.is_proven |= is_inside

    def _may_be_of_before(self) -> bool:
        return bool((np.diff(self.offsets) > 0).all() and ((self.values == 0) | (self.values >= HEADER_SIZE)).all())

    def _read(self, segment: SegmentFiles) -> int:
        index = unless_gone(read_offset_index, segment.offset_index)
        if index is None:
            return 0
        self.path, self.size_bytes = segment.offset_index, index.size_bytes
        self.offsets, self.values = index.offsets, index.positions
        return index.written_count


class TimeIndexCheck(IndexCheck):
    """A `.timeindex`; values are timestamps. Each entry is compared with the running maximum of the batches.

    Attributes:
        largest: timestamp of the batches so far, ms.
    """

    entry_size, suffix = time_index_file.ENTRY_SIZE, ".timeindex"
    rules = time_index, time_index_missing, time_index_end, index_zeros

    def begin(self, segment: SegmentFiles) -> Iterator[Broken]:
        yield from super().begin(segment)
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
            may_be_lost = self.values[here] >= largest[rows]
            self.evidence.note(time_index, Silence.DAMAGED, may_be_lost & ~is_right)
            is_right |= may_be_lost
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
