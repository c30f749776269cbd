"""Varints as Kafka writes them: zigzag, base 128, low bits first (`ByteUtils`)."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from .primitives import wrap32

PAST_END = -1
TOO_LONG = -2


@device
def read_varint(data: Any, position: int, end: int) -> int:
    """Varint at `position`: the position after it in the high half, its unsigned 32 bits in the low half.

    PAST_END when `end` comes first, TOO_LONG when the fifth byte goes on. Positions stay below 2^31, as a segment does.
    """
    if position < end and data[position] < 128:
        return (position + 1 << 32) | data[position]
    if position + 1 < end and data[position + 1] < 128:
        return (position + 2 << 32) | (data[position] & 127) | (data[position + 1] << 7)
    return _read_long_varint(data, position, end)


@device
def _read_long_varint(data: Any, position: int, end: int) -> int:
    """`read_varint` for any number of bytes."""
    value = 0
    shift = 0
    while position < end:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (position << 32) | (value & 4294967295)
        shift += 7
        if shift == 35:
            return TOO_LONG
    return PAST_END


@device
def varint_position(packed: int) -> int:
    """Position after the varint that `read_varint` read."""
    return packed >> 32


@device
def varint_value(packed: int) -> int:
    """Its signed value, zigzag undone."""
    value = packed & 4294967295
    return (value >> 1) ^ -(value & 1)


@device
def too_long_value(data: Any, position: int) -> int:
    """What the first five bytes of a varint that is TOO_LONG amount to, for the error message."""
    value = 0
    for index in range(5):
        value |= (data[position + index] & 127) << (7 * index)
    return wrap32(value) & 4294967295


@device
def varlong_size(data: Any, position: int, end: int) -> int:
    """Bytes of the varlong at `position`, or PAST_END or TOO_LONG (the tenth byte goes on)."""
    size = 0
    while position + size < end:
        if data[position + size] < 128:
            return size + 1
        size += 1
        if size == 10:
            return TOO_LONG
    return PAST_END


@device
def varlong_value(data: Any, position: int, size: int) -> int:
    """Signed value of the varlong of `size` bytes, zigzag undone."""
    low = 0
    high = 0
    for index in range(size):
        bits = data[position + index] & 127
        if index < 9:
            low |= bits << (7 * index)
        else:
            high = bits & 1
    # (high << 63 | low) >> 1 without leaving the signed range
    return ((low >> 1) | (high << 62)) ^ -(low & 1)
