"""Whether the records of a log follow each other without a gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .findings import Findings

_PAIR_COUNT_MIN = 4096  # pairs that are handed on together


class OffsetOrder:
    """Compares each record's offset with that of the record before, in any batch; the first must be 0."""

    def __init__(self, path: str, findings: Findings) -> None:
        self._path = path
        self._findings = findings
        self._previous = np.array([-1], np.int64)
        self._pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._pair_count = 0

    def note(self, offsets: NDArray[np.int64]) -> None:
        """`offsets`: int64, 1-D, of the next records."""
        previous = np.concatenate([self._previous, offsets[:-1]])[: offsets.size]
        rows = np.flatnonzero(offsets != previous + 1)
        if offsets.size:
            self._previous = offsets[-1:].copy()
        if rows.size:
            self._pairs.append((previous[rows], offsets[rows]))
            self._pair_count += rows.size
        if self._pair_count >= _PAIR_COUNT_MIN:
            self.close()

    def close(self) -> None:
        """Tell the findings what is not told yet."""
        if self._pairs:
            self._findings.non_consecutive(self._path, *map(np.concatenate, zip(*self._pairs, strict=True)))
        self._pairs.clear()
        self._pair_count = 0
