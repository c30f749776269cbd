"""Hashes of keys: murmur2, which chooses partitions (`Utils.murmur2`), and two XXH64, for the cleaner's offset map.

XXH64 follows its specification (xxHash 0.1.1): little-endian words, all arithmetic modulo 2^64.
"""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ...native.kernel import kernel
from ..decode.records import KEY_POSITION, KEY_SIZE
from ..primitives import MASK32, add64, little_endian, load64, mul64, rotate64, wrap32

MURMUR2_SEED = 0x9747B28C
MURMUR2_FACTOR = 0x5BD1E995  # below 2^31, so that its product with 32 bits fits 63

# Two seeds of XXH64 give 128 bits.
SEED_LOW = 0
SEED_HIGH = 0x51ED270B0A1F39C1

# The specification's primes, as signed numbers.
PRIME_1 = 0x9E3779B185EBCA87 - (1 << 64)
PRIME_2 = 0xC2B2AE3D27D4EB4F - (1 << 64)
PRIME_3 = 0x165667B19E3779F9
PRIME_4 = 0x85EBCA77C2B2AE63 - (1 << 64)
PRIME_5 = 0x27D4EB2F165667C5
MINUS_PRIME_1 = -PRIME_1

STRIPE_SIZE = 32
MASK31 = (1 << 31) - 1
MASK35 = (1 << 35) - 1


@device
def _round(accumulator: int, word: int) -> int:
    return mul64(rotate64(add64(accumulator, mul64(word, PRIME_2)), 31), PRIME_1)


@device
def _merge(value: int, accumulator: int) -> int:
    return add64(mul64(value ^ _round(0, accumulator), PRIME_1), PRIME_4)


@device
def _stripes(data: Any, position: int, end: int, seed: int) -> int:
    """Return the merged four accumulators over all whole stripes."""
    first = add64(seed, add64(PRIME_1, PRIME_2))
    second = add64(seed, PRIME_2)
    third = seed
    fourth = add64(seed, MINUS_PRIME_1)
    while position + STRIPE_SIZE <= end:
        first = _round(first, load64(data, position))
        second = _round(second, load64(data, position + 8))
        third = _round(third, load64(data, position + 16))
        fourth = _round(fourth, load64(data, position + 24))
        position += STRIPE_SIZE
    value = add64(
        add64(rotate64(first, 1), rotate64(second, 7)),
        add64(rotate64(third, 12), rotate64(fourth, 18)),
    )
    return _merge(_merge(_merge(_merge(value, first), second), third), fourth)


@device
def xxh64(data: Any, position: int, size: int, seed: int) -> int:
    """Return the XXH64 of data[position:position + size], signed; the caller has checked the bounds."""
    end = position + size
    if size >= STRIPE_SIZE:
        value = add64(_stripes(data, position, end, seed), size)
        position += size // STRIPE_SIZE * STRIPE_SIZE
    else:
        value = add64(seed, add64(PRIME_5, size))
    while position + 8 <= end:
        value = add64(mul64(rotate64(value ^ _round(0, load64(data, position)), 27), PRIME_1), PRIME_4)
        position += 8
    if position + 4 <= end:
        word = little_endian(data, position, 4)
        value = add64(mul64(rotate64(value ^ mul64(word, PRIME_1), 23), PRIME_2), PRIME_3)
        position += 4
    while position < end:
        value = mul64(rotate64(value ^ mul64(data[position], PRIME_5), 11), PRIME_1)
        position += 1
    value = mul64(value ^ ((value >> 33) & MASK31), PRIME_2)
    value = mul64(value ^ ((value >> 29) & MASK35), PRIME_3)
    return value ^ ((value >> 32) & MASK32)


@kernel("u8*, i64*, i64, i64, i64*")
def hash_keys(data: Any, records: Any, capacity: int, count: int, hashes: Any) -> int:
    """Hash the keys of the first `count` records; null keys have the hash 0.

    data: uint8, the decoded buffer; records: int64[decode.COLUMN_COUNT, capacity]; hashes: int64[2, capacity], out: low
    and high half. Returns how many have a key.
    """
    key_count = 0
    for row in range(count):
        size = records[KEY_SIZE * capacity + row]
        low = 0
        high = 0
        if size >= 0:
            position = records[KEY_POSITION * capacity + row]
            low = xxh64(data, position, size, SEED_LOW)
            high = xxh64(data, position, size, SEED_HIGH)
            key_count += 1
        hashes[row] = low
        hashes[capacity + row] = high
    return key_count


@device
def _murmur2_mixed(word: int) -> int:
    product = word * MURMUR2_FACTOR & MASK32
    return (product ^ (product >> 24)) * MURMUR2_FACTOR & MASK32


@device
def _murmur2(data: Any, start: int, end: int) -> int:
    value = (MURMUR2_SEED ^ (end - start)) & MASK32
    at = start
    while at + 4 <= end:
        value = (value * MURMUR2_FACTOR & MASK32) ^ _murmur2_mixed(little_endian(data, at, 4))
        at += 4
    if at < end:
        value = (value ^ little_endian(data, at, end - at)) * MURMUR2_FACTOR & MASK32
    value = (value ^ (value >> 13)) * MURMUR2_FACTOR & MASK32
    return wrap32(value ^ (value >> 15))


@kernel("u8*, i64*, i64*, i64, i64*")
def murmur2_keys(data: Any, starts: Any, ends: Any, count: int, hashes: Any) -> int:
    """Hash the first `count` keys, to Java ints; null keys, which end before they start, have the hash 0.

    data: uint8; starts, ends: int64[count], within `data`, which the caller has checked; hashes: int64[count], out.
    Returns how many keys there are.
    """
    key_count = 0
    for row in range(count):
        hashes[row] = 0
        if ends[row] >= starts[row]:
            hashes[row] = _murmur2(data, starts[row], ends[row])
            key_count += 1
    return key_count


@kernel("u8*, i64")
def murmur2_key(key: Any, size: int) -> int:
    """Return the murmur2 hash of one key, a Java int."""
    return _murmur2(key, 0, size)
