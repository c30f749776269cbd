"""Bytes of text: literals, decimals, and UTF-8 as Java's decoder leaves it.

Everything is written to `out` at a position, and the position after it is returned; the caller has made sure of the room,
plus `SLACK_SIZE` bytes because literals are copied in whole words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import device, kernel
from .primitives import load64, store64

SLACK_SIZE = 64
DECIMAL_SIZE_MAX = 20

_pool = bytearray()


def literal(text: str) -> int:
    """Add `text` (at most 127 bytes) to the pool; its number is what `put` takes."""
    encoded = text.encode()
    start = len(_pool)
    _pool.extend(encoded)
    return start * 128 + len(encoded)


def literal_pool() -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of all literals, with slack for whole-word copies."""
    return np.frombuffer(bytes(_pool) + bytes(SLACK_SIZE), dtype=np.uint8)


DIGIT_PAIRS = literal("".join(f"{n:02d}" for n in range(60))) // 128
literal("".join(f"{n:02d}" for n in range(60, 100)))
INT64_MIN = literal("-9223372036854775808")
REPLACEMENT = literal("�")


@device
def put(out: Any, o: int, pool: Any, number: int) -> int:
    """Write literal `number`."""
    start = number >> 7
    size = number & 127
    for at in range(0, size, 8):
        store64(out, o + at, load64(pool, start + at))
    return o + size


@device
def decimal_size(value: int) -> int:
    """Digits of a non-negative number."""
    size = 1
    if value >= 10000000000000000:
        return decimal_size_large(value)
    if value >= 100000000:
        size = 9
        value = value // 100000000
    if value >= 10000:
        size += 4
        value = value // 10000
    if value >= 100:
        size += 2
        value = value // 100
    if value >= 10:
        size += 1
    return size


@device
def decimal_size_large(value: int) -> int:
    """Digits of a number of 17 digits or more."""
    size = 17
    value = value // 10000000000000000
    while value >= 10:
        size += 1
        value = value // 10
    return size


@device
def put_decimal(out: Any, o: int, pool: Any, value: int) -> int:
    """Write a signed decimal."""
    if value < 0:
        if value == -9223372036854775808:
            return put(out, o, pool, INT64_MIN)
        out[o] = 45
        o += 1
        value = -value
    end = o + decimal_size(value)
    at = end
    while value >= 100:
        quotient = value // 100
        pair = DIGIT_PAIRS + 2 * (value - quotient * 100)
        at -= 2
        out[at] = pool[pair]
        out[at + 1] = pool[pair + 1]
        value = quotient
    if value >= 10:
        out[at - 2] = pool[DIGIT_PAIRS + 2 * value]
        out[at - 1] = pool[DIGIT_PAIRS + 2 * value + 1]
    else:
        out[at - 1] = 48 + value
    return end


@device
def put_bytes(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Copy bytes as they are; returns 1 when one of them is not ASCII."""
    high = 0
    at = 0
    while at + 8 <= size:
        word = load64(data, start + at)
        store64(out, o + at, word)
        high |= word & -9187201950435737472
        at += 8
    while at < size:
        byte = data[start + at]
        out[o + at] = byte
        high |= byte & 128
        at += 1
    return 1 if high != 0 else 0


@device
def put_utf8(out: Any, o: int, pool: Any, data: Any, start: int, size: int) -> int:
    """Write bytes as `new String(bytes, UTF_8)` printed again: malformed input becomes U+FFFD, in Java's grouping."""
    if put_bytes(out, o, data, start, size) == 0:
        return o + size
    at = start
    end = start + size
    while at < end:
        used = sequence_size(data, at, end)
        if used > 0:
            for k in range(used):
                out[o + k] = data[at + k]
            o += used
            at += used
        else:
            o = put(out, o, pool, REPLACEMENT)
            at -= used
    return o


@device
def is_continuation(byte: int) -> int:
    """1 for 10xxxxxx."""
    return 1 if (byte & 192) == 128 else 0


@device
def sequence_size(data: Any, at: int, end: int) -> int:
    """Bytes of the well-formed character at `at`, or minus the bytes that one replacement character stands for.

    The grouping is that of `java.lang.String.decodeUTF8_UTF16` of JDK 17: a surrogate is one replacement of three
    bytes, a truncated character at the end is one, however many of its bytes are there.
    """
    first = data[at]
    left = end - at
    if first < 128:
        return 1
    if first >= 194 and first <= 223:
        if left < 2:
            return -1
        return 2 if is_continuation(data[at + 1]) == 1 else -1
    if first >= 224 and first <= 239:
        return three_byte_size(data, at, left)
    if first >= 240 and first <= 247:
        return four_byte_size(data, at, left)
    return -1


@device
def three_byte_size(data: Any, at: int, left: int) -> int:
    """`sequence_size` for a lead byte 1110xxxx."""
    if left < 2:
        return -1
    first = data[at]
    second = data[at + 1]
    if is_continuation(second) == 0 or (first == 224 and second < 160):
        return -1
    if left < 3:
        return -2
    if is_continuation(data[at + 2]) == 0:
        return -2
    return -3 if first == 237 and second >= 160 else 3


@device
def four_byte_size(data: Any, at: int, left: int) -> int:
    """`sequence_size` for a lead byte 11110xxx."""
    first = data[at]
    if first > 244:
        return -1
    if left < 2:
        return -1
    second = data[at + 1]
    if is_continuation(second) == 0 or (first == 240 and second < 144) or (first == 244 and second > 143):
        return -1
    if left < 3:
        return -2
    if is_continuation(data[at + 2]) == 0:
        return -2
    if left < 4:
        return -3
    return 4 if is_continuation(data[at + 3]) == 1 else -3


@kernel("u8*, i64, i64, u8*, u8*")
def text_of_utf8(data: Any, start: int, size: int, pool: Any, out: Any) -> int:
    """data[start:start + size] to `out` (3 * size + SLACK_SIZE bytes) as Java prints it; returns the bytes written."""
    return put_utf8(out, 0, pool, data, start, size)


@kernel("i64, u8*, u8*")
def text_of_decimal(value: int, pool: Any, out: Any) -> int:
    """`value` to `out` (DECIMAL_SIZE_MAX + SLACK_SIZE bytes); returns the bytes written."""
    return put_decimal(out, 0, pool, value)
