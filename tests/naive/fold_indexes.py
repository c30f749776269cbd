"""What a segment's batches leave in its two indexes, one batch after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

INT_MAX = 2**31 - 1


class RefusedError(Exception):
    """The first argument says why."""


@dataclass
class Indexes:
    """Entries as (offset, position) and (timestamp, offset)."""

    base_offset: int
    interval: int
    offset_entries: list[tuple[int, int]] = field(default_factory=list)
    time_entries: list[tuple[int, int]] = field(default_factory=list)
    offset_entries_max: int = INT_MAX
    time_entries_max: int = INT_MAX
    bytes_since_last_entry: int = 0
    largest: tuple[int, int] | None = None

    def last_time_entry(self) -> tuple[int, int]:
        return self.time_entries[-1] if self.time_entries else (-1, self.base_offset)

    def largest_so_far(self) -> tuple[int, int]:
        return self.last_time_entry() if self.largest is None else self.largest

    def maybe_append_time(self, *, is_last: bool = False) -> None:
        timestamp, offset = self.largest_so_far()
        if not is_last and len(self.time_entries) >= self.time_entries_max - 1:
            raise RefusedError("time index full")
        if self.time_entries and offset < self.time_entries[-1][1]:
            raise RefusedError("time offset smaller")
        if timestamp > self.last_time_entry()[0]:
            self.time_entries.append((timestamp, offset))

    def append_offset(self, offset: int, position: int) -> None:
        if len(self.offset_entries) >= self.offset_entries_max:
            raise RefusedError("offset index full")
        if self.offset_entries and offset <= self.offset_entries[-1][0]:
            raise RefusedError("offset not larger")
        self.offset_entries.append((offset, position))


def add_batches(indexes: Indexes, batches: Sequence[tuple[int, int, int, int]]) -> None:
    """Batches as (position, size, last offset, largest timestamp)."""
    for position, size, last_offset, timestamp in batches:
        if not 0 <= last_offset - indexes.base_offset <= INT_MAX:
            raise RefusedError("offset overflow")
        if timestamp > indexes.largest_so_far()[0]:
            indexes.largest = (timestamp, last_offset)
        if indexes.bytes_since_last_entry > indexes.interval:
            indexes.append_offset(last_offset, position)
            indexes.maybe_append_time()
            indexes.bytes_since_last_entry = 0
        indexes.bytes_since_last_entry += size
