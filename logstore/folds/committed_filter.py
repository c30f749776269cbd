"""Batches of aborted transactions, which a read_committed consumer skips (`CompletedFetch`, KIP-98).

    state = CommittedFilter(aborted)                         # of a fetch, or of all `.txnindex` files of a log
    is_aborted = step(state, data, table, first_row, row_end)

A fetch tells which producer aborted from which offset on; the ABORT marker in the log tells where the transaction ends.
Batches without transaction are kept, also if their producer has aborted one, and so are batches below the first
offset. What is returned for a control batch has no meaning: no consumer gets one.

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
from ..layout.batch import CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ..model import ControlRecordType
from .transaction_marker import control_types

_OFFSET_MIN = np.iinfo(np.int64).min


class CommittedFilter:
    """The state between two steps.

    Attributes:
        waiting: (first offset, producer id) of aborted transactions not reached yet, the earliest last.
        aborted: producers whose transactional batches are skipped at present.
    """

    __slots__ = ("aborted", "waiting")

    def __init__(self, aborted: Iterable[tuple[int, int]] = ()) -> None:
        """Take (producer id, first offset) of each aborted transaction, in any order."""
        self.waiting = sorted(((first_offset, producer_id) for producer_id, first_offset in aborted), reverse=True)
        self.aborted: set[int] = set()

    def begin(self, last_offset: int) -> None:
        """Skip the producers of the transactions that begin up to this offset (`consumeAbortedTransactionsUpTo`)."""
        while self.waiting and self.waiting[-1][0] <= last_offset:
            self.aborted.add(self.waiting.pop()[1])


def step(state: CommittedFilter, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> BoolArray:
    """Return which of the rows `first_row` … `row_end` - 1 of `data` must be skipped: bool[row_end - first_row]."""
    rows = slice(first_row, row_end)
    producer_ids, attributes = table.producer_id[rows], table.attributes[rows]
    is_aborted = np.zeros(producer_ids.size, np.bool_)
    aborting = {*state.aborted, *(producer_id for _, producer_id in state.waiting)}
    if not aborting or not producer_ids.size:
        return is_aborted
    has_producer = producer_ids > NO_PRODUCER_ID
    known = np.flatnonzero(has_producer & np.isin(producer_ids, list(aborting)))
    control = known[attributes[known] & CONTROL_FLAG != 0]
    # before the state changes: the caller may step up to a batch that this refuses
    abort_markers = control[control_types(data, table, control + first_row) == ControlRecordType.ABORT]
    ends = set(abort_markers.tolist())
    is_transactional = attributes[known] & TRANSACTIONAL_FLAG != 0
    # the batches of all producers begin transactions, even where damaged offsets go back
    reached = np.maximum.accumulate(np.where(has_producer, table.last_offset[rows], _OFFSET_MIN))
    columns = known.tolist(), producer_ids[known].tolist(), reached[known].tolist(), is_transactional.tolist()
    for row, producer_id, last_offset, may_be_skipped in zip(*columns, strict=True):
        state.begin(last_offset)
        if row in ends:
            state.aborted.discard(producer_id)
        elif may_be_skipped and producer_id in state.aborted:
            is_aborted[row] = True
    state.begin(int(reached[-1]))
    return is_aborted


def is_in_aborted(aborted: Int64Array, table: BatchTable) -> BoolArray:
    """Return bool[count]: which batches belong to an aborted transaction, without what comes before them.

    Args:
        aborted: int64[n, 3]: producer id, first and last offset; ranges of one producer ascend and do not overlap.
    """
    found = np.zeros(len(table), np.bool_)
    is_transactional = (table.attributes & TRANSACTIONAL_FLAG != 0) & (table.magic >= MAGIC_V2)
    for producer_id in np.intersect1d(table.producer_id[is_transactional], aborted[:, 0]).tolist():
        ranges = aborted[aborted[:, 0] == producer_id]
        rows = np.flatnonzero(is_transactional & (table.producer_id == producer_id))
        slots = np.searchsorted(ranges[:, 1], table.base_offset[rows], side="right") - 1
        found[rows] = (slots >= 0) & (table.base_offset[rows] <= ranges[slots, 2])
    return found
