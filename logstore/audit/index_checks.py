"""`.index` and `.timeindex` against the batches (`OffsetIndex`, `TimeIndex`, `LogSegment.append`).

Which batches have an entry depends on when a broker opened the log, so an index is not compared with one made anew:
each entry must lead to a batch whose last offset it has, entries must ascend, and a time entry must be the largest
timestamp up to its batch, which is the first to have it. A closed segment's last time entry is its largest timestamp.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..disk.directory import SegmentFiles
from ..disk.side_files import read_offset_index, read_time_index
from ..layout import offset_index, time_index
from ..view.walk import Damage, Run, Tail, is_ascending
from . import rules
from .evidence import Evidence
from .finding import Rule
from .log_pass import SegmentEnd
from .partition import Partition, Report, unless_gone

_NO_TIMESTAMP = -1
WrongEntries = dict[int, tuple[str, str]]  # from the number of an entry to what was expected and found


class OffsetIndexChecks:
    """Each entry is looked for among the batches of the window that holds its position."""

    def __init__(self, partition: Partition, report: Report) -> None:
        self._partition = partition
        self._report = report
        self._path: str | None = None
        self._offsets = self._positions = np.empty(0, np.int64)
        self._is_proven = np.empty(0, np.bool_)
        self._is_sorted = True
        self._is_in_use = False
        self._wrong: WrongEntries = {}

    def begin(self, segment: SegmentFiles) -> None:
        self._path, self._wrong = segment.offset_index, {}
        self._is_in_use = self._partition.will_be_recovered(segment)
        index = None if self._path is None else unless_gone(read_offset_index, self._path)
        if index is None:
            self._offsets = self._positions = np.empty(0, np.int64)
            if not self._is_in_use:
                missing(self._report, rules.OFFSET_INDEX_MISSING, segment, ".index")
        else:
            is_zero = (index.offsets == segment.base_offset) & (index.positions == 0)
            size = kept_size(is_zero, index.offsets == segment.base_offset)
            has_zeros(self._partition, self._report, segment, index.path, index.entry_count - size)
            odd_size(self._report, rules.OFFSET_INDEX, index.path, index.size_bytes, offset_index.ENTRY_SIZE)
            self._offsets, self._positions = index.offsets[:size], index.positions[:size]
        self._is_proven = np.zeros(self._offsets.size, np.bool_)
        self._is_sorted = bool((np.diff(self._positions) >= 0).all())

    def step(self, run: Run) -> None:
        positions = run.table.position[run.first_row : run.row_end]
        end = int(positions[-1] + run.table.size[run.row_end - 1])
        here = entries_in(self._positions, int(positions[0]), end, is_sorted=self._is_sorted)
        if not here.size:
            return
        rows = np.searchsorted(positions, self._positions[here], side="right") - 1
        last_offsets = run.table.last_offset[run.first_row : run.row_end]
        is_right = (positions[rows] == self._positions[here]) & (last_offsets[rows] == self._offsets[here])
        self._is_proven[here] = True
        for entry, row in zip(here[~is_right].tolist(), rows[~is_right].tolist(), strict=True):
            self._wrong[entry] = (
                f"offset {int(last_offsets[row])} at byte {int(positions[row])} of the log",
                f"offset {int(self._offsets[entry])} at byte {int(self._positions[entry])}",
            )

    def skip(self, piece: Damage | Tail) -> None:
        """What leads into damage cannot be judged."""
        if isinstance(piece, Damage) or piece.is_batch:
            self._is_proven |= (self._positions >= piece.start) & (self._positions < piece.end)

    def end(self, end: SegmentEnd) -> None:
        for entry in np.flatnonzero(~self._is_proven).tolist():
            if end.is_growing and self._positions[entry] >= end.size:
                continue
            self._wrong[entry] = (f"a position of a batch in {end.size} bytes of log", str(int(self._positions[entry])))
        kept = kept_entries(self._wrong, self._positions >= end.size, is_in_use=self._is_in_use)
        offsets = self._offsets[:kept]
        report_order(self._report, rules.OFFSET_INDEX, self._path, offsets, "offset", is_strict=True)
        report_wrong(self._report, rules.OFFSET_INDEX, self._path, offsets, self._wrong, offset_index.ENTRY_SIZE)

    def finish(self) -> None:
        """Nothing is left to say."""


class TimeIndexChecks:
    """Each entry is compared with the running maximum of the batch timestamps."""

    def __init__(self, evidence: Evidence, report: Report) -> None:
        self._evidence = evidence
        self._partition = evidence.partition
        self._report = report
        self._path: str | None = None
        self._offsets = self._timestamps = np.empty(0, np.int64)
        self._is_proven = np.empty(0, np.bool_)
        self._is_sorted = True
        self._largest = _NO_TIMESTAMP
        self._is_in_use = False
        self._wrong: WrongEntries = {}

    def begin(self, segment: SegmentFiles) -> None:
        self._path, self._largest, self._wrong = segment.time_index, _NO_TIMESTAMP, {}
        self._is_in_use = self._partition.will_be_recovered(segment)
        index = None if self._path is None else unless_gone(read_time_index, self._path)
        if index is None:
            self._offsets = self._timestamps = np.empty(0, np.int64)
            if not self._is_in_use:
                missing(self._report, rules.TIME_INDEX_MISSING, segment, ".timeindex")
        else:
            is_base = index.offsets == segment.base_offset
            is_zero = is_base & (index.timestamps == 0)
            size = kept_size(is_zero & (index.entry_count > 1), is_base)
            has_zeros(self._partition, self._report, segment, index.path, index.entry_count - size)
            odd_size(self._report, rules.TIME_INDEX, index.path, index.size_bytes, time_index.ENTRY_SIZE)
            self._offsets, self._timestamps = index.offsets[:size], index.timestamps[:size]
        self._is_proven = np.zeros(self._offsets.size, np.bool_)
        self._is_sorted = bool((np.diff(self._offsets) >= 0).all())

    def step(self, run: Run) -> None:
        if not is_ascending(run):
            return
        rows = slice(run.first_row, run.row_end)
        last_offsets, timestamps = run.table.last_offset[rows], run.table.max_timestamp[rows]
        largest = np.maximum.accumulate(np.concatenate([[self._largest], timestamps]))[1:]
        self._largest = int(largest[-1])
        low, high = int(run.table.base_offset[run.first_row]), int(last_offsets[-1])
        here = entries_in(self._offsets, low, high + 1, is_sorted=self._is_sorted)
        here = here[~self._is_proven[here]]
        if not here.size:
            return
        found = np.minimum(np.searchsorted(last_offsets, self._offsets[here]), last_offsets.size - 1)
        is_right = (last_offsets[found] == self._offsets[here]) & (timestamps[found] == self._timestamps[here])
        is_right &= largest[found] == self._timestamps[here]
        self._is_proven[here] = True
        for entry, row in zip(here[~is_right].tolist(), found[~is_right].tolist(), strict=True):
            if self._evidence.segment_has_damage and self._timestamps[entry] >= largest[row]:
                continue  # the batch that had the timestamp may be among those that are lost
            self._wrong[entry] = (
                f"a batch that ends with offset {int(last_offsets[row])} and has the largest timestamp so far, "
                f"{int(largest[row])}",
                self._entry(entry),
            )

    def skip(self, piece: Damage | Tail) -> None:
        """A timestamp, or the batch of an entry, may be in there, which is evidence."""

    def end(self, end: SegmentEnd) -> None:
        is_judged = not (self._evidence.segment_has_damage or end.is_growing)
        if is_judged:
            for entry in np.flatnonzero(~self._is_proven).tolist():
                self._wrong[entry] = ("an offset of a batch in the segment", self._entry(entry))
        kept = kept_entries(self._wrong, self._offsets >= self._evidence.end_offset, is_in_use=self._is_in_use)
        offsets, timestamps = self._offsets[:kept], self._timestamps[:kept]
        report_order(self._report, rules.TIME_INDEX, self._path, timestamps, "timestamp", is_strict=True)
        report_order(self._report, rules.TIME_INDEX, self._path, offsets, "offset", is_strict=False)
        report_wrong(self._report, rules.TIME_INDEX, self._path, offsets, self._wrong, time_index.ENTRY_SIZE)
        if not is_judged:
            return
        is_closed = end.files is not self._partition.last_segment or self._partition.surroundings.was_closed
        last = int(self._timestamps[-1]) if self._timestamps.size else _NO_TIMESTAMP
        if is_closed and self._path is not None and last < self._largest:
            self._report.add(
                rules.TIME_INDEX_END, self._path, expected=f"timestamp {self._largest} at the end", found=last
            )

    def finish(self) -> None:
        """Nothing is left to say."""

    def _entry(self, entry: int) -> str:
        return f"timestamp {int(self._timestamps[entry])} at offset {int(self._offsets[entry])}"


def entries_in(values: Int64Array, start: int, end: int, *, is_sorted: bool) -> Int64Array:
    """Numbers of the entries whose value is in [start, end), int64; found by a search if the values ascend."""
    if not is_sorted:
        return np.flatnonzero((values >= start) & (values < end))
    first, last = np.searchsorted(values, [start, end])
    return np.arange(first, last)


def kept_size(is_zero: npt.NDArray[np.bool_], is_base: npt.NDArray[np.bool_]) -> int:
    """Entries before the zeros of a preallocated file; the base offset is nowhere but at the beginning."""
    if is_zero.size and is_zero[0]:
        return 0
    later = np.flatnonzero(is_base[1:])
    return int(later[0]) + 1 if later.size else is_base.size


def has_zeros(partition: Partition, report: Report, segment: SegmentFiles, path: str, zero_count: int) -> None:
    """Zeros behind the entries are right only in a file that is in use, or about to be made anew."""
    if zero_count and not partition.will_be_recovered(segment):
        report.add(rules.INDEX_ZEROS, path, expected="entries up to the end", found=f"{zero_count} of zeros")


def odd_size(report: Report, rule: Rule, path: str, size: int, entry_size: int) -> None:
    """An index is whole entries."""
    if size % entry_size:
        report.add(rule, path, expected=f"a multiple of {entry_size} bytes", found=size)


def kept_entries(wrong: WrongEntries, is_beyond: npt.NDArray[np.bool_], *, is_in_use: bool) -> int:
    """Return how many entries are the index's.

    Behind those of an index in use are bytes of entries that a truncation took away (`AbstractIndex.truncateToEntries0`
    moves the end alone): wrong ones with no right one behind them, that lead beyond the log or follow on a right one.

    Args:
        is_beyond: bool, 1-D: which entries lead beyond the end of the log.
    """
    count = is_beyond.size
    while is_in_use and count - 1 in wrong and is_beyond[count - 1]:
        count -= 1
    kept = count
    while is_in_use and kept - 1 in wrong:
        kept -= 1
    return kept or count


def report_wrong(
    report: Report, rule: Rule, path: str | None, offsets: Int64Array, wrong: WrongEntries, entry_size: int
) -> None:
    """Report the wrong ones among the entries whose offsets these are."""
    for entry, (expected, found) in sorted(wrong.items()):
        if entry < offsets.size:
            offset = int(offsets[entry])
            report.add(rule, path, expected=expected, found=found, position=entry * entry_size, offset=offset)


def report_order(
    report: Report, rule: Rule, path: str | None, values: Int64Array, name: str, *, is_strict: bool
) -> None:
    """Report entries that do not ascend."""
    wrong = values[1:] <= values[:-1] if is_strict else values[1:] < values[:-1]
    for entry in np.flatnonzero(wrong).tolist():
        above = "above" if is_strict else "not below"
        report.add(
            rule,
            path,
            expected=f"entry {entry + 1} with a {name} {above} {values[entry]}",
            found=int(values[entry + 1]),
        )


def missing(report: Report, rule: Rule, segment: SegmentFiles, kind: str) -> None:
    """The segment has no such file, and has not vanished itself."""
    report.add(rule, segment.log, expected=f"a {kind} beside it", found="none")
