"""What a log is cleaned by: the hash of a key, and the last offset of each."""

from __future__ import annotations

from collections.abc import Sequence

import xxhash

SEEDS = (0, 0x51ED270B0A1F39C1)


def halves(key: bytes) -> tuple[int, int]:
    """Two XXH64, as signed numbers."""
    low, high = (xxhash.xxh64_intdigest(key, seed=seed) for seed in SEEDS)
    return signed(low), signed(high)


def signed(number: int) -> int:
    return number - (number >> 63 << 64)


def put(
    offsets: dict[bytes, int], records: Sequence[tuple[bytes | None, int]], entry_count_max: int, offset_min: int
) -> int:
    """Put (key, offset) pairs until one finds no room, whether its key is there or not; how many were looked at."""
    for number, (key, offset) in enumerate(records):
        if key is not None and offset >= offset_min:
            if len(offsets) >= entry_count_max:
                return number
            offsets[key] = offset
    return len(records)


def find(offsets: dict[bytes, int], records: Sequence[tuple[bytes | None, int]]) -> list[int]:
    """What is known of each key; -1 for none."""
    return [-1 if key is None else offsets.get(key, -1) for key, _ in records]


def marks(records: Sequence[tuple[bytes | None, int]], offset_min: int, count: int) -> list[int] | None:
    """Of each offset from `offset_min` on: 0 not put, 1 latest of its key, 2 superseded. None if offsets go back."""
    found, last = [0] * count, dict[bytes, int]()
    for key, offset in records:
        if key is not None and offset >= offset_min:
            if last.get(key, -1) >= offset or offset >= offset_min + count or found[offset - offset_min]:
                return None
            if key in last:
                found[last[key] - offset_min] = 2
            found[offset - offset_min] = 1
            last[key] = offset
    return found
