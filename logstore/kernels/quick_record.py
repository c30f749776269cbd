"""A record as most are, in one go: short numbers, no headers, nothing that lies.

What is otherwise in any way is left to `kernels.decode`, which knows every error. A record depends on the one before by
its length only, so the processor works on many at once. How many bytes a number has is asked first, and its bits are
taken out of a word then: where the answer is known the compiler leaves out what the other answers need.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from .primitives import add64, load64
from .record_matrix import (
    HEADERS_POSITION,
    KEY_POSITION,
    KEY_SIZE,
    OFFSET,
    TIMESTAMP,
    VALUE_POSITION,
    VALUE_SIZE,
)

NOT_QUICK = 0
ROOM = 24  # bytes that must follow, so that no number up to the key's size needs a check of its own
WORD_SIZE = 8
TOO_LONG = 1 << 40  # larger than what any number is compared with


@device
def number_size(word: int) -> int:
    """Bytes of the number that a little-endian word begins with, 1 to 3."""
    if word & 0x80 == 0:
        return 1
    if word & 0x8000 == 0:
        return 2
    return 3


@device
def number_of(word: int) -> int:
    """The number that a little-endian word begins with, zigzag not undone; TOO_LONG with more than three bytes."""
    if word & 0x80 == 0:
        return word & 0x7F
    if word & 0x8000 == 0:
        return (word & 0x7F) | ((word >> 1) & 0x3F80)
    if word & 0x800000 == 0:
        return (word & 0x7F) | ((word >> 1) & 0x3F80) | ((word >> 2) & 0x1FC000)
    return TOO_LONG


@device
def put_field(data: Any, position: int, columns: Any, position_place: int, size_place: int) -> int:
    """Position and size of the key or value at `position` to two places; the position after it."""
    word = load64(data, position)
    number = number_of(word)
    position += number_size(word)
    columns[position_place] = position
    if number & 1 == 1:
        columns[size_place] = -1
        return position
    columns[size_place] = number >> 1
    return position + (number >> 1)


@device
def quick_record(
    data: Any,
    position: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    delta_max: int,
    columns: Any,
    capacity: int,
    row: int,
) -> int:
    """Decode the record at `position` of a batch up to `end`; the position after it, or NOT_QUICK.

    Sequence and header count are the caller's to fill in; `delta_max` is the last delta that has a plain sequence.
    """
    if end - position < ROOM:
        return NOT_QUICK
    word = load64(data, position)
    number = number_of(word)
    position += number_size(word)
    after = position + (number >> 1)
    if number & 1 == 1 or after > end:
        return NOT_QUICK
    word = load64(data, position + 1)
    number = number_of(word)
    if number == TOO_LONG:
        return NOT_QUICK
    columns[TIMESTAMP * capacity + row] = add64(base_timestamp, (number >> 1) ^ -(number & 1))
    position += 1 + number_size(word)
    word = load64(data, position)
    number = number_of(word)
    if number & 1 == 1 or (number >> 1) > delta_max:
        return NOT_QUICK
    columns[OFFSET * capacity + row] = add64(base_offset, number >> 1)
    position += number_size(word)
    position = put_field(data, position, columns, KEY_POSITION * capacity + row, KEY_SIZE * capacity + row)
    if end - position < WORD_SIZE:
        return NOT_QUICK
    position = put_field(data, position, columns, VALUE_POSITION * capacity + row, VALUE_SIZE * capacity + row)
    if position + 1 != after or data[position] != 0:
        return NOT_QUICK
    columns[HEADERS_POSITION * capacity + row] = after
    return after
