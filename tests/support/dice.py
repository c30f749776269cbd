"""Chance that is the same on every machine and in every version of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Numbers drawn from SHA-256 of a seed and a counter.

    >>> dice = Dice("a seed")
    >>> [dice.below(6) for _ in range(5)]
    [1, 5, 4, 4, 5]
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._drawn = 0

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1."""
        return int.from_bytes(self._block()) % limit

    def between(self, lowest: int, highest: int) -> int:
        return lowest + self.below(highest - lowest + 1)

    def choose(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def take(self, length: int) -> bytes:
        blocks = [self._block() for _ in range(length // 32 + 1)]
        return b"".join(blocks)[:length]

    def _block(self) -> bytes:
        self._drawn += 1
        return hashlib.sha256(f"{self._seed}/{self._drawn}".encode()).digest()
