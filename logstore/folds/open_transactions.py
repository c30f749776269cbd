"""Undecided transactions of a partition (KIP-98).

The first unstable offset is the first offset of the earliest of them; the last stable offset, where read_committed
ends, is that or the high watermark, whichever is lower (`ProducerStateManager`, `UnifiedLog.lastStableOffset`). Both
take constant time. Kafka also keeps decided transactions until the high watermark has passed their marker; here the
high watermark is the log's end.

A producer state owns and steps this; `state.transactions.last_stable_offset(high_watermark, log_start_offset)`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..kernels.fold.producer_struct import ProducerStruct
from ..kernels.fold.transactions import DECIDED

_ROOM_MIN = 16
_ROOM_LATER_MIN = 1024  # once transactions come and go, room is made rarely


class OpenTransactions:
    """List of undecided transactions; the kernels write it.

    Attributes:
        struct: holds the list, see `kernels.fold.transactions`.
    """

    __slots__ = ("struct",)

    def __init__(self, struct: ProducerStruct) -> None:
        self.struct = struct
        struct.ongoing, struct.ongoing_capacity = np.zeros((_ROOM_MIN, 2), np.int64), _ROOM_MIN

    @property
    def ongoing_count(self) -> int:
        """The number of undecided transactions."""
        return len(self.ongoing_entries())

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the earliest undecided transaction; None without one."""
        head = self.struct.ongoing_head
        return self.struct.ongoing.item(head, 0) if head < self.struct.ongoing_end else None

    def last_stable_offset(self, high_watermark: int, log_start_offset: int) -> int:
        """Return where read_committed ends, exclusive (`UnifiedLog.lastStableOffset`)."""
        first_unstable = self.first_unstable_offset
        if first_unstable is None:
            return high_watermark
        return min(max(first_unstable, log_start_offset), high_watermark)

    def ongoing_entries(self) -> Int64Array:
        """Return int64[n, 2]: first offset, producer id of each undecided transaction, by offset; a copy."""
        entries: Int64Array = self.struct.ongoing[self.struct.ongoing_head : self.struct.ongoing_end]
        is_open: npt.NDArray[np.bool_] = entries[:, 1] != DECIDED
        return entries[is_open].copy()

    def clear(self) -> None:
        """Forget all transactions."""
        self.struct.ongoing_head = self.struct.ongoing_end = 0

    def load(self, first_offsets: Int64Array, producer_ids: Int64Array) -> None:
        """Replace all transactions by a snapshot's; if several have the same offset, keep the last."""
        self.clear()
        order = np.argsort(first_offsets, kind="stable")
        is_last = np.ones(order.size, np.bool_)
        is_last[:-1] = np.diff(first_offsets[order]) != 0
        chosen = order[is_last]
        self.reserve(chosen.size)
        self.struct.ongoing[: chosen.size] = np.stack([first_offsets[chosen], producer_ids[chosen]], axis=1)
        self.struct.ongoing_end = chosen.size

    def reserve(self, count: int) -> None:
        """Make room for `count` more transactions."""
        struct = self.struct
        if struct.ongoing_end + count > struct.ongoing_capacity:
            entries = self.ongoing_entries()
            # doubled, so that room is made rarely
            larger = np.zeros((max(2 * (len(entries) + count), _ROOM_LATER_MIN), 2), np.int64)
            larger[: len(entries)] = entries
            struct.ongoing, struct.ongoing_capacity = larger, len(larger)
            struct.ongoing_head, struct.ongoing_end = 0, len(entries)
