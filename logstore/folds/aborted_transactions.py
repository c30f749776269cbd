"""Aborted transactions whose marker is in one segment, the entries of its `.txnindex` (`TransactionIndex`, KIP-98).

    state = AbortedTransactions()                  # or AbortedTransactions.resume(index) of a file
    step(state, completed)                         # decided by a step of the producer state in this segment
    state.entry_count, state.to_bytes(first_entry)

Committed transactions leave no entry. A segment without entries has no file. When a load rebuilds the producer state,
it steps the producers, but never this.
"""

from __future__ import annotations

from array import array

import numpy as np

from ..columns.batch_table import Int64Array
from ..errors import CorruptIndexError
from ..kernels.fold import producer_struct as producers
from ..layout import transaction_index

_COLUMNS = [
    producers.COMPLETED_PRODUCER_ID,
    producers.COMPLETED_FIRST_OFFSET,
    producers.COMPLETED_LAST_OFFSET,
    producers.COMPLETED_LAST_STABLE_OFFSET,
]
_LAST_OFFSET = 2


class AbortedTransactions:
    """The entries, ascending by marker offset."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = array("q")  # of the rows, one behind the other: a log may have millions

    @classmethod
    def resume(cls, index: transaction_index.TransactionIndex) -> AbortedTransactions:
        """Take the entries of a file; raise CorruptIndexError for an unknown version."""
        index.require_all()
        state = cls()
        columns = [index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets]
        state._values.frombytes(np.stack(columns, axis=1).astype(np.int64).tobytes())
        return state

    @property
    def entries(self) -> Int64Array:
        """int64[n, 4]: producer id, first offset, last offset (of the marker), last stable offset; a copy."""
        return np.frombuffer(self._values.tobytes(), np.int64).reshape(-1, len(_COLUMNS))

    @property
    def entry_count(self) -> int:
        """The number of entries."""
        return len(self._values) // len(_COLUMNS)

    @property
    def last_offset(self) -> int | None:
        """Offset of the last ABORT marker; None without one."""
        return self._values[_LAST_OFFSET - len(_COLUMNS)] if self._values else None

    def ended_from(self, offset: int) -> list[tuple[int, int]]:
        """Return producer id and first offset of each transaction whose marker is at `offset` or behind it."""
        values, end, found = self._values, len(self._values), list[tuple[int, int]]()
        while end and values[end - len(_COLUMNS) + _LAST_OFFSET] >= offset:
            end -= len(_COLUMNS)
            found.append((values[end], values[end + 1]))
        return found

    def add(self, row: list[int]) -> None:
        """Add an entry as in `entries`; raise CorruptIndexError as `step`."""
        offset, last_offset = row[_LAST_OFFSET], self.last_offset
        if last_offset is not None and offset <= last_offset:
            raise CorruptIndexError(
                f"The last offset of appended transactions must increase sequentially, but {offset} is not "
                f"greater than current last offset {last_offset} of index",
                offset=offset,
                java_class="java.lang.IllegalArgumentException",
            )
        self._values.extend(array("q", row))  # all or none

    def truncate_to(self, offset: int) -> None:
        """Drop the first entry whose marker is at or above `offset`, and all that follow (`truncateTo`)."""
        behind = np.flatnonzero(self.entries[:, _LAST_OFFSET] >= offset)
        if behind.size:
            del self._values[int(behind[0]) * len(_COLUMNS) :]

    def to_bytes(self, first_entry: int = 0) -> bytes:
        """Return the bytes of the `.txnindex` from entry `first_entry` on."""
        rows = np.array(self._values[first_entry * len(_COLUMNS) :], np.int64).reshape(-1, len(_COLUMNS)).tolist()
        return np.array([(0, *row) for row in rows], transaction_index.ENTRY_DTYPE).tobytes()


def step(state: AbortedTransactions, completed: Int64Array) -> None:
    """Add the aborted ones of the decided transactions, as `ProducerBuffers.take_completed` returns them.

    Raises:
        CorruptIndexError: a marker at or below the last one's offset (an IllegalArgumentException in Kafka); the
            entries before it are added.
    """
    for row in completed[completed[:, producers.COMPLETED_IS_ABORTED] != 0][:, _COLUMNS].tolist():
        state.add(row)
