"""The 32-bit hash of a key as Austin Appleby's MurmurHash2 is written, a byte after the other."""

from __future__ import annotations

SEED, FACTOR = 0x9747B28C, 0x5BD1E995


def murmur2(key: bytes) -> int:
    """As a signed number."""
    value = (SEED ^ len(key)) % 2**32
    left = list(key)
    while len(left) >= 4:
        word = sum(byte * 256**place for place, byte in enumerate(left[:4])) * FACTOR % 2**32
        word = (word ^ word // 2**24) * FACTOR % 2**32
        value = value * FACTOR % 2**32 ^ word
        left = left[4:]
    if left:
        value = (value ^ sum(byte * 256**place for place, byte in enumerate(left))) * FACTOR % 2**32
    value = (value ^ value // 2**13) * FACTOR % 2**32
    value ^= value // 2**15
    return value - 2**32 if value >= 2**31 else value
