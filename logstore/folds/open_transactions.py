"""Transactions of a partition that are not decided (KIP-98).

The first offset of the earliest of them is the first unstable offset; the last stable offset, up to which a
read_committed consumer reads, is that or the high watermark, whichever is smaller (`ProducerStateManager`,
`UnifiedLog.lastStableOffset`). Both are answered without a search, however many transactions there are. Kafka keeps
decided transactions too until the high watermark has passed their marker; here it is the log's end.

A producer state owns and steps these; `state.transactions.last_stable_offset(high_watermark, log_start_offset)`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..kernels.fold import producer_slots as producers
from ..kernels.fold import transactions as kernel

_ROOM_MIN = 16
_ROOM_LATER_MIN = 1024  # where transactions have come and gone, room is made seldom


class OpenTransactions:
    """The list of them; the kernels write it.

    Attributes:
        slots: int64, head, end and size, see `kernels.fold.transactions`.
        ongoing: int64[capacity, 2]: first offset and producer id of transactions that are not decided, ascending.
    """

    __slots__ = ("_counts", "_flat_ongoing", "ongoing", "slots")

    def __init__(self) -> None:
        self.slots = np.zeros(kernel.SLOT_COUNT, np.int64)
        self.ongoing = np.zeros((_ROOM_MIN, 2), np.int64)
        self.slots[kernel.ONGOING_CAPACITY] = _ROOM_MIN
        # items of a memoryview come quicker than those of an array, and as ints
        self._counts = self.slots.data
        self._bind()

    @property
    def ongoing_count(self) -> int:
        """Transactions that are not decided."""
        return int(self.slots[kernel.ONGOING_COUNT])

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the earliest transaction that is undecided; None without one."""
        first = kernel.first_unstable(self._counts, self._flat_ongoing)
        return None if first == kernel.NONE else first

    def last_stable_offset(self, high_watermark: int, log_start_offset: int) -> int:
        """What read_committed consumers read up to; exclusive (`UnifiedLog.lastStableOffset`)."""
        first_unstable = self.first_unstable_offset
        if first_unstable is None:
            return high_watermark
        return min(max(first_unstable, log_start_offset), high_watermark)

    def ongoing_entries(self) -> Int64Array:
        """int64[n, 2]: first offset and producer id of each undecided transaction, ascending by offset; a copy."""
        entries: Int64Array = self.ongoing[self.slots[kernel.ONGOING_HEAD] : self.slots[kernel.ONGOING_END]]
        is_open: npt.NDArray[np.bool_] = entries[:, 1] != kernel.DECIDED
        return entries[is_open].copy()

    def clear(self) -> None:
        """Forget all transactions."""
        self.slots[[kernel.ONGOING_HEAD, kernel.ONGOING_END, kernel.ONGOING_COUNT]] = 0

    def load(self, first_offsets: Int64Array, producer_ids: Int64Array) -> None:
        """The open transactions of a snapshot, in its order, are all there are; of one offset the last counts."""
        self.clear()
        order = np.argsort(first_offsets, kind="stable")
        is_last = np.ones(order.size, np.bool_)
        is_last[:-1] = np.diff(first_offsets[order]) != 0
        chosen = order[is_last]
        self.reserve(chosen.size)
        self.ongoing[: chosen.size] = np.stack([first_offsets[chosen], producer_ids[chosen]], axis=1)
        self.slots[kernel.ONGOING_END] = self.slots[kernel.ONGOING_COUNT] = chosen.size

    def reserve(self, count: int) -> None:
        """Make room for this many transactions more."""
        slots = self.slots
        if slots[kernel.ONGOING_END] + count > slots[kernel.ONGOING_CAPACITY]:
            entries = self.ongoing_entries()
            # as many again, so that room is made seldom
            self.ongoing = np.zeros((max(2 * (len(entries) + count), _ROOM_LATER_MIN), 2), np.int64)
            self.ongoing[: len(entries)] = entries
            slots[kernel.ONGOING_HEAD], slots[kernel.ONGOING_END] = 0, len(entries)
            slots[kernel.ONGOING_CAPACITY] = len(self.ongoing)
        self._bind()

    def _bind(self) -> None:
        self._flat_ongoing = self.ongoing.reshape(-1).data


class CompletedTransactions:
    """Transactions that a step decided, in the order of their markers; int64 columns of one length.

    Attributes:
        matrix: int64[n, 5], the columns side by side.
    """

    __slots__ = ("matrix",)

    def __init__(self, matrix: Int64Array) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return len(self.matrix)

    producer_ids = property(lambda self: self.matrix[:, producers.COMPLETED_PRODUCER_ID])
    first_offsets = property(lambda self: self.matrix[:, producers.COMPLETED_FIRST_OFFSET], doc="Of the first batch.")
    last_offsets = property(lambda self: self.matrix[:, producers.COMPLETED_LAST_OFFSET], doc="Of the marker.")
    is_aborted = property(lambda self: self.matrix[:, producers.COMPLETED_IS_ABORTED], doc="1 aborted, 0 committed.")
    last_stable_offsets = property(
        lambda self: self.matrix[:, producers.COMPLETED_LAST_STABLE_OFFSET],
        doc="The LSO as if the transaction, and of those still open no other, were decided.",
    )
