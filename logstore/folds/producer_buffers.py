"""Arrays of a producer state: their growth, and the kernel calls that work on them.

Only `producer_state` and `producer_update` use them. All arrays are int64; `kernels.fold.producer_entries` and
`kernels.fold.producers` describe their columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import BatchTable, ByteArray, Int64Array
from ..kernels.fold import producer_entries as fields
from ..kernels.fold import producer_struct as producers
from ..kernels.fold.producer_struct import ProducerStruct
from ..kernels.fold.producers import apply_updates, fold_producers
from .open_transactions import OpenTransactions

_ROOM_MIN = 16
_ROOM_KEPT = 1024  # updates; the memory of a larger group is freed
_SLOTS_PER_ENTRY = 2  # of a hash index


class ProducerBuffers:
    """Entries with their hash index, the updates of the present group with theirs, and transactions.

    Attributes:
        struct: the kernels' view of all arrays; an array is replaced when it grows.
        transactions: the undecided ones.
    """

    def __init__(self) -> None:
        self.struct = struct = ProducerStruct()
        self.transactions = OpenTransactions(struct)
        struct.index_seed = hash("producer ids") & ((1 << 62) - 1)  # random: no ids can be made to collide
        struct.entries = struct.updates = np.zeros((0, fields.ENTRY_WIDTH), np.int64)
        struct.started = np.zeros((_ROOM_MIN, 2), np.int64)
        struct.completed = np.zeros((_ROOM_MIN, producers.COMPLETED_WIDTH), np.int64)
        struct.started_capacity = struct.completed_capacity = _ROOM_MIN
        self._reserve_entries(_ROOM_MIN)
        self._reserve_updates(_ROOM_MIN)

    @property
    def entries(self) -> Int64Array:
        """int64[n, ENTRY_WIDTH], the producers in insertion order; not copied."""
        return self.struct.entries[: self.struct.entry_count]

    def find(self, producer_id: int) -> int | None:
        """Return the producer's row in `entries`; None if it is unknown."""
        struct = self.struct
        entries = struct.entries.reshape(-1)
        row = fields.find_entry(producer_id, entries, struct.index, struct.index_bits, struct.index_seed)
        return None if row < 0 else int(row)

    def keep(self, is_kept: npt.NDArray[np.bool_]) -> None:
        """Remove all other rows."""
        if is_kept.all():
            return
        struct, kept = self.struct, self.entries[is_kept]
        struct.entries[: len(kept)] = kept
        struct.entry_count = len(kept)
        struct.index[:] = 0
        fields.index_entries(struct.entries, len(kept), struct.index, struct.index_bits, struct.index_seed)

    def put(self, rows: Int64Array) -> None:
        """Add new producers, int64[n, ENTRY_WIDTH], in order."""
        count = len(rows)
        self._reserve_updates(count)
        self._reserve_entries(len(self.entries) + count)
        self.struct.updates[:count] = rows
        self.struct.update_count = count
        self.apply()

    def fold(self, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> int:
        """Fold rows into updates, see `fold_producers`; enlarge what is full, return any other status."""
        row = first_row
        while True:
            status = fold_producers(data, table.matrix, table.capacity, row, row_end, self.struct)
            if status != producers.NO_ROOM:
                return status
            row = self.struct.stop_row
            self._enlarge()

    def apply(self) -> int:
        """Apply the present group, see `apply_updates`, which also ends it; return its status."""
        status = apply_updates(self.struct)
        if len(self.struct.updates) > _ROOM_KEPT:
            self.struct.updates = np.zeros((0, fields.ENTRY_WIDTH), np.int64)
            self._reserve_updates(_ROOM_MIN)
        return status

    def discard(self) -> None:
        """Forget the present group."""
        struct = self.struct
        if struct.update_count:
            struct.update_index[:] = 0
        struct.update_count = struct.started_count = 0
        struct.completed_count = struct.applied_count  # earlier batches' transactions stay, for `take_completed`

    def take_completed(self) -> Int64Array:
        """Return the transactions decided since the last call, in marker order: int64[n, COMPLETED_WIDTH]."""
        count = self.struct.applied_count
        self.struct.completed_count -= count
        self.struct.applied_count = 0
        return self.struct.completed[:count].copy()

    def _enlarge(self) -> None:
        struct = self.struct
        if struct.entry_count + struct.update_count >= struct.entry_capacity:
            self._reserve_entries(2 * (struct.entry_count + struct.update_count))
        if struct.update_count >= struct.update_capacity:
            self._reserve_updates(2 * struct.update_count)
        if struct.started_count >= struct.started_capacity:
            struct.started = _with_rows(struct.started, 2 * struct.started_count)
            struct.started_capacity = len(struct.started)
        if struct.completed_count >= struct.completed_capacity:
            struct.completed = _with_rows(struct.completed, 2 * struct.completed_count)
            struct.completed_capacity = len(struct.completed)
        self.transactions.reserve(struct.started_count + 1)

    def _reserve_entries(self, capacity: int) -> None:
        struct = self.struct
        struct.entries = _with_rows(struct.entries, max(capacity, _ROOM_MIN))
        struct.index, struct.index_bits = self._indexed(struct.entries, struct.entry_count)
        struct.entry_capacity = len(struct.entries)

    def _reserve_updates(self, capacity: int) -> None:
        struct = self.struct
        struct.updates = _with_rows(struct.updates, max(capacity, _ROOM_MIN))
        struct.update_index, struct.update_index_bits = self._indexed(struct.updates, struct.update_count)
        struct.update_capacity = len(struct.updates)

    def _indexed(self, entries: Int64Array, count: int) -> tuple[Int64Array, int]:
        """Return a hash index of the first entries with room for all, and its bits."""
        bits = (_SLOTS_PER_ENTRY * len(entries) - 1).bit_length()
        index = np.zeros(1 << bits, np.int64)
        if count:
            fields.index_entries(entries, count, index, bits, self.struct.index_seed)
        return index, bits


def _with_rows(matrix: Int64Array, capacity: int) -> Int64Array:
    if capacity <= len(matrix):
        return matrix
    larger = np.zeros((capacity, matrix.shape[1]), np.int64)
    larger[: len(matrix)] = matrix
    return larger
