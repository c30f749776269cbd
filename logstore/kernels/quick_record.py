"""A record as most are, in one go: short numbers, no headers, nothing that lies.

What is otherwise in any way is left to `kernels.decode`, which knows every error. A record depends on the one before by
its length only, so the processor works on many at once. Numbers go to the columns and are taken from there: that costs
nothing, where packing them beside a position costs half as much again.
"""

from __future__ import annotations

from typing import Any

from .kernel import device
from .primitives import add64
from .record_matrix import (
    HEADER_COUNT,
    HEADERS_POSITION,
    KEY_POSITION,
    KEY_SIZE,
    OFFSET,
    SEQUENCE,
    TIMESTAMP,
    VALUE_POSITION,
    VALUE_SIZE,
)

NOT_QUICK = 0
ROOM = 24  # bytes that must follow, so that no number, of three bytes at most, needs a check of its own
TOO_LONG = -1


@device
def put_number(data: Any, position: int, columns: Any, place: int) -> int:
    """A signed number of at most three bytes to columns[place]; the position after it, or TOO_LONG."""
    number = data[position]
    position += 1
    if number >= 128:
        more = data[position]
        position += 1
        number = (number & 127) | ((more & 127) << 7)
        if more >= 128:
            more = data[position]
            position += 1
            if more >= 128:
                return TOO_LONG
            number |= more << 14
    columns[place] = (number >> 1) ^ -(number & 1)
    return position


@device
def put_field(data: Any, position: int, columns: Any, position_place: int, size_place: int) -> int:
    """Position and size of a key or value to two places; the position after it, or TOO_LONG."""
    position = put_number(data, position, columns, size_place)
    if position < 0:
        return TOO_LONG
    columns[position_place] = position
    if columns[size_place] < 0:
        columns[size_place] = -1
        return position
    return position + columns[size_place]


@device
def quick_record(
    data: Any,
    position: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    base_sequence: int,
    columns: Any,
    capacity: int,
    row: int,
) -> int:
    """Decode the record at `position` of a batch up to `end`; the position after it, or NOT_QUICK."""
    after_place = HEADERS_POSITION * capacity + row
    timestamp_place = TIMESTAMP * capacity + row
    offset_place = OFFSET * capacity + row
    if end - position < ROOM:
        return NOT_QUICK
    position = put_number(data, position, columns, after_place)
    after = position + columns[after_place]
    if position < 0 or after > end or after < position:
        return NOT_QUICK
    position = put_number(data, position + 1, columns, timestamp_place)
    if position < 0:
        return NOT_QUICK
    position = put_number(data, position, columns, offset_place)
    delta = columns[offset_place]
    if position < 0 or delta < 0 or base_sequence + delta > 2147483647:
        return NOT_QUICK
    columns[SEQUENCE * capacity + row] = base_sequence + delta if base_sequence >= 0 else -1
    columns[timestamp_place] = add64(base_timestamp, columns[timestamp_place])
    columns[offset_place] = add64(base_offset, delta)
    position = put_field(data, position, columns, KEY_POSITION * capacity + row, KEY_SIZE * capacity + row)
    if position < 0 or end - position < 4:
        return NOT_QUICK
    position = put_field(data, position, columns, VALUE_POSITION * capacity + row, VALUE_SIZE * capacity + row)
    if position + 1 != after or data[position] != 0:
        return NOT_QUICK
    columns[HEADER_COUNT * capacity + row] = 0
    columns[after_place] = after
    return after
