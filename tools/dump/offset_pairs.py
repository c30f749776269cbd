"""Pairs of offsets, millions of them in little memory: what a compacted log is full of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

OffsetArray = NDArray[np.int64]

_ROW_COUNT = 1 << 16
_WORDS = (np.uint8, np.uint16, np.uint32, np.uint64)


class OffsetPairs:
    """Two int64 buffers of one length, at least 1, kept as differences in the smallest words that hold them.

    Attributes:
        count: pairs.
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

    def arrays(self) -> tuple[OffsetArray, OffsetArray]:
        """The two arrays, as they were."""
        firsts = np.empty(self.count, np.uint64)
        firsts[0] = self.first % 2**64
        firsts[1:] = self._firsts
        np.cumsum(firsts, out=firsts)
        return firsts.view(np.int64), (firsts + self._seconds).view(np.int64)


def last_pairs(chunks: list[OffsetPairs]) -> Iterator[tuple[int, int]]:
    """All pairs by ascending first number; of equal ones only the last."""
    is_ascending = all(chunk.is_ascending for chunk in chunks)
    if is_ascending and all(chunk.last < after.first for chunk, after in pairwise(chunks)):
        for chunk in chunks:
            yield from _rows(*chunk.arrays())
    else:
        yield from _sorted_rows(chunks)


def _sorted_rows(chunks: list[OffsetPairs]) -> Iterator[tuple[int, int]]:
    arrays = [chunk.arrays() for chunk in chunks]
    firsts = np.concatenate([each[0] for each in arrays])
    seconds = np.concatenate([each[1] for each in arrays])
    order = np.argsort(firsts, kind="stable")
    is_last = np.ones(order.size, dtype=bool)
    is_last[:-1] = firsts[order[1:]] != firsts[order[:-1]]
    order = order[is_last]
    for start in range(0, order.size, _ROW_COUNT):
        rows = order[start : start + _ROW_COUNT]
        yield from _rows(firsts[rows], seconds[rows])


def _rows(firsts: OffsetArray, seconds: OffsetArray) -> Iterator[tuple[int, int]]:
    return zip(firsts.tolist(), seconds.tolist(), strict=True)


def _smallest(numbers: OffsetArray, bases: OffsetArray) -> NDArray[np.unsignedinteger]:
    """`numbers` - `bases`, counted around the 64-bit clock, in the smallest words that hold all of them."""
    differences = numbers.view(np.uint64) - bases.view(np.uint64)
    largest = int(differences.max(initial=0))
    word = next(word for word in _WORDS if largest <= np.iinfo(word).max)
    return differences.astype(word)
