"""Entries of `.index` and `.timeindex`, and the batches they lead to (`OffsetIndex`, `TimeIndex`, `LogSegment.append`).

Which batches have an entry depends on when a broker opened the log, so an index is not compared with a rebuilt one.
Each entry must have the last offset of the batch it leads to, entries must ascend, and a time entry must have the
largest timestamp up to its batch, the first to have it. A closed segment's last time entry is its largest timestamp.

Kafka before 4.1, but for 3.9.1 and 3.9.2, made one entry for all batches of an append, as followers and the cleaner
append them: the position of the first, the last offset of the last, or up to 1.1 the first offset of the first. Kafka
up to 3.6 gave a time entry the offset of the first record with the largest timestamp, if a producer sent the batch
uncompressed. All lead searches as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray, Int64Array
from ...columns.record_windows import record_windows
from ...disk.directory import SegmentFiles
from ...disk.side_files import read_offset_index, read_time_index
from ...layout import offset_index as offset_index_file
from ...layout import time_index as time_index_file
from ...layout.batch import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from ...view.walk import Damage
from ..evidence import AuditedBatches
from ..finding import Broken, Place, Silence, rule
from ..partition import unless_gone
from .batches import ERROR, WARNING
from .index_check import IndexCheck, entries_in
from .records import has_data

_OPEN = (Silence.OPEN,)
_OPEN_OR_UNKNOWN = (Silence.OPEN, Silence.DAMAGED, Silence.GROWING)


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
    last = int(index.values[-1]) if index.values.size else NO_TIMESTAMP
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


class OffsetIndexCheck(IndexCheck):
    """An `.index`; values are positions. Each entry is looked up in the window that holds its position."""

    entry_size, suffix = offset_index_file.ENTRY_SIZE, ".index"
    rules = offset_index, offset_index_missing, index_zeros

    def begin(self, segment: SegmentFiles) -> Iterator[Broken]:
        yield from super().begin(segment)
        self._is_sorted = bool((np.diff(self.values) >= 0).all())
        self._appends = np.empty(0, np.int64)  # entries whose append, if older Kafka made them, goes on
        self._next_positions = np.append(self.values[1:], self.evidence.segment_size)

    def step(self, batches: AuditedBatches) -> None:
        positions = batches.table.position
        end = int(positions[-1] + batches.table.size[-1])
        here = entries_in(self.values, int(positions[0]), end, is_sorted=self._is_sorted)
        rows = np.searchsorted(positions, self.values[here], side="right") - 1
        last, start, offsets = batches.last[rows], positions[rows], self.offsets[here]
        is_wrong = (last != offsets) | (start != self.values[here])
        if is_wrong.any() and self.may_be_of_older_kafka:
            is_wrong &= (start != self.values[here]) | (batches.base[rows] != offsets)
        self._prove(here, last, start, is_wrong)
        is_begun = (start == self.values[here]) & (last < offsets)
        if (is_begun.any() or self._appends.size) and self.may_be_of_older_kafka:
            self._appends = np.concatenate([self._appends, here[is_begun]])
            self._end_appends(batches)

    def _end_appends(self, batches: AuditedBatches) -> None:
        """Accept entries of appends whose last batch is among these; it lies before the next append's first."""
        entries = self._appends
        rows = np.minimum(np.searchsorted(batches.last, self.offsets[entries]), batches.last.size - 1)
        is_right = batches.last[rows] == self.offsets[entries]
        is_right &= batches.table.position[rows] < self._next_positions[entries]
        self.wrong[entries[is_right]] = False
        self._appends = entries[self.offsets[entries] > batches.last[-1]]

    def skip(self, piece: Damage) -> None:
        """Take entries that lead into damage, or whose append may end there, for proven: they cannot be judged."""
        if self.evidence.may_hide_batches(piece):
            is_inside = (self.values >= piece.start) & (self.values < piece.end)
            self.is_proven |= is_inside
            is_inside[self._appends] |= self._next_positions[self._appends] > piece.start
            self.wrong[self._appends] &= ~is_inside[self._appends]
            self.evidence.note(offset_index, Silence.DAMAGED, is_inside)

    def end(self) -> Iterator[Broken]:
        """Take the end of the segment; what a writer has appended since may end an append."""
        if self.evidence.is_growing:
            self.evidence.note(offset_index, Silence.GROWING, self._appends.size > 0)
            self.wrong[self._appends] = False
        yield from super().end()

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
        self.largest = NO_TIMESTAMP
        self._is_sorted = bool((np.diff(self.offsets) >= 0).all())

    def step(self, batches: AuditedBatches) -> None:
        if not batches.is_ascending:
            return
        timestamps = batches.table.max_timestamp
        largest = np.maximum.accumulate(np.concatenate([[self.largest], timestamps]))[1:]
        self.largest = int(largest[-1])
        here = entries_in(self.offsets, int(batches.base[0]), int(batches.last[-1]) + 1, is_sorted=self._is_sorted)
        here = here[~self.is_proven[here]]
        rows = np.minimum(np.searchsorted(batches.last, self.offsets[here]), batches.last.size - 1)
        has_largest = (timestamps[rows] == self.values[here]) & (largest[rows] == self.values[here])
        is_right = has_largest & (batches.last[rows] == self.offsets[here])
        is_inside = has_largest & (batches.base[rows] <= self.offsets[here]) & ~is_right
        if is_inside.any() and self.may_be_of_older_kafka:
            is_right[is_inside] = _have_first_largest(batches, rows[is_inside], self.offsets[here[is_inside]])
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


def _have_first_largest(batches: AuditedBatches, rows: Int64Array, offsets: Int64Array) -> BoolArray:
    """Return which offsets, bool[n], are of the first record with the largest timestamp of the batch in their row.

    None is where the timestamp is the broker's, or in a compressed batch: its entry has the last offset in each Kafka.
    """
    run, table = batches.run, batches.table
    is_plain = has_data(table) & (table.attributes & (CODEC_MASK | LOG_APPEND_TIME_FLAG) == 0)
    first_offsets = np.full(len(table), -1)
    for window in record_windows(run.data, run.table, np.unique(rows[is_plain[rows]]) + run.first_row):
        of_records = window.rows - run.first_row
        is_largest = window.timestamp == table.max_timestamp[of_records]
        found, numbers = np.unique(of_records[is_largest], return_index=True)
        is_first = first_offsets[found] < 0  # a batch may go on in the next window
        first_offsets[found[is_first]] = window.offset[is_largest][numbers[is_first]]
    is_right: BoolArray = first_offsets[rows] == offsets
    return is_right
