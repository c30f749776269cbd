"""The hash that partitions are chosen by, of a column of keys (`Utils.murmur2`)."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from .primitives import MASK32, little_endian, wrap32

SEED = 0x9747B28C
FACTOR = 0x5BD1E995  # below 2^31: its product with 32 bits is within 63


@device
def _mixed(word: int) -> int:
    product = word * FACTOR & MASK32
    return (product ^ (product >> 24)) * FACTOR & MASK32


@device
def _of_range(data: Any, start: int, end: int) -> int:
    value = (SEED ^ (end - start)) & MASK32
    at = start
    while at + 4 <= end:
        value = (value * FACTOR & MASK32) ^ _mixed(little_endian(data, at, 4))
        at += 4
    if at < end:
        value = (value ^ little_endian(data, at, end - at)) * FACTOR & MASK32
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
