"""Every offset of a partition by what is there, so that a hole in what a consumer reads has a name.

A consumer sees holes where there are control records, aborted records, and where records were: dropped by the cleaner,
deleted by retention, damaged. Anything else is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.batch_table import Int64Array
from ...layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from ..evidence import Known
from .batches import AuditedBatches, Follower
from .transactions import NONE, PartitionTransactions


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


class ReadableOffsets(NamedTuple):
    """A partition as a consumer can read it: offsets from `start` to `stable_end`, or to `end`; both exclusive.

    Attributes:
        ranges: from offset 0 to the log's end; of a partition they are made while one goes over them.
        is_behind: there may be more: the replica is not in sync, or a damaged batch is behind the end.
    """

    start: int
    stable_end: int
    end: int
    ranges: Iterable[OffsetRange]
    is_behind: bool = False


_LABELS = list(Label)
_COMMITTED, _ABORTED, _OPEN, _CONTROL, _COMPACTED, _DELETED, _DAMAGED, _LOST = range(len(_LABELS))
_THIN, _FULL, _EMPTY = range(3)  # records at some offsets, at each, at none
_SHAPE_COUNT = 3


class _Columns(NamedTuple):
    """Ranges one behind the other, the first from `start` on; int64 columns of one length.

    Attributes:
        transactions: the number of the transaction that is not decided yet, -1 for none.
    """

    start: int
    ends: Int64Array
    labels: Int64Array
    transactions: Int64Array
    counts: Int64Array

    @property
    def starts(self) -> Int64Array:
        """Where each begins."""
        return np.concatenate([[self.start], self.ends[:-1]])


class _Packed(NamedTuple):
    """The same in nine bytes a range: a log of transactions has two of each.

    Attributes:
        kinds: label and shape in one, int8.
        rest: int64[3, n]: number, transaction and count of those that have records at some offsets, or are open.
    """

    start: int
    ends: Int64Array
    kinds: npt.NDArray[np.int8]
    rest: Int64Array


class Holes(NamedTuple):
    """Batches before or in which offsets may be missing."""

    batches: AuditedBatches


class OffsetRanges(Follower):
    """Follows the batches; neighbours of one kind are one range. `history` steps before it.

    Iterating yields ranges from offset 0 to the log's end. Data of no transaction is that of a committed one, whose
    marker is gone.
    """

    def __init__(self, history: PartitionTransactions) -> None:
        self._history, self._evidence = history, history.evidence
        self._parts: list[_Packed] = []

    def step(self, batches: AuditedBatches) -> None:
        table = batches.table
        counts = np.where(batches.is_v2, table.record_count, 1)
        labels = np.where(batches.is_v2 & (table.attributes & TRANSACTIONAL_FLAG != 0), _OPEN, _COMMITTED)
        labels[batches.is_v2 & (table.attributes & CONTROL_FLAG != 0)] = _CONTROL
        hole_labels = np.full(labels.size, _LOST)
        hole_labels[0] = _DAMAGED if batches.is_after_damage else _LOST
        none = np.zeros(labels.size, np.int64)
        holes = np.stack([batches.base, hole_labels, none + NONE, none])
        data = np.stack([batches.last + 1, labels, batches.transactions, counts])
        start = self._parts[-1].ends.item(-1) if self._parts else batches.before.item(0)
        ranges = _forwards(start, np.stack([holes, data], axis=2).reshape(4, -1))
        if ranges.ends.size:
            self._parts.append(_packed(_merged(self._decided(ranges))))

    def view(self) -> ReadableOffsets:
        """Return the partition as a consumer can read it."""
        history, evidence = self._history, self._evidence
        is_behind = evidence.cluster.is_in_sync(*evidence.partition.key) is Known.NO or not evidence.is_end_known
        start = evidence.partition.first_offset
        return ReadableOffsets(start, history.last_stable_offset, history.log_end_offset, self, is_behind)

    def __iter__(self) -> Iterator[OffsetRange]:
        last: OffsetRange | None = None
        for one in self._all():
            if last is not None and _is_more_of(last, one):
                last = OffsetRange(last.start, one.end, one.label, last.record_count + one.record_count)
                continue
            if last is not None:
                yield last
            last = one
        if last is not None:
            yield last

    def _all(self) -> Iterator[OffsetRange]:
        """Yield the ranges of one part after the other."""
        if self._parts and self._parts[0].start:
            yield OffsetRange(0, self._parts[0].start, Label.RETENTION, 0)
        for part in self._parts:
            ranges = _merged(self._labelled(_unpacked(part)))
            columns = (ranges.starts, ranges.ends, ranges.labels, ranges.counts)
            for start, end, label, count in zip(*(column.tolist() for column in columns), strict=True):
                yield OffsetRange(start, end, _LABELS[label], count)

    def _decided(self, ranges: _Columns) -> _Columns:
        """Label data of transactions by what became of them, where that is known by now."""
        is_numbered = ranges.transactions != NONE
        found = self._history.table[ranges.transactions[is_numbered]]
        outcomes = np.where(found["is_commit"], _COMMITTED, _ABORTED)
        labels = ranges.labels.copy()
        labels[is_numbered] = np.where(found["marker_offset"] == NONE, _OPEN, outcomes)
        return ranges._replace(labels=labels, transactions=np.where(labels == _OPEN, ranges.transactions, NONE))

    def _labelled(self, ranges: _Columns) -> _Columns:
        """Label all that is known behind the last batch."""
        ranges = self._decided(ranges)
        ends, labels = ranges.ends, ranges.labels
        is_lost = (ends > self._evidence.cleaner_offset) & (self._evidence.is_cleaned_beyond is Known.NO)
        labels = np.where((labels == _OPEN) & (ranges.transactions == NONE), _COMMITTED, labels)
        labels = np.where((labels == _LOST) & ~is_lost, _COMPACTED, labels)
        is_deleted = ends <= self._evidence.partition.first_offset
        labels, counts = np.where(is_deleted, _DELETED, labels), np.where(is_deleted, 0, ranges.counts)
        return ranges._replace(labels=labels, counts=counts, transactions=np.full(ends.size, NONE))


def _forwards(start: int, rows: Int64Array) -> _Columns:
    """Put rows of ends, labels, transactions and counts one behind the other, without those that are empty."""
    rows[0] = np.maximum.accumulate(np.maximum(rows[0], start))
    is_there = np.diff(rows[0], prepend=start) > 0
    return _Columns(start, *rows[:, is_there])


def _shapes(ranges: _Columns) -> Int64Array:
    return np.where(ranges.counts == ranges.ends - ranges.starts, _FULL, np.where(ranges.counts == 0, _EMPTY, _THIN))


def _merged(ranges: _Columns) -> _Columns:
    """Put together neighbours of one kind and transaction that have a record at each offset, or none at all."""
    shapes, is_first = _shapes(ranges), np.ones(ranges.ends.size, np.bool_)
    is_first[1:] = shapes[1:] == _THIN
    for column in (ranges.labels, ranges.transactions, shapes):
        is_first[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], is_first.size) - 1
    counts = np.add.reduceat(ranges.counts, firsts)
    return _Columns(ranges.start, ranges.ends[lasts], ranges.labels[firsts], ranges.transactions[firsts], counts)


def _is_more_of(before: OffsetRange, one: OffsetRange) -> bool:
    """Whether two neighbours are of one kind, with a record at each offset or none at all."""
    is_full = all(each.record_count == each.end - each.start for each in (before, one))
    return before.label is one.label and (is_full or before.record_count == one.record_count == 0)


def _packed(ranges: _Columns) -> _Packed:
    shapes = _shapes(ranges)
    rest = np.flatnonzero((shapes == _THIN) | (ranges.transactions != NONE))
    kinds = (ranges.labels * _SHAPE_COUNT + shapes).astype(np.int8)
    return _Packed(ranges.start, ranges.ends, kinds, np.stack([rest, ranges.transactions[rest], ranges.counts[rest]]))


def _unpacked(part: _Packed) -> _Columns:
    labels, shapes = np.divmod(part.kinds.astype(np.int64), _SHAPE_COUNT)
    ranges = _Columns(part.start, part.ends, labels, np.full(labels.size, NONE), shapes)
    rest, transactions, counts = part.rest
    ranges.transactions[rest] = transactions
    found = np.where(shapes == _FULL, ranges.ends - ranges.starts, 0)
    found[rest] = counts
    return ranges._replace(counts=found)


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
