"""The transactions of one partition, by its own batches and markers: open ones, decided ones, markers without data.

history = PartitionTransactions(evidence)      a check, for `log_pass.run_checks`
history.transactions, history.open_transactions, history.empty_markers, history.last_stable_offset
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..columns.batch_table import Int64Array
from ..disk.directory import SegmentFiles
from ..layout.batch import CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ..view.walk import Damage, Run, Tail
from .evidence import Evidence
from .log_pass import SegmentEnd
from .markers import Marker, marker_rows, read_markers

NEVER = 2**63 - 1  # ms


@dataclass(slots=True)
class PartitionTransaction:
    """The part of a transaction that is in one partition.

    Attributes:
        producer_epoch: of its last data; a marker may carry the next one.
        first_offset, last_offset: of its data.
        first_timestamp, last_timestamp: ms, of its first and last batch.
        record_count: of its batches; what the cleaner took does not count.
        marker: None as long as it is open.
        earlier_epoch: of data before that of `producer_epoch`, with no marker between; None if there is none.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    record_count: int
    marker: Marker | None = None
    earlier_epoch: int | None = None

    @property
    def has_own_epoch(self) -> bool:
        """Whether the marker's epoch belongs to this transaction alone (transaction version 2, or fencing)."""
        return self.marker is not None and self.marker.producer_epoch > self.producer_epoch


class PartitionTransactions:
    """Follows the batches of a partition.

    Attributes:
        evidence, partition: whose transactions these are.
        transactions: decided ones by the offset of their marker, then those still open.
        empty_markers: markers of producers that had no data open, by offset.
        log_end_offset: exclusive.
        smallest_timestamp, largest_timestamp: of all batches, ms; smallest 2^63 - 1 without batches.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.partition = evidence, evidence.partition
        self.empty_markers: list[Marker] = []
        self.log_end_offset = self.partition.first_offset
        self.smallest_timestamp, self.largest_timestamp = NEVER, -1
        self._damage_offset = -1
        self._decided: list[PartitionTransaction] = []
        self._open: dict[int, PartitionTransaction] = {}

    @property
    def transactions(self) -> list[PartitionTransaction]:
        """All of them."""
        return self._decided + self.open_transactions

    @property
    def open_transactions(self) -> list[PartitionTransaction]:
        """By first offset; the first of them is where read_committed ends."""
        return sorted(self._open.values(), key=lambda transaction: transaction.first_offset)

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed ends when all is replicated; exclusive (`UnifiedLog.lastStableOffset`)."""
        if not self._open:
            return self.log_end_offset
        return max(self.open_transactions[0].first_offset, self.partition.first_offset)

    @property
    def born_ms(self) -> int:
        """What happened before was in another topic of this name: when this one was made, or written to first."""
        return max(self.evidence.cluster.created_ms(self.partition.files.topic), self.smallest_timestamp)

    def may_be_ended(self, transaction: PartitionTransaction) -> bool:
        """Whether a marker of the open `transaction` may be in damaged bytes, or may have been."""
        return self._damage_offset > transaction.first_offset

    def begin(self, segment: SegmentFiles) -> None:
        self.log_end_offset = max(self.log_end_offset, segment.base_offset)

    def step(self, run: Run) -> None:
        table, rows = run.table, slice(run.first_row, run.row_end)
        self.log_end_offset = int(table.last_offset[run.row_end - 1]) + 1
        self.smallest_timestamp = min(self.smallest_timestamp, int(table.max_timestamp[rows].min()))
        self.largest_timestamp = max(self.largest_timestamp, int(table.max_timestamp[rows].max()))
        is_data = (table.attributes[rows] & (CONTROL_FLAG | TRANSACTIONAL_FLAG)) == TRANSACTIONAL_FLAG
        is_data &= (table.producer_id[rows] != NO_PRODUCER_ID) & (table.magic[rows] >= MAGIC_V2)
        data_rows = np.flatnonzero(is_data) + run.first_row
        markers = read_markers(run, marker_rows(run))
        for rows_between, marker in _between_markers(table.producer_id, data_rows, markers):
            if rows_between is not None:
                self._add(run, rows_between)
            if marker is not None:
                self._end(marker)

    def skip(self, piece: Damage | Tail) -> None:
        """What is lost is not part of any transaction; a marker may be among it."""
        if isinstance(piece, Damage) or piece.is_batch:
            self._damage_offset = self.log_end_offset

    def end(self, end: SegmentEnd) -> None:
        """Transactions go on from segment to segment."""

    def finish(self) -> None:
        """Nothing is left to say."""

    def _add(self, run: Run, rows: Int64Array) -> None:
        """Data of one producer, with no marker of it between."""
        table = run.table
        first, last = int(rows[0]), int(rows[-1])
        producer_id, epoch = int(table.producer_id[last]), int(table.producer_epoch[last])
        first_epoch = int(table.producer_epoch[first])
        transaction = self._open.get(producer_id)
        if transaction is None:
            transaction = self._open[producer_id] = PartitionTransaction(
                producer_id,
                first_epoch,
                first_offset=int(table.base_offset[first]),
                last_offset=-1,
                first_timestamp=int(table.max_timestamp[first]),
                last_timestamp=-1,
                record_count=0,
            )
        if epoch != transaction.producer_epoch:
            transaction.earlier_epoch, transaction.producer_epoch = transaction.producer_epoch, epoch
        transaction.last_offset = int(table.last_offset[last])
        transaction.last_timestamp = int(table.max_timestamp[last])
        transaction.record_count += int(table.record_count[rows].sum())

    def _end(self, marker: Marker) -> None:
        transaction = self._open.pop(marker.producer_id, None)
        if transaction is None:
            self.empty_markers.append(marker)
            return
        transaction.marker = marker
        self._decided.append(transaction)


def _between_markers(
    producer_ids: Int64Array, data_rows: Int64Array, markers: dict[int, Marker]
) -> list[tuple[Int64Array | None, Marker | None]]:
    """Data rows of one producer each, then the marker that ends them if there is one, by the rows that end them."""
    marker_keys = np.array(sorted(markers), np.int64)
    rows = np.concatenate([data_rows, marker_keys])
    if not rows.size:
        return []
    rows = rows[np.lexsort((rows, producer_ids[rows]))]
    ids = producer_ids[rows]
    is_marker = np.isin(rows, marker_keys)
    starts = np.ones(rows.size, np.bool_)
    starts[1:] = (ids[1:] != ids[:-1]) | is_marker[:-1]
    found: list[tuple[int, Int64Array | None, Marker | None]] = []
    bounds = [*np.flatnonzero(starts).tolist(), rows.size]
    for start, end in pairwise(bounds):
        last = int(rows[end - 1])
        marker = markers.get(last)
        data = rows[start : end - 1] if marker is not None else rows[start:end]
        found.append((last, data if data.size else None, marker))
    return [(data, marker) for _, data, marker in sorted(found, key=lambda group: group[0])]
