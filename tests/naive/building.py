"""Batches as a producer's `RecordAccumulator` and `MemoryRecordsBuilder` make them, record by record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.support.encoder import Batch, Rec, record_bytes

HEADER_SIZE = 61
INT_MAX = 2**31 - 1


class Row(NamedTuple):
    """One record to be written; `offset_delta` None: it follows the one before."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: int = -1
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    offset_delta: int | None = None


@dataclass(frozen=True)
class Measured:
    """A batch of some rows, before its bytes are written."""

    row_end: int
    record_count: int
    size: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int


class RefusedError(Exception):
    """The row that cannot be written, and why."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row = row
        self.why = why


def records_of(rows: Sequence[Row], base_timestamp: int | None = None) -> list[Rec]:
    """The rows of one batch by their deltas; the first one's timestamp is the base when none is given."""
    base = rows[0].timestamp if base_timestamp is None else base_timestamp
    return [
        Rec(
            row.key,
            row.value,
            row.headers,
            index if row.offset_delta is None else row.offset_delta,
            row.timestamp - base,
        )
        for index, row in enumerate(rows)
    ]


def measure(rows: Sequence[Row], first: int, base_timestamp: int | None = None) -> Measured:
    """One batch of `rows`, of which `first` come before it; raises RefusedError."""
    base = rows[0].timestamp if base_timestamp is None else base_timestamp
    last_delta = -1
    for index, (row, record) in enumerate(zip(rows, records_of(rows, base), strict=True)):
        if row.timestamp < -1:
            raise RefusedError(first + index, "timestamp")
        if not last_delta < record.offset_delta <= INT_MAX:
            raise RefusedError(first + index, "offset delta")
        last_delta = record.offset_delta
    size = HEADER_SIZE + sum(len(record_bytes(record)) for record in records_of(rows, base))
    return Measured(first + len(rows), len(rows), size, last_delta, base, max(row.timestamp for row in rows))


def split(rows: Sequence[Row], batch_size: int) -> list[Measured]:
    """The batches of a producer: a record is added while there is room for it."""
    found: list[Measured] = []
    start = end = 0
    while start < len(rows):
        end = start + 1
        room = max(batch_size, longest_size(rows[start]))
        batch = measure(rows[start:end], start)
        while end < len(rows):
            larger = measure(rows[start : end + 1], start)
            if larger.size > room:
                break
            batch = larger
            end += 1
        found.append(batch)
        start = end
    return found


def longest_size(row: Row) -> int:
    """Bytes of a batch of this record if length, attributes and deltas took 21 (`estimateSizeInBytesUpperBound`)."""
    alone = record_bytes(Rec(row.key, row.value, row.headers))
    length_size = next(index for index, byte in enumerate(alone) if byte < 128) + 1
    content = len(alone) - length_size - 3
    return HEADER_SIZE + 21 + content


def batch_bytes(rows: Sequence[Row], batch: Batch) -> bytes:
    """A batch of these rows with the header fields of `batch`."""
    measured = measure(rows, 0)
    return replace(
        batch,
        records=records_of(rows),
        last_offset_delta=measured.last_offset_delta,
        base_timestamp=measured.base_timestamp,
        max_timestamp=measured.max_timestamp,
    ).to_bytes()
