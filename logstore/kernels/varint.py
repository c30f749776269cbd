"""Kafka's varints (`ByteUtils`: zigzag, base 128, low bits first), and fields with their size before them.

A reader returns the number and the position after it; in case of a failure a negative code in place of the position.
"""

from __future__ import annotations

from typing import Any

from ..native.device import device, inlined

# Failures.
PAST_END = -1  # the data ends in the number
TOO_LONG = -2  # the last byte that is allowed has its high bit set; the number is a varint's 32 bits so far, unsigned
BYTES_PAST_END = -3  # the data ends in the bytes of a field; the number is how many are missing
NEGATIVE_KEY_SIZE = -4  # of a header


@inlined
def _read_short(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a number of one or two bytes; PAST_END for a longer one."""
    if position < end and data[position] < 128:
        bits = data[position]
        return (bits >> 1) ^ -(bits & 1), position + 1
    if position + 1 < end and data[position + 1] < 128:
        bits = (data[position] & 127) | (data[position + 1] << 7)
        return (bits >> 1) ^ -(bits & 1), position + 2
    return 0, PAST_END


@inlined
def read_varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read the signed number of up to 5 bytes at `position`."""
    number, after = _read_short(data, position, end)
    return (number, after) if after >= 0 else _read_long_varint(data, position, end)


@device
def _read_long_varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a varint of any number of bytes, as `read_varint`."""
    bits = 0
    shift = 0
    while position < end:
        byte = data[position]
        position += 1
        bits = (bits | (byte & 127) << shift) & 4294967295
        if byte < 128:
            return (bits >> 1) ^ -(bits & 1), position
        shift += 7
        if shift == 35:
            return bits, TOO_LONG
    return 0, PAST_END


@inlined
def read_varlong(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read the signed number of up to 10 bytes at `position`."""
    number, after = _read_short(data, position, end)
    return (number, after) if after >= 0 else _read_long_varlong(data, position, end)


@device
def _read_long_varlong(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a varlong of any number of bytes, as `read_varlong`."""
    low = 0
    for index in range(9):
        if position + index >= end:
            return 0, PAST_END
        byte = data[position + index]
        low |= (byte & 127) << (7 * index)
        if byte < 128:
            return (low >> 1) ^ -(low & 1), position + index + 1
    if position + 9 >= end:
        return 0, PAST_END
    byte = data[position + 9]
    if byte >= 128:
        return 0, TOO_LONG
    # zigzag of (byte << 63 | low), whose bit 63 would not fit a signed number
    return ((low >> 1) | ((byte & 1) << 62)) ^ -(low & 1), position + 10


@inlined
def read_field(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a nullable field: its size, below 0 for null, and the position after its bytes."""
    size, after = read_varint(data, position, end)
    if after < 0 or size <= 0:
        return size, after
    if size > end - after:
        return size - (end - after), BYTES_PAST_END
    return size, after + size


@device
def read_header(data: Any, position: int, end: int) -> tuple[int, int, int, int]:
    """Read a header: the size of its key, the position after the key, the size of its value and the position after it.

    A failure's number is in place of the value's size, that of NEGATIVE_KEY_SIZE in place of the key's.
    """
    key_size, key_end = read_field(data, position, end)
    if key_end < 0:
        return 0, 0, key_size, key_end
    if key_size < 0:
        return key_size, 0, 0, NEGATIVE_KEY_SIZE
    value_size, after = read_field(data, key_end, end)
    return key_size, key_end, value_size, after
