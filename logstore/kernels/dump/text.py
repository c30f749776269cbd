"""Writes literals, decimals, and UTF-8 as Java's decoder changes it.

Each function writes to `out` at position `o` and returns the position after it. The caller has checked that there is
room, plus `SLACK_SIZE` bytes, because literals are copied in whole words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ...native.device import constants, device
from ..primitives import load64, store64

if TYPE_CHECKING:
    import numpy as np

SLACK_SIZE = 64

_pool = bytearray()


def literal(text: str) -> int:
    """Add `text` (at most 127 bytes) to the pool; returns its number for `put`."""
    encoded = text.encode()
    start = len(_pool)
    _pool.extend(encoded)
    return start * 128 + len(encoded)


def literal_pool() -> bytes:
    """Return the bytes of all literals, with slack for whole-word copies."""
    return bytes(_pool) + bytes(SLACK_SIZE)


def _digit_words(form: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a word for each number below 1000: its digits in the low bytes, their count in the highest byte."""
    import numpy as np

    texts = [form.format(n).encode() for n in range(1000)]
    words = [int.from_bytes(text, "little") | len(text) << 56 for text in texts]
    return np.array(words, dtype=np.int64)


PADDED_DIGITS = constants(partial(_digit_words, "{:03d}"))
LEADING_DIGITS = constants(partial(_digit_words, "{}"))
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
def put_leading(out: Any, o: int, value: int) -> int:
    """Write a number below 1000 without leading zeros."""
    word = LEADING_DIGITS[value]
    store64(out, o, word)
    return o + (word >> 56)


@device
def put_padded(out: Any, o: int, value: int) -> int:
    """Write a number below 1000 as three digits."""
    store64(out, o, PADDED_DIGITS[value])
    return o + 3


@device
def put_below_million(out: Any, o: int, value: int) -> int:
    """Write a number below 10^6 without leading zeros."""
    if value < 1000:
        return put_leading(out, o, value)
    high = value // 1000
    return put_padded(out, put_leading(out, o, high), value - high * 1000)


@device
def put_six(out: Any, o: int, value: int) -> int:
    """Write a number below 10^6 as six digits."""
    high = value // 1000
    return put_padded(out, put_padded(out, o, high), value - high * 1000)


@device
def put_decimal(out: Any, o: int, pool: Any, value: int) -> int:
    """Write a signed decimal, in groups of three digits."""
    if value < 0:
        if value == -9223372036854775808:
            return put(out, o, pool, INT64_MIN)
        out[o] = 45
        o += 1
        value = -value
    if value < 1000000:
        return put_below_million(out, o, value)
    millions = value // 1000000
    value = value - millions * 1000000
    if millions < 1000000:
        return put_six(out, put_below_million(out, o, millions), value)
    billions = millions // 1000000
    millions = millions - billions * 1000000
    if billions < 1000000:
        return put_six(out, put_six(out, put_below_million(out, o, billions), millions), value)
    return put_huge(out, o, billions, millions, value)


@device
def put_huge(out: Any, o: int, billions: int, millions: int, value: int) -> int:
    """Write a number of 19 digits: `billions` counts 10^12 and has seven digits."""
    first = billions // 1000000
    o = put_six(out, put_leading(out, o, first), billions - first * 1000000)
    return put_six(out, put_six(out, o, millions), value)


@device
def put_bytes(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Copy bytes unchanged; returns 1 if one of them is not ASCII."""
    high = 0
    if size >= 8:
        for at in range(0, size - 8, 8):
            word = load64(data, start + at)
            store64(out, o + at, word)
            high |= word
        word = load64(data, start + size - 8)
        store64(out, o + size - 8, word)
        high |= word
        return 1 if high & -9187201950435737472 != 0 else 0  # the high bits of all eight bytes
    for at in range(size):
        byte = data[start + at]
        out[o + at] = byte
        high |= byte & 128
    return 1 if high != 0 else 0


@device
def put_utf8(out: Any, o: int, pool: Any, data: Any, start: int, size: int) -> int:
    """Write bytes as UTF-8; malformed parts become U+FFFD, grouped as in `new String(bytes, UTF_8)`."""
    if put_bytes(out, o, data, start, size) == 0:
        return o + size
    return put_broken_utf8(out, o, pool, data, start, size)


@device
def put_broken_utf8(out: Any, o: int, pool: Any, data: Any, start: int, size: int) -> int:
    """Write bytes as `put_utf8`, character by character."""
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
    """Return 1 for 10xxxxxx."""
    return 1 if (byte & 192) == 128 else 0


@device
def sequence_size(data: Any, at: int, end: int) -> int:
    """Return the size of the well-formed character at `at`, or minus the bytes that one U+FFFD replaces.

    Grouped as `java.lang.String.decodeUTF8_UTF16` of JDK 17: one replacement for the three bytes of a surrogate, and
    one for a truncated character at the end, however many of its bytes there are.
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
    """Return `sequence_size` for a lead byte 1110xxxx."""
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
    """Return `sequence_size` for a lead byte 11110xxx."""
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
