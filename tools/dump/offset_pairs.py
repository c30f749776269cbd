"""Pairs of offsets in little memory, because a compacted log has millions of gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

OffsetArray = NDArray[np.int64]


class OffsetPairs:
    """Two int64 buffers of one length, at least 1, kept as differences in the smallest unsigned integers.

    Attributes:
        count: number of pairs.
        is_ascending: every first number is above the one before.
        first, last: first numbers of the first and of the last pair.
    """

    __slots__ = ("_firsts", "_seconds", "count", "first", "is_ascending", "last")

    def __init__(self, firsts: OffsetArray | memoryview, seconds: OffsetArray | memoryview) -> None:
        firsts, seconds = np.asarray(firsts), np.asarray(seconds)
        self.count = firsts.size
        self.first, self.last = int(firsts[0]), int(firsts[-1])
        self.is_ascending = bool((firsts[1:] > firsts[:-1]).all())
        self._firsts = _smallest(firsts[1:], firsts[:-1])
        self._seconds = _smallest(seconds, firsts)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return the pairs in their order."""
        firsts = np.empty(self.count, np.uint64)
        firsts[0] = self.first % 2**64
        firsts[1:] = self._firsts
        np.cumsum(firsts, out=firsts)
        return zip(firsts.view(np.int64).tolist(), (firsts + self._seconds).view(np.int64).tolist(), strict=True)


def last_pairs(chunks: list[OffsetPairs]) -> Iterable[tuple[int, int]]:
    """Return all pairs by ascending first number; of equal first numbers only the last pair."""
    pairs = (pair for chunk in chunks for pair in chunk.pairs())
    is_ascending = all(chunk.is_ascending for chunk in chunks)
    if is_ascending and all(chunk.last < after.first for chunk, after in pairwise(chunks)):
        return pairs
    return sorted(dict(pairs).items())


def _smallest(numbers: OffsetArray, bases: OffsetArray) -> NDArray[np.unsignedinteger]:
    """Return `numbers` - `bases` modulo 2^64, in the smallest unsigned integers that hold all of them."""
    differences = numbers.view(np.uint64) - bases.view(np.uint64)
    return differences.astype(np.min_scalar_type(int(differences.max(initial=0))))
