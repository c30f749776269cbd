"""Batches of a segment to be cleaned, with checksums verified, and what became of their transactions.

Kafka's cleaner verifies no checksum, and gives rewritten records a right one whatever they are. Here a damaged batch
ends the cleaning and the log stays as it was.

Batches are passed in offset order. For each producer it is remembered whether data of its transaction came since its
last marker: the marker is needed as long as there is any.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ...columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array, compute_is_valid
from ...columns.legacy import valid_row_count
from ...columns.record_table import BatchRecords
from ...config.topic import ARRAY_SIZE_MAX
from ...errors import CorruptRecordError
from ...folds.transaction_marker import NO_RECORD, control_types
from ...kernels.scan import batches as fields
from ...layout.batch import CODEC_MASK, CONTROL_FLAG, MAGIC_V2, TRANSACTIONAL_FLAG
from ...layout.file_names import LOG_SUFFIX
from ...model import ControlRecordType
from ...view.read import aborted_entries
from ..segment.log_segment import LogSegment
from ..state import LogState


def tables(
    segment: LogSegment, *, position: int = 0, is_checked: bool = False
) -> Iterator[tuple[ByteArray, BatchTable]]:
    """Yield the bytes of the segment and the next batches in them, from `position` to the end.

    Args:
        is_checked: the checksums were verified before.

    Raises:
        CorruptRecordError: batches end before the segment does, or a checksum is wrong.
        DataDirectoryError: the file cannot be read.
    """
    path = segment.path(LOG_SUFFIX)
    for data, table in segment.mapped_batches(position):
        if not is_checked:
            compute_is_valid(data, table)
            _require_valid(data, table, path)
        yield data, table
        position = table.next_position
    if position < segment.size:
        raise CorruptRecordError(
            f"Log segment may be corrupt, {segment.size - position} bytes left in segment for log segment {path} at "
            f"position {position}",
            path=path,
            position=position,
            expected="a whole batch",
            found="the end of the segment",
            advice="recover the log as not cleanly closed; it is not cleaned before",
        )


def require_record_sizes(data: ByteArray, table: BatchTable, rows: Int64Array, record_size_max: int) -> None:
    """Raise InvalidRecordError if a compressed batch of these rows has a larger record than is allowed; 0 is any."""
    if not 0 < record_size_max < ARRAY_SIZE_MAX:
        return
    is_compressed = (table.attributes[rows] & CODEC_MASK != 0) & (table.magic[rows] >= MAGIC_V2)
    for row in rows[is_compressed].tolist():
        for _ in BatchRecords(data, table, row, record_size_max=record_size_max).chunks():
            pass


def record_count_max(segment: LogSegment) -> int:
    """Return an upper bound of the segment's records, from its batch headers; no checksum is verified."""
    count = 0
    for _, table in segment.mapped_batches(0):
        # a message of magic 0 or 1 may wrap as many as it has bytes
        counts = np.where(table.magic >= MAGIC_V2, table.record_count, table.size)
        count += int(np.clip(counts, 0, None).sum())
    return count


def _require_valid(data: ByteArray, table: BatchTable, path: str) -> None:
    row = valid_row_count(data, table)
    if row < len(table):
        raise CorruptRecordError(
            f"Record is corrupt (stored crc = {int(table.column(fields.CRC)[row])})",
            path=path,
            position=int(table.position[row]),
            offset=int(table.base_offset[row]),
            expected="the checksum of its bytes",
            found="another one",
            advice="copy the segment from another replica; the log is not cleaned before",
        )


class AbortedEntry(NamedTuple):
    """An entry of a `.txnindex`; ordered by `first_offset`."""

    first_offset: int
    producer_id: int
    last_offset: int
    last_stable_offset: int


class CleanedTransactions:
    """The transactions' state while the batches of a log are passed (`CleanedTransactionMetadata`).

    Attributes:
        needed: entries of aborted transactions whose marker was passed and is needed, in marker order.
    """

    def __init__(self) -> None:
        self.needed: list[AbortedEntry] = []
        self._waiting: list[AbortedEntry] = []
        self._ongoing_aborted: dict[int, AbortedEntry] = {}
        self._has_aborted_data: set[int] = set()
        self._ongoing_committed: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedEntry]) -> None:
        """Add aborted transactions of the batches to come; adding one twice does no harm."""
        for transaction in transactions:
            heapq.heappush(self._waiting, transaction)

    def take_needed(self) -> list[AbortedEntry]:
        """Return the entries of `needed`, and clear it."""
        needed, self.needed = self.needed, []
        return needed

    def discardable(self, data: ByteArray, table: BatchTable) -> BoolArray:
        """Return bool[len(table)]: data batches of aborted transactions, and control batches that are not needed.

        Raises InvalidRecordError for a control record without a type.
        """
        found = np.zeros(len(table), np.bool_)
        flags = np.where(table.magic >= MAGIC_V2, table.attributes, 0)
        rows = np.flatnonzero(flags & (TRANSACTIONAL_FLAG | CONTROL_FLAG))
        if not rows.size:
            return found
        types = iter(control_types(data, table, rows[flags[rows] & CONTROL_FLAG != 0]).tolist())
        columns = (rows, flags[rows] & CONTROL_FLAG != 0, table.producer_id[rows], table.last_offset[rows])
        for row, is_control, producer_id, last_offset in zip(*(column.tolist() for column in columns), strict=True):
            self._begin_aborted(last_offset)
            if is_control:
                found[row] = self._passes_control(producer_id, next(types))
            else:
                found[row] = self._passes_data(producer_id)
        return found

    def _begin_aborted(self, offset: int) -> None:
        while self._waiting and self._waiting[0].first_offset <= offset:
            transaction = heapq.heappop(self._waiting)
            self._ongoing_aborted.setdefault(transaction.producer_id, transaction)

    def _passes_data(self, producer_id: int) -> bool:
        if producer_id in self._ongoing_aborted:
            self._has_aborted_data.add(producer_id)
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def _passes_control(self, producer_id: int, control_type: int) -> bool:
        """Return whether a control batch can go."""
        if control_type == NO_RECORD:
            return True
        if control_type == ControlRecordType.COMMIT:
            is_needed = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not is_needed
        if control_type != ControlRecordType.ABORT:
            return False
        transaction = self._ongoing_aborted.pop(producer_id, None)
        is_needed = producer_id in self._has_aborted_data
        self._has_aborted_data.discard(producer_id)
        if transaction is not None and is_needed:
            self.needed.append(transaction)
        return not is_needed


def aborted_transactions(state: LogState, start_offset: int, end_offset: int) -> list[AbortedEntry]:
    """Return those that Kafka collects for [start_offset, end_offset) (`UnifiedLog.collectAbortedTransactions`).

    Those of all offsets from the log start on whose marker is in the segment that holds `start_offset`, or behind it.

    Raises:
        CorruptIndexError: an entry of an unknown version.
    """
    found: list[AbortedEntry] = []
    segment = state.segments.floor(start_offset)
    for index, rows in aborted_entries(state.segments, segment, state.log_start_offset, end_offset):
        columns = (index.first_offsets, index.producer_ids, index.last_offsets, index.last_stable_offsets)
        found += map(AbortedEntry, *(column[rows].tolist() for column in columns))
    return found
