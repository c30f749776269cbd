"""The kind of each offset of a partition, so that every gap that a consumer sees has a name.

A consumer sees gaps at control records and aborted records, and where records were cleaned away, deleted by retention
or damaged. Any other gap is a loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.batch_table import Int64Array
from ...layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from ..cluster import NEVER, Known
from ..evidence import AuditedBatches, Follower
from .transactions import NONE, PartitionTransactions, Table


class Label(Enum):
    """The kind of an offset."""

    COMMITTED = "committed"  # of a committed transaction, or of none
    ABORTED = "aborted"
    OPEN = "open"
    CONTROL = "control"
    COMPACTED = "compacted"
    RETENTION = "retention"
    DAMAGED = "damaged"
    LOST = "lost"


class RangeColumns(NamedTuple):
    """Ranges of offsets one behind the other, in columns: int64[n] each; ends exclusive.

    Attributes:
        labels: by their number in `Label`.
        counts: records there; fewer than offsets where the cleaner has been.
    """

    starts: Int64Array
    ends: Int64Array
    labels: Int64Array
    counts: Int64Array


class ReadableOffsets(NamedTuple):
    """A partition as a consumer can read it: offsets from `start` to `stable_end`, or to `end`; both exclusive.

    Attributes:
        is_behind: there may be more: the replica is not in sync, or a damaged batch is behind the end.
        oldest: where the log starts, which is before `start` if segments are in remote storage.
        settled_ms: what was written up to then is in the log as it was read, or was lost; ms.
    """

    start: int
    stable_end: int
    end: int
    ranges: OffsetRanges
    is_behind: bool = False
    oldest: int = 0
    settled_ms: int = NEVER


_COMMITTED, _ABORTED, _OPEN, _CONTROL, _COMPACTED, _DELETED, _DAMAGED, _LOST = range(len(Label))
# ranges one behind the other: each begins where the one before ends; `transaction` is the number of one that is not
# decided yet, -1 for none
_RANGES = np.dtype([("end", "i8"), ("label", "i1"), ("transaction", "i4"), ("count", "i8")])
_THIN, _FULL, _EMPTY = range(3)  # records at some offsets, at each, at none


class _Part(NamedTuple):
    """Ranges in few bytes each, as a log of transactions has two of each: a row of _RANGES in columns.

    Attributes:
        end: of the last one.
        behind: how far behind the end each ends.
        open: int64[2, n]: the rows of transactions that are not decided yet, and their numbers.
    """

    end: int
    behind: npt.NDArray[np.unsignedinteger[Any]]
    labels: npt.NDArray[np.int8]
    counts: npt.NDArray[np.unsignedinteger[Any]]
    open: Int64Array

    @classmethod
    def of(cls, rows: Table) -> _Part:
        """Keep rows."""
        end, is_open = int(rows["end"][-1]), rows["transaction"] != NONE
        numbers = np.stack([np.flatnonzero(is_open), rows["transaction"][is_open]])
        return cls(end, _narrow(end - rows["end"]), rows["label"].copy(), _narrow(rows["count"]), numbers)

    def rows(self) -> Table:
        """Return them again."""
        found = np.empty(self.behind.size, _RANGES)
        found["end"], found["label"] = self.end - self.behind.astype(np.int64), self.labels
        found["count"], found["transaction"] = self.counts, NONE
        found["transaction"][self.open[0]] = self.open[1]
        return found


def _narrow(column: Int64Array) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return the column in as few bytes as its values need."""
    return column.astype(np.min_scalar_type(int(column.max())))


