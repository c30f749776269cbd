"""Batches that a read_committed consumer skips: those of aborted transactions (`CompletedFetch`, KIP-98).

    state = CommittedFilter(aborted)                         # of a fetch, or of all `.txnindex` files of a log
    is_aborted = step(state, data, table, first_row, row_end)

A fetch tells which producer aborted from which offset on; the ABORT marker in the log tells where the transaction ends.
Batches without transaction are kept, also those of a producer that aborted one, and so are batches below the first
offset. Control batches are for no consumer, whatever is returned for them here.

>>> from ..kernels.scan import batches as scan
>>> matrix = np.zeros((scan.COLUMN_COUNT, 3), np.int64)
>>> matrix[scan.BASE_OFFSET], matrix[scan.PRODUCER_ID] = range(3), (7, 8, 7)
>>> matrix[scan.ATTRIBUTES] = TRANSACTIONAL_FLAG
>>> step(CommittedFilter([(7, 1)]), np.zeros(0, np.uint8), BatchTable(matrix, 3, scan.END, 0), 0, 3).tolist()
[False, False, True]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ..layout.batch import CONTROL_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ..model import ControlRecordType
from .transaction_marker import control_types

_OFFSET_MIN = np.iinfo(np.int64).min


class CommittedFilter:
    """The state between two steps.

    Attributes:
        waiting: int64[n, 2]: producer id and first offset of aborted transactions not reached yet, by first offset.
        aborted: int64, ascending: producers whose transactional batches are skipped at present.
    """

    __slots__ = ("aborted", "waiting")

    def __init__(self, aborted: Iterable[tuple[int, int]] = ()) -> None:
        """Take (producer id, first offset) of each aborted transaction, in any order."""
        entries = np.array(list(aborted), np.int64).reshape(-1, 2)
        self.waiting: Int64Array = entries[np.argsort(entries[:, 1], kind="stable")]
        self.aborted: Int64Array = np.empty(0, np.int64)


def step(state: CommittedFilter, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> BoolArray:
    """Return which of the rows `first_row` … `row_end` - 1 must be skipped: bool[row_end - first_row].

    Args:
        data: uint8, what `table` was scanned from.

    Raises:
        InvalidRecordError, …: a control batch of an aborting producer that does not parse, as `control_types`.
    """
    rows = slice(first_row, row_end)
    producer_ids = table.producer_id[rows]
    is_aborted = np.zeros(producer_ids.size, np.bool_)
    if not (state.aborted.size or state.waiting.size) or not producer_ids.size:
        return is_aborted
    producers = np.union1d(state.aborted, state.waiting[:, 0])
    places = np.minimum(np.searchsorted(producers, producer_ids), producers.size - 1)
    known = np.flatnonzero((producers[places] == producer_ids) & (producer_ids > NO_PRODUCER_ID))
    attributes = table.attributes[rows][known]
    control = known[attributes & CONTROL_FLAG != 0]
    timeline = _Timeline(producers, producer_ids.size)
    timeline.begin(state.aborted, -1)
    begin_rows = _begin_rows(state, table, rows)
    is_begun = begin_rows < producer_ids.size
    timeline.begin(state.waiting[is_begun, 0], begin_rows[is_begun])
    abort_markers = control[control_types(data, table, control + first_row) == ControlRecordType.ABORT]
    timeline.end(producer_ids, abort_markers)
    transactional = known[attributes & TRANSACTIONAL_FLAG != 0]
    is_aborted[transactional] = timeline.is_within(producer_ids[transactional], transactional)
    is_aborted[abort_markers] = False
    state.waiting = state.waiting[~is_begun]
    state.aborted = producers[timeline.is_within(producers, producer_ids.size)]
    return is_aborted


def _begin_rows(state: CommittedFilter, table: BatchTable, rows: slice) -> Int64Array:
    """Return the first row, of any producer, that ends at or above the first offset of each waiting transaction."""
    has_producer = table.producer_id[rows] > NO_PRODUCER_ID
    reached = np.maximum.accumulate(np.where(has_producer, table.last_offset[rows], _OFFSET_MIN))
    return np.searchsorted(reached, state.waiting[:, 1])


class _Timeline:
    """For each producer the rows where aborted transactions begin and end, in two ascending arrays.

    The key of a producer's row is the producer's number times the row count, plus the row.
    """

    def __init__(self, producers: Int64Array, row_count: int) -> None:
        self._producers = producers
        self._stride = row_count + 2
        self._begins = self._ends = np.empty(0, np.int64)

    def begin(self, producer_ids: Int64Array, rows: Int64Array | int) -> None:
        """Add the begin of an aborted transaction of each producer at these rows; -1 is before the first row."""
        self._begins = np.sort(np.concatenate([self._begins, self._keys(producer_ids, rows)]))

    def end(self, producer_ids: Int64Array, rows: Int64Array) -> None:
        """Set the ends: these rows, the markers, end transactions of their producers."""
        self._ends = np.sort(self._keys(producer_ids[rows], rows))

    def is_within(self, producer_ids: Int64Array, rows: Int64Array | int) -> BoolArray:
        """Return whether the last begin at or before a row has no end between it and the row."""
        keys = self._keys(producer_ids, rows)
        firsts = self._keys(producer_ids, -1)
        begin = _last_before(self._begins, keys + 1, firsts - 1)
        end = _last_before(self._ends, keys, firsts - 1)
        return begin > end

    def _keys(self, producer_ids: Int64Array, rows: Int64Array | int) -> Int64Array:
        keys: Int64Array = np.searchsorted(self._producers, producer_ids) * self._stride + (np.asarray(rows) + 1)
        return keys


def _last_before(ascending: Int64Array, limits: Int64Array, lowest: Int64Array) -> Int64Array:
    """Return the largest number below each limit, but at least `lowest`."""
    places = np.searchsorted(ascending, limits) - 1
    found = np.where(places >= 0, ascending[np.maximum(places, 0)] if ascending.size else lowest, lowest)
    return np.maximum(found, lowest)
