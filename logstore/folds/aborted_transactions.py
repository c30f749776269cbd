"""Aborted transactions whose marker is in one segment, the entries of its `.txnindex` (`TransactionIndex`, KIP-98).

    state = AbortedTransactions()                  # or AbortedTransactions.resume(index) of a file
    step(state, completed)                         # decided by a step of the producer state in this segment
    state.entry_count, state.to_bytes(first_entry)

Committed transactions leave no entry. A segment without entries has no file. When a load rebuilds the producer state,
it steps the producers, but never this.
"""

from __future__ import annotations

import numpy as np

from ..columns.batch_table import Int64Array
from ..errors import CorruptIndexError
from ..kernels.fold import producer_struct as producers
from ..layout import transaction_index
from .open_transactions import CompletedTransactions

_COLUMNS = [
    producers.COMPLETED_PRODUCER_ID,
    producers.COMPLETED_FIRST_OFFSET,
    producers.COMPLETED_LAST_OFFSET,
    producers.COMPLETED_LAST_STABLE_OFFSET,
]
_LAST_OFFSET = 2


class AbortedTransactions:
    """The entries, ascending by marker offset."""

    __slots__ = ("_chunks",)

    def __init__(self) -> None:
        self._chunks: list[Int64Array] = []

    @classmethod
    def resume(cls, index: transaction_index.TransactionIndex) -> AbortedTransactions:
        """Take the entries of a file; raise CorruptIndexError for an unknown version."""
        index.require_all()
        state = cls()
        columns = [index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets]
        state.extend(np.stack(columns, axis=1))
        return state

    @property
    def entries(self) -> Int64Array:
        """int64[n, 4]: producer id, first offset, last offset (of the marker), last stable offset."""
        if len(self._chunks) != 1:
            self._chunks = [np.concatenate(self._chunks) if self._chunks else np.empty((0, 4), np.int64)]
        return self._chunks[0]

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        return sum(map(len, self._chunks))

    @property
    def last_offset(self) -> int | None:
        """Offset of the last ABORT marker; None without one."""
        return int(self._chunks[-1][-1, _LAST_OFFSET]) if self.entry_count else None

    def extend(self, entries: Int64Array) -> None:
        """Append entries, int64[n, 4]."""
        if len(entries):
            self._chunks = [chunk for chunk in self._chunks if len(chunk)] + [entries]

    def truncate_to(self, offset: int) -> None:
        """Drop the first entry whose marker is at or above `offset`, and all that follow (`truncateTo`)."""
        behind = np.flatnonzero(self.entries[:, _LAST_OFFSET] >= offset)
        if behind.size:
            self._chunks = [self.entries[: behind[0]]]

    def to_bytes(self, first_entry: int = 0) -> bytes:
        """Return the bytes of the `.txnindex` from entry `first_entry` on."""
        entries = self.entries[first_entry:]
        stored = np.zeros(len(entries), transaction_index.ENTRY_DTYPE)
        for column, name in enumerate(("producer_id", "first_offset", "last_offset", "last_stable_offset")):
            stored[name] = entries[:, column]
        return stored.tobytes()


def step(state: AbortedTransactions, completed: CompletedTransactions) -> None:
    """Add the aborted ones of the decided transactions.

    Raises:
        CorruptIndexError: a marker at or below the last one's offset (an IllegalArgumentException in Kafka); the
            entries before it are added.
    """
    if not completed.is_aborted.any():
        return
    aborted = completed.matrix[completed.is_aborted != 0][:, _COLUMNS]
    last_offset = state.last_offset
    offsets = aborted[:, _LAST_OFFSET]
    before = np.concatenate([[offsets[0] - 1 if last_offset is None else last_offset], offsets[:-1]])
    wrong = np.flatnonzero(before >= offsets)
    state.extend(aborted[: wrong[0]] if wrong.size else aborted)
    if wrong.size:
        raise CorruptIndexError(
            f"The last offset of appended transactions must increase sequentially, but {offsets[wrong[0]]} is not "
            f"greater than current last offset {before[wrong[0]]} of index",
            offset=int(offsets[wrong[0]]),
            java_class="java.lang.IllegalArgumentException",
        )
