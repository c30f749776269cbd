"""The hash that partitions are chosen by, of a column of keys (`Utils.murmur2`)."""

from __future__ import annotations

from typing import Any

from .kernel import device, kernel
from .primitives import wrap32

SEED = 0x9747B28C
FACTOR = 0x5BD1E995  # below 2^31: its product with 32 bits is within 63
MASK32 = (1 << 32) - 1


@device
def _mixed(word: int) -> int:
    product = word * FACTOR & MASK32
    return (product ^ (product >> 24)) * FACTOR & MASK32


@device
def _of_range(data: Any, start: int, end: int) -> int:
    value = (SEED ^ (end - start)) & MASK32
    at = start
    while at + 4 <= end:
        word = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24)
        value = (value * FACTOR & MASK32) ^ _mixed(word)
        at += 4
    if at < end:
        word = data[at]
        if at + 1 < end:
            word |= data[at + 1] << 8
        if at + 2 < end:
            word |= data[at + 2] << 16
        value = (value ^ word) * FACTOR & MASK32
    value = (value ^ (value >> 13)) * FACTOR & MASK32
    return wrap32(value ^ (value >> 15))


@kernel("u8*, i64*, i64*, i64, i64*")
def murmur2_keys(data: Any, starts: Any, ends: Any, count: int, hashes: Any) -> int:
    """The hashes of the first `count` keys, Java ints; 0 for those that are null, which end before they start.

    data: uint8; starts, ends: int64[count], within `data`, which the caller has checked; hashes: int64[count], out.
    Returns how many keys there are.
    """
    key_count = 0
    for row in range(count):
        hashes[row] = 0
        if ends[row] >= starts[row]:
            hashes[row] = _of_range(data, starts[row], ends[row])
            key_count += 1
    return key_count