class OffsetRanges(Follower):
    """Collects ranges of offsets, joined with neighbours of their kind; `history` steps before it.

    Transactional data that is in no transaction counts as
    committed: its marker is gone.
    """

    def __init__(self, history: PartitionTransactions) -> None:
        self._history, self._evidence = history, history.evidence
        self._start = self._end = 0
        self._parts: list[_Part] = []

    def step(self, batches: AuditedBatches) -> None:
        table, is_v2 = batches.table, batches.is_v2
        if not self._parts:
            self._start = self._end = int(batches.before[0])
        rows = np.zeros(2 * len(table), _RANGES)  # what is missing before each batch, and the batch
        missing, data = rows[::2], rows[1::2]
        missing["end"], missing["label"], missing["transaction"] = batches.base, _LOST, NONE
        if batches.is_after_damage:
            missing["label"][0] = _DAMAGED
        data["end"], data["transaction"] = batches.last + 1, batches.transactions
        data["label"] = np.where(is_v2 & (table.attributes & TRANSACTIONAL_FLAG != 0), _OPEN, _COMMITTED)
        data["label"][is_v2 & (table.attributes & CONTROL_FLAG != 0)] = _CONTROL
        data["count"] = np.where(is_v2, np.maximum(table.record_count, 0), batches.last - batches.base + 1)
        rows["end"] = np.maximum.accumulate(np.maximum(rows["end"], self._end))
        rows = rows[np.diff(rows["end"], prepend=self._end) > 0]
        if rows.size:
            self._decide(rows)
            self._parts.append(_Part.of(_merged(rows, self._end)))
            self._end = int(rows["end"][-1])

    def view(self) -> ReadableOffsets:
        """Return the partition as a consumer can read it."""
        history, evidence = self._history, self._evidence
        is_behind = evidence.cluster.is_in_sync(*evidence.partition.key) is Known.NO or not evidence.is_end_known
        start = evidence.partition.first_offset
        end, oldest = history.log_end_offset, evidence.oldest_offset
        # the log may have been read, or copied, before other files of the last minute
        settled_ms = max(evidence.cluster.settled_ms, history.times.read_up_to_ms)
        return ReadableOffsets(start, history.last_stable_offset, end, self, is_behind, oldest, settled_ms)

    def blocks(self) -> Iterator[RangeColumns]:
        """Yield the ranges from offset 0 to the log's end in columns: there may be millions."""
        start, rows = 0, np.array([(self._start, _DELETED, NONE, 0)][: bool(self._start)], _RANGES)
        for part in self._parts:
            rows = _merged(np.concatenate([rows, self._labelled(part)]), start)
            if len(rows) > 1:
                yield _columns(start, rows[:-1])
                start = int(rows["end"][-2])
            rows = rows[-1:]  # the next part may begin with more of it
        if len(rows):
            yield _columns(start, rows)

    def _decide(self, rows: Table) -> None:
        """Label the data of transactions that are decided by now."""
        is_numbered = rows["transaction"] != NONE
        found = self._history.table[rows["transaction"][is_numbered]]
        outcomes = np.where(found["is_commit"], _COMMITTED, _ABORTED)
        rows["label"][is_numbered] = np.where(found["marker_offset"] == NONE, _OPEN, outcomes)
        rows["transaction"][rows["label"] != _OPEN] = NONE

    def _labelled(self, part: _Part) -> Table:
        """Return the rows with the final labels, after the last batch."""
        rows, evidence = part.rows(), self._evidence
        self._decide(rows)
        label = rows["label"]
        label[(label == _OPEN) & (rows["transaction"] == NONE)] = _COMMITTED
        label[(label == _LOST) & ~evidence.is_lost(rows["end"])] = _COMPACTED
        is_deleted = rows["end"] <= evidence.partition.first_offset
        label[is_deleted], rows["count"][is_deleted], rows["transaction"] = _DELETED, 0, NONE
        return rows


def _merged(rows: Table, start: int) -> Table:
    """Join neighbours of one kind and transaction that have a record at each offset, or none at all."""
    counts = rows["count"]
    shapes = np.where(counts == np.diff(rows["end"], prepend=start), _FULL, np.where(counts == 0, _EMPTY, _THIN))
    is_first = np.ones(rows.size, np.bool_)
    is_first[1:] = shapes[1:] == _THIN
    for column in (rows["label"], rows["transaction"], shapes):
        is_first[1:] |= column[1:] != column[:-1]
    firsts = np.flatnonzero(is_first)
    found: Table = rows[np.append(firsts[1:], rows.size) - 1]
    found["count"] = np.add.reduceat(counts, firsts)
    return found


def _columns(start: int, rows: Table) -> RangeColumns:
    ends = rows["end"]
    return RangeColumns(np.concatenate([[start], ends[:-1]]), ends, rows["label"].astype(np.int64), rows["count"])


def visible_count(ranges: OffsetRanges, start: int, end: int) -> tuple[int, bool]:
    """Return how many records a read_committed consumer gets at offsets in [start, end), and whether that is exact.

    It is a lower bound if `start` or `end` is within a batch that the cleaner has thinned out.
    """
    count, is_exact = 0, True
    for block in ranges.blocks():
        first, last = np.maximum(block.starts, start), np.minimum(block.ends, end)
        is_seen = (block.labels == _COMMITTED) & (first < last)
        missing = (block.ends - block.starts) - block.counts
        count += int(np.maximum(last - first - missing, 0)[is_seen].sum())
        is_cut = (first > block.starts) | (last < block.ends)
        is_exact = is_exact and not (is_seen & is_cut & (missing > 0)).any()
    return count, bool(is_exact)
