"""Memory for windows, used again when nobody has it any more: what was touched costs nothing to touch again.

Whoever keeps a table, or an array that is a view of one, keeps its memory, and the next table gets another. What a read
leaves behind the next one begins with: of a read of 50 MB its first touch took as long as all the rest.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import decode as fields
from ..kernels.copying import SLACK_SIZE
from .batch_table import ByteArray, Int64Array

_KEPT_COUNT_MAX = 64
SPARE_COUNT_MAX = 16  # of either kind, between two reads: about what two threads and the reader have in hand
STREAMS_SIZE_MAX = 4 * 1024 * 1024  # bytes; from here on numpy asks for huge pages


def _reference_count_of_one() -> int:
    """What `sys.getrefcount` says of a thing that only a list has."""
    alone = [np.empty(0, np.int64)]
    return sys.getrefcount(alone[0])


_ALONE = _reference_count_of_one()


class SpareArrays:
    """What nobody has between two pools; a thread may take and another put meanwhile."""

    def __init__(self, capacity: int) -> None:
        """`capacity`: records of a matrix, of all pools that share these."""
        self.capacity = capacity
        self.matrices: deque[Int64Array] = deque(maxlen=SPARE_COUNT_MAX)
        self.buffers: deque[ByteArray] = deque(maxlen=SPARE_COUNT_MAX)


class MatrixPool:
    """Matrices of one size, and buffers for streams; may be asked by several threads."""

    def __init__(self, spare: SpareArrays) -> None:
        """`spare`: where the memory comes from and goes."""
        self.capacity = spare.capacity
        self._spare = spare
        self._lock = threading.Lock()
        self._matrices: list[Int64Array] = []
        self._buffers: list[ByteArray] = []

    def take(self) -> Int64Array:
        """int64[fields.COLUMN_COUNT, capacity], with anything in it."""
        new = (fields.COLUMN_COUNT, self.capacity)
        return self._free(self._matrices, self._spare.matrices, lambda: np.empty(new, np.int64))

    def take_buffer(self) -> ByteArray:
        """uint8[STREAMS_SIZE_MAX + SLACK_SIZE], with anything in it."""
        new = STREAMS_SIZE_MAX + SLACK_SIZE
        return self._free(self._buffers, self._spare.buffers, lambda: np.empty(new, np.uint8))

    def _free(
        self,
        arrays: list[npt.NDArray[Any]],
        spare: deque[npt.NDArray[Any]],
        make: Callable[[], npt.NDArray[Any]],
    ) -> npt.NDArray[Any]:
        """One of the arrays that only the list has, or a spare one, or a new one."""
        with self._lock:
            for place in range(len(arrays)):
                if sys.getrefcount(arrays[place]) == _ALONE:
                    return arrays[place]
            try:
                array = spare.pop()
            except IndexError:
                array = make()
            if len(arrays) < _KEPT_COUNT_MAX:
                arrays.append(array)
            return array

    def __del__(self) -> None:
        _leave(self._matrices, self._spare.matrices)
        _leave(self._buffers, self._spare.buffers)


def _leave(arrays: list[npt.NDArray[Any]], spare: deque[npt.NDArray[Any]]) -> None:
    """Put those where another pool finds them that only the list has."""
    for place in range(len(arrays)):
        if sys.getrefcount(arrays[place]) == _ALONE:
            spare.append(arrays[place])
