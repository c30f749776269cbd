"""Every offset of a partition by what is there, so that a hole in what a consumer reads has a name.

    ranges = OffsetRanges(evidence, report)     a check, for `log_pass.run_checks`
    ranges.labelled(transactions)                ranges from 0 to the log's end, one behind the other

A consumer sees holes where there are control records, aborted records, and where records were: dropped by the cleaner,
deleted by retention, damaged. Anything else is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import Int64Array
from ..disk.directory import SegmentFiles
from ..kernels.scan import batches as fields
from ..layout.batch import CONTROL_FLAG, MAGIC_V2, TRANSACTIONAL_FLAG
from ..view.walk import Damage, Run, Tail
from . import rules
from .evidence import Evidence, Known
from .log_pass import SegmentEnd
from .partition import Report
from .partition_transactions import PartitionTransaction


class Label(Enum):
    """What is at an offset."""

    COMMITTED = "committed"  # of a committed transaction, or of none
    ABORTED = "aborted"
    OPEN = "open"
    CONTROL = "control"
    COMPACTED = "compacted"
    RETENTION = "retention"
    DAMAGED = "damaged"
    LOST = "lost"


class OffsetRange(NamedTuple):
    """Offsets `start` … `end` - 1.

    Attributes:
        record_count: records there; fewer than offsets where the cleaner has been.
    """

    start: int
    end: int
    label: Label
    record_count: int


_PLAIN, _TRANSACTIONAL, _CONTROL, _HOLE, _DAMAGED = range(5)
_NOBODY = -1


class OffsetRanges:
    """Follows the batches; neighbours of one kind are one range."""

    def __init__(self, evidence: Evidence, report: Report) -> None:
        self._evidence = evidence
        self._report = report
        self._path: str | None = None
        self._end_offset: int | None = None
        self._is_after_damage = False
        self._rows: list[tuple[int, int, int, int, int]] = []  # start, end, kind, producer id, record count

    def begin(self, segment: SegmentFiles) -> None:
        self._path = segment.log
        if self._end_offset is None:
            self._end_offset = segment.base_offset

    def step(self, run: Run) -> None:
        table, rows = run.table, slice(run.first_row, run.row_end)
        base, end = table.base_offset[rows], table.last_offset[rows] + 1
        is_v2 = table.magic[rows] >= MAGIC_V2
        counts = np.where(is_v2, table.record_count[rows], 1)
        attributes = table.attributes[rows]
        kinds = np.where(is_v2 & (attributes & TRANSACTIONAL_FLAG != 0), _TRANSACTIONAL, _PLAIN)
        kinds[is_v2 & (attributes & CONTROL_FLAG != 0)] = _CONTROL
        owners = np.where(kinds == _TRANSACTIONAL, table.producer_id[rows], _NOBODY)
        before = np.concatenate([[base[0] if self._end_offset is None else self._end_offset], end[:-1]])
        self._tell_thin(run, np.flatnonzero(is_v2 & (counts < end - base)))
        starts = np.ones(base.size, np.bool_)
        starts[1:] = (kinds[1:] != kinds[:-1]) | (owners[1:] != owners[:-1]) | (base[1:] != end[:-1])
        starts[1:] |= (counts != end - base)[1:] | (counts != end - base)[:-1]
        firsts = np.flatnonzero(starts)
        lasts = np.append(firsts[1:], base.size) - 1
        sums = np.add.reduceat(counts, firsts)
        for first, last, count in zip(firsts.tolist(), lasts.tolist(), sums.tolist(), strict=True):
            self._hole(run, int(before[first]), int(base[first]), first)
            self._add(int(base[first]), int(end[last]), int(kinds[first]), int(owners[first]), count)
        self._end_offset = int(end[-1])

    def skip(self, piece: Damage | Tail) -> None:
        """The offsets that are missing next are in there."""
        self._is_after_damage = True

    def end(self, end: SegmentEnd) -> None:
        """Offsets go on from segment to segment."""

    def finish(self) -> None:
        """Nothing is left to say."""

    def labelled(self, transactions: Iterable[PartitionTransaction]) -> list[OffsetRange]:
        """Ranges from 0 to the log's end, ascending.

        Args:
            transactions: of this partition; data of none of them is that of a committed one, whose marker is gone.
        """
        outcomes = _Outcomes(transactions)
        found = [OffsetRange(0, self._rows[0][0], Label.RETENTION, 0)] if self._rows and self._rows[0][0] else []
        for start, end, kind, producer_id, count in self._rows:
            label = outcomes.label(producer_id, start) if kind == _TRANSACTIONAL else self._label(kind, end)
            if end <= self._evidence.partition.first_offset:
                label, count = Label.RETENTION, 0
            last = found[-1] if found else None
            is_same = last is not None and last.label is label and last.end == start
            if last is not None and is_same and _is_full(last) == (count == end - start):
                found[-1] = OffsetRange(last.start, end, label, last.record_count + count)
            else:
                found.append(OffsetRange(start, end, label, count))
        return found

    def _label(self, kind: int, end: int) -> Label:
        if kind == _HOLE:
            return Label.LOST if self._evidence.is_cleaned(end) is Known.NO else Label.COMPACTED
        return {_PLAIN: Label.COMMITTED, _CONTROL: Label.CONTROL, _DAMAGED: Label.DAMAGED}[kind]

    def _is_lost(self, end: int) -> bool:
        """Whether the rule is to be told of what is missing below `end`."""
        answer = self._evidence.is_cleaned(end)
        if answer is Known.UNKNOWN:
            self._evidence.leave_out(rules.OFFSETS_LOST)
        return answer is Known.NO

    def _hole(self, run: Run, start: int, end: int, row: int) -> None:
        """Offsets between two batches."""
        is_after_damage, self._is_after_damage = self._is_after_damage, False
        if start >= end:
            return
        self._add(start, end, _DAMAGED if is_after_damage else _HOLE, _NOBODY, 0)
        if not is_after_damage and self._is_lost(end):
            self._tell(run, row, start, f"{end - start} offsets up to {end - 1}")

    def _tell_thin(self, run: Run, rows: Int64Array) -> None:
        """Batches with fewer records than offsets."""
        for row in rows.tolist():
            place = run.first_row + row
            end = int(run.table.last_offset[place]) + 1
            if self._is_lost(end):
                span = int(run.table.matrix[fields.LAST_OFFSET_DELTA, place]) + 1
                found = f"{int(run.table.record_count[place])} of {span} records in the batch"
                self._tell(run, row, int(run.table.base_offset[place]), found)

    def _tell(self, run: Run, row: int, offset: int, found: str) -> None:
        self._report.add(
            rules.OFFSETS_LOST,
            self._path,
            expected="a record at each offset",
            found=f"none at {found}" if "up to" in found else found,
            position=int(run.table.position[run.first_row + row]),
            offset=offset,
        )

    def _add(self, start: int, end: int, kind: int, producer_id: int, count: int) -> None:
        if self._rows:
            last_start, last_end, last_kind, last_producer_id, last_count = self._rows[-1]
            is_same = (last_end, last_kind, last_producer_id) == (start, kind, producer_id)
            if is_same and last_count == last_end - last_start and count == end - start:
                self._rows[-1] = (last_start, end, kind, producer_id, last_count + count)
                return
        self._rows.append((start, end, kind, producer_id, count))


class _Outcomes:
    """What became of the transaction that holds an offset, found by a search among its producer's."""

    def __init__(self, transactions: Iterable[PartitionTransaction]) -> None:
        by_producer: dict[int, list[PartitionTransaction]] = {}
        for transaction in sorted(transactions, key=lambda one: one.first_offset):
            by_producer.setdefault(transaction.producer_id, []).append(transaction)
        self._transactions = by_producer
        self._starts = {
            producer_id: np.array([one.first_offset for one in found], np.int64)
            for producer_id, found in by_producer.items()
        }

    def label(self, producer_id: int, offset: int) -> Label:
        starts = self._starts.get(producer_id)
        if starts is None:
            return Label.COMMITTED
        index = int(np.searchsorted(starts, offset, side="right")) - 1
        if index < 0:
            return Label.COMMITTED
        transaction = self._transactions[producer_id][index]
        if transaction.marker is None:
            return Label.OPEN
        return Label.COMMITTED if transaction.marker.is_commit else Label.ABORTED


def _is_full(one: OffsetRange) -> bool:
    return one.record_count == one.end - one.start


def visible_count(ranges: Iterable[OffsetRange], start: int, end: int) -> tuple[int, bool]:
    """Records that a read_committed consumer gets at offsets in [start, end), and whether that is exact.

    It is not where `start` or `end` is within a batch that the cleaner has thinned out: then it is the least.
    """
    count, is_exact = 0, True
    for one in ranges:
        first, last = max(one.start, start), min(one.end, end)
        if one.label is not Label.COMMITTED or first >= last:
            continue
        missing = (one.end - one.start) - one.record_count
        count += max(last - first - missing, 0) if missing else last - first
        is_exact = is_exact and (not missing or (first, last) == (one.start, one.end))
    return count, is_exact
