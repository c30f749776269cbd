"""Every offset of a partition by what is there, so that a hole in what a consumer reads has a name.

A consumer sees holes where there are control records, aborted records, and where records were: dropped by the cleaner,
deleted by retention, damaged. Anything else is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import numpy as np

from ...columns.batch_table import Int64Array
from ...layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from ..evidence import Evidence, Known
from .batches import AuditedBatches, Follower
from .transactions import NONE, PartitionTransactions, Table


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
        is_behind: there may be more: the replica is not in sync, or a damaged batch is behind the end.
    """

    start: int
    stable_end: int
    end: int
    ranges: tuple[OffsetRange, ...]
    is_behind: bool = False


_LABELS = list(Label)
_COMMITTED, _ABORTED, _OPEN, _CONTROL, _COMPACTED, _DELETED, _DAMAGED, _LOST = range(len(_LABELS))
_START, _END, _LABEL, _TRANSACTION, _COUNT = range(5)  # columns of ranges


class Holes(NamedTuple):
    """Batches before or in which offsets may be missing."""

    batches: AuditedBatches


class OffsetRanges(Follower):
    """Follows the batches; neighbours of one kind are one range. `transactions` steps before it.

    While it follows, data of any transaction is OPEN, and any hole without damage LOST.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._parts: list[Int64Array] = []  # int64, 5 × n

    def step(self, batches: AuditedBatches) -> None:
        table, base, end = batches.table, batches.base, batches.last + 1
        counts = np.where(batches.is_v2, table.record_count, 1)
        labels = np.where(batches.is_v2 & (table.attributes & TRANSACTIONAL_FLAG != 0), _OPEN, _COMMITTED)
        labels[batches.is_v2 & (table.attributes & CONTROL_FLAG != 0)] = _CONTROL
        data = np.stack([base, end, labels, batches.transactions, counts])
        is_hole = base > batches.before
        hole_labels = np.full(base.size, _LOST)
        hole_labels[0] = _DAMAGED if batches.is_after_damage else _LOST
        none = np.zeros(base.size, np.int64)
        holes = np.stack([batches.before, base, hole_labels, none + NONE, none])
        both = np.stack([holes, data], axis=2).reshape(5, -1)
        self._parts.append(_merged(both[:, np.stack([is_hole, np.ones_like(is_hole)], axis=1).reshape(-1)]))

    def view(self, history: PartitionTransactions) -> ReadableOffsets:
        """Return the partition as a consumer can read it, by its transactions."""
        key, start = self._evidence.partition.key, self._evidence.partition.first_offset
        is_behind = self._evidence.cluster.is_in_sync(*key) is Known.NO or not self._evidence.is_end_known
        ranges = self._labelled(history.table)
        return ReadableOffsets(start, history.last_stable_offset, history.log_end_offset, ranges, is_behind)

    def _labelled(self, transactions: Table) -> tuple[OffsetRange, ...]:
        """Ranges from 0 to the log's end; data of no transaction is that of a committed one, whose marker is gone."""
        ranges = np.concatenate([np.empty((5, 0), np.int64), *self._parts], axis=1)
        outcomes = np.where(transactions["is_commit"], _COMMITTED, _ABORTED)
        outcomes = np.append(np.where(transactions["marker_offset"] == NONE, _OPEN, outcomes), _COMMITTED)
        is_lost = (ranges[_END] > self._evidence.cleaner_offset) & (self._evidence.is_cleaned_beyond is Known.NO)
        labels = np.where(ranges[_LABEL] == _OPEN, outcomes[ranges[_TRANSACTION]], ranges[_LABEL])
        labels = np.where((ranges[_LABEL] == _LOST) & ~is_lost, _COMPACTED, labels)
        is_deleted = ranges[_END] <= self._evidence.partition.first_offset
        ranges[_LABEL], ranges[_TRANSACTION] = np.where(is_deleted, _DELETED, labels), NONE
        ranges[_COUNT, is_deleted] = 0
        if ranges.size and ranges[_START, 0]:
            before = np.array([[0], [ranges[_START, 0]], [_DELETED], [NONE], [0]])
            ranges = np.concatenate([before, ranges], axis=1)
        columns = _merged(ranges).tolist()
        return tuple(
            OffsetRange(start, end, _LABELS[label], count) for start, end, label, _, count in zip(*columns, strict=True)
        )


def _merged(ranges: Int64Array) -> Int64Array:
    """Put together neighbours of one kind and transaction that have a record at each offset, or none at all."""
    start, end, kind, transaction, count = ranges
    shape = np.where(count == end - start, 1, np.where(count == 0, 0, NONE))
    is_same = (start[1:] == end[:-1]) & (kind[1:] == kind[:-1]) & (transaction[1:] == transaction[:-1])
    is_same &= (shape[1:] == shape[:-1]) & (shape[1:] != NONE)
    firsts = np.flatnonzero(np.concatenate([[True], ~is_same])[: start.size])
    lasts = np.append(firsts[1:], start.size)[: firsts.size] - 1
    counts = np.add.reduceat(count, firsts) if firsts.size else count
    return np.stack([start[firsts], end[lasts], kind[firsts], transaction[firsts], counts])


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
