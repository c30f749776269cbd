"""Records of transactional ids, packed in 74 bytes, not 700 as objects: there are millions, and few are read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from ...topics.transaction_state import TransactionMetadata, TransactionState

Key = TypeVar("Key")
_ROW = struct.Struct("<iqq qhbiiqqqqhb")  # number of the transactional id, offset, timestamp, and the metadata
_FORGOTTEN = -1  # in the place of a state
_STATES = {state.value: state for state in TransactionState}


class CoordinatorEntry(NamedTuple):
    """A record of a transactional id: its partition and offset, its time (ms), and its content."""

    partition: int
    offset: int
    timestamp: int
    metadata: TransactionMetadata


class StateRecords:
    """The records of one partition of `__transaction_state`, in the order of the log.

    Iterating yields each transactional id with its entry; None where the id was forgotten.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self._rows = bytearray()
        self._ids: dict[str, int] = {}  # numbered, as the lists of partitions are: few are different
        self._partitions: dict[tuple[tuple[str, int], ...], int] = {}
        self._by_number: tuple[list[str], list[tuple[tuple[str, int], ...]]] = [], []

    def append(self, transactional_id: str, offset: int, timestamp: int, metadata: TransactionMetadata | None) -> None:
        """Add a record; `metadata` is None for a tombstone."""
        number = _number(transactional_id, self._ids, self._by_number[0])
        if metadata is None:
            self._rows += _ROW.pack(number, offset, timestamp, 0, 0, _FORGOTTEN, *[0] * 8)
            return
        partitions = _number(metadata.partitions, self._partitions, self._by_number[1])
        packed = metadata._replace(state=metadata.state.value, partitions=partitions)  # type: ignore[arg-type]
        self._rows += _ROW.pack(number, offset, timestamp, *packed)

    def __len__(self) -> int:
        return len(self._rows) // _ROW.size

    def __iter__(self) -> Iterator[tuple[str, CoordinatorEntry | None]]:
        return map(self.record, range(len(self)))

    def record(self, row: int) -> tuple[str, CoordinatorEntry | None]:
        """Return a transactional id and its entry."""
        number, offset, timestamp, *fields = _ROW.unpack_from(self._rows, row * _ROW.size)
        metadata = TransactionMetadata._make(fields)
        transactional_id = self._by_number[0][number]
        if fields[2] == _FORGOTTEN:
            return transactional_id, None
        partitions = self._by_number[1][fields[4]]
        metadata = metadata._replace(state=_STATES[fields[2]], partitions=partitions)
        return transactional_id, CoordinatorEntry(self.partition, offset, timestamp, metadata)


def _number(value: Key, numbers: dict[Key, int], by_number: list[Key]) -> int:
    """Return the number of a value, the next one if it is new."""
    number = numbers.setdefault(value, len(by_number))
    if number == len(by_number):
        by_number.append(value)
    return number
