"""The arrays behind a producer state, how they grow, and the calls of the kernels that work on them.

Only `producer_state` and `producer_update` use this. All arrays are int64; `kernels.fold.producer_entries` and
`kernels.fold.producers` say what is in them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import BatchTable, ByteArray, Int64Array
from ..kernels.fold import producer_entries as fields
from ..kernels.fold import producer_slots as slot
from ..kernels.fold.producer_slots import ProducerStruct
from ..kernels.fold.producers import apply_updates, fold_producers
from .java_hash_map import COMPUTE, PUT, iteration_order
from .open_transactions import CompletedTransactions, OpenTransactions

_ROOM_MIN = 16
_ROOM_KEPT = 1024  # updates; what a larger group needed is given back
_SLOTS_PER_ENTRY = 2  # of an index


class ProducerBuffers:
    """Entries with their index, the updates of the group under way with theirs, and transactions.

    Attributes:
        slots: int64, see `kernels.fold.producer_slots`.
        transactions: those that are open.
        struct: all arrays, as the kernels of `fold_producers` take them; others as soon as something was enlarged.
    """

    def __init__(self) -> None:
        self.struct = ProducerStruct()
        self.transactions = OpenTransactions()
        self.slots = np.zeros(slot.SLOT_COUNT, np.int64)
        self.slots[slot.INDEX_SEED] = hash("producer ids") & ((1 << 62) - 1)  # differs from process to process
        self._entries = np.zeros((0, fields.ENTRY_WIDTH), np.int64)
        self._updates = np.zeros((0, fields.ENTRY_WIDTH), np.int64)
        self._started = np.zeros((_ROOM_MIN, 2), np.int64)
        self._completed = np.zeros((_ROOM_MIN, slot.COMPLETED_WIDTH), np.int64)
        self.slots[slot.STARTED_CAPACITY] = self.slots[slot.COMPLETED_CAPACITY] = _ROOM_MIN
        self._reserve_entries(_ROOM_MIN)
        self._reserve_updates(_ROOM_MIN)
        self._bind()

    @property
    def entries(self) -> Int64Array:
        """int64[n, ENTRY_WIDTH], the producers in the order in which they came; not a copy."""
        return self._entries[: self.slots[slot.ENTRY_COUNT]]

    def find(self, producer_id: int) -> int | None:
        """The producer's row of `entries`."""
        bits, seed = int(self.slots[slot.INDEX_BITS]), int(self.slots[slot.INDEX_SEED])
        row = fields.find_entry(producer_id, self._entries.reshape(-1), self._index, bits, seed)
        return None if row < 0 else int(row)

    def ordered_entries(self) -> Int64Array:
        """The entries as a Java HashMap goes through them; a copy."""
        entries = self.entries
        capacity = int(self.slots[slot.JAVA_CAPACITY])
        return entries[iteration_order(entries[:, fields.PRODUCER_ID], entries[:, fields.MAP_CAPACITY], capacity, PUT)]

    def keep(self, is_kept: npt.NDArray[np.bool_]) -> None:
        """Take all other rows out; as in Kafka the table of the Java map keeps its size."""
        if is_kept.all():
            return
        kept = self.entries[is_kept]
        self._entries[: len(kept)] = kept
        self.slots[slot.ENTRY_COUNT] = len(kept)
        self._index[:] = 0
        fields.index_entries(
            self._entries,
            len(kept),
            self._index,
            int(self.slots[slot.INDEX_BITS]),
            int(self.slots[slot.INDEX_SEED]),
        )

    def put(self, rows: Int64Array) -> None:
        """Add producers that are not there yet, int64[n, ENTRY_WIDTH], in their order."""
        count = len(rows)
        self._reserve_updates(count)
        self._reserve_entries(len(self.entries) + count)
        self._bind()
        self._updates[:count] = rows
        self.slots[slot.UPDATE_COUNT] = count
        self._apply_in(np.arange(count))

    def put_transactions(self, first_offsets: Int64Array, producer_ids: Int64Array) -> None:
        """These are all open transactions, see `OpenTransactions.load`."""
        self.transactions.load(first_offsets, producer_ids)
        self._bind()

    def fold(self, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> int:
        """Work rows into updates, see `fold_producers`; enlarges what is full, returns any other status."""
        row = first_row
        while True:
            status = fold_producers(data, table.matrix, table.capacity, row, row_end, self.struct)
            if status != slot.NO_ROOM:
                return status
            row = int(self.slots[slot.STOP_ROW])
            self._enlarge()

    def apply(self) -> int:
        """Apply the group under way in the order of a Java HashMap, see `apply_updates`; returns its status."""
        updates = self._updates[: self.slots[slot.UPDATE_COUNT]]
        capacity = int(self.slots[slot.UPDATE_JAVA_CAPACITY])
        order = iteration_order(updates[:, fields.PRODUCER_ID], updates[:, fields.MAP_CAPACITY], capacity, COMPUTE)
        return self._apply_in(order)

    def discard(self) -> None:
        """Forget the group under way."""
        if self.slots[slot.UPDATE_COUNT]:
            self._update_index[:] = 0
        self.slots[[slot.UPDATE_COUNT, slot.UPDATE_JAVA_CAPACITY, slot.STARTED_COUNT]] = 0
        self.slots[slot.COMPLETED_COUNT] = self.slots[slot.APPLIED_COUNT]

    def take_completed(self) -> CompletedTransactions:
        """The transactions that were decided since the last call."""
        count = int(self.slots[slot.APPLIED_COUNT])
        self.slots[slot.COMPLETED_COUNT] -= count
        self.slots[slot.APPLIED_COUNT] = 0
        return CompletedTransactions(self._completed[:count].copy())

    def completed(self, number: int) -> Int64Array:
        """int64[COMPLETED_WIDTH], transaction `number` of those decided since `take_completed`."""
        transaction: Int64Array = self._completed[number]
        return transaction

    def _apply_in(self, order: Int64Array) -> int:
        status = apply_updates(np.ascontiguousarray(order, np.int64), self.struct)
        if len(self._updates) > _ROOM_KEPT:
            self._updates = np.zeros((0, fields.ENTRY_WIDTH), np.int64)
            self._reserve_updates(_ROOM_MIN)
            self._bind()
        return status

    def _bind(self) -> None:
        struct = self.struct
        struct.producer_slots, struct.entries, struct.index = self.slots, self._entries, self._index
        struct.updates, struct.update_index = self._updates, self._update_index
        struct.started, struct.completed = self._started, self._completed
        struct.transaction_slots, struct.ongoing = self.transactions.slots, self.transactions.ongoing

    def _enlarge(self) -> None:
        slots = self.slots
        update_count = int(slots[slot.UPDATE_COUNT])
        if len(self.entries) + update_count >= slots[slot.ENTRY_CAPACITY]:
            self._reserve_entries(2 * (len(self.entries) + update_count))
        if update_count >= slots[slot.UPDATE_CAPACITY]:
            self._reserve_updates(2 * update_count)
        started_count, completed_count = int(slots[slot.STARTED_COUNT]), int(slots[slot.COMPLETED_COUNT])
        if started_count >= slots[slot.STARTED_CAPACITY]:
            self._started = _with_rows(self._started, 2 * started_count)
            slots[slot.STARTED_CAPACITY] = len(self._started)
        if completed_count >= slots[slot.COMPLETED_CAPACITY]:
            self._completed = _with_rows(self._completed, 2 * completed_count)
            slots[slot.COMPLETED_CAPACITY] = len(self._completed)
        self.transactions.reserve(started_count + 1)
        self._bind()

    def _reserve_entries(self, capacity: int) -> None:
        self._entries = _with_rows(self._entries, max(capacity, _ROOM_MIN))
        self.slots[slot.ENTRY_CAPACITY] = len(self._entries)
        self._index = self._indexed(self._entries, int(self.slots[slot.ENTRY_COUNT]), slot.INDEX_BITS)

    def _reserve_updates(self, capacity: int) -> None:
        self._updates = _with_rows(self._updates, max(capacity, _ROOM_MIN))
        self.slots[slot.UPDATE_CAPACITY] = len(self._updates)
        self._update_index = self._indexed(self._updates, int(self.slots[slot.UPDATE_COUNT]), slot.UPDATE_INDEX_BITS)

    def _indexed(self, entries: Int64Array, count: int, bits_slot: int) -> Int64Array:
        bits = (_SLOTS_PER_ENTRY * len(entries) - 1).bit_length()
        self.slots[bits_slot] = bits
        index = np.zeros(1 << bits, np.int64)
        if count:
            fields.index_entries(entries, count, index, bits, int(self.slots[slot.INDEX_SEED]))
        return index


def _with_rows(matrix: Int64Array, capacity: int) -> Int64Array:
    if capacity <= len(matrix):
        return matrix
    larger = np.zeros((capacity, matrix.shape[1]), np.int64)
    larger[: len(matrix)] = matrix
    return larger
