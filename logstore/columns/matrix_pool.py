"""Memory for windows, used again when nobody has it any more: what was touched costs nothing to touch again.

Whoever keeps a table, or an array that is a view of one, keeps its memory, and the next table gets another.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import decode as fields
from ..kernels.copying import SLACK_SIZE
from .batch_table import ByteArray, Int64Array

_KEPT_COUNT_MAX = 64
STREAMS_SIZE_MAX = 4 * 1024 * 1024  # bytes; from here on numpy asks for huge pages


def _reference_count_of_one() -> int:
    """What `sys.getrefcount` says of a thing that only a list has."""
    alone = [np.empty(0, np.int64)]
    return sys.getrefcount(alone[0])


_ALONE = _reference_count_of_one()


class MatrixPool:
    """Matrices of one size, and buffers for streams; may be asked by several threads."""

    def __init__(self, capacity: int) -> None:
        """`capacity`: records of a matrix."""
        self.capacity = capacity
        self._lock = threading.Lock()
        self._matrices: list[Int64Array] = []
        self._buffers: list[ByteArray] = []

    def take(self) -> Int64Array:
        """int64[fields.COLUMN_COUNT, capacity], with anything in it."""
        return self._free(self._matrices, lambda: np.empty((fields.COLUMN_COUNT, self.capacity), np.int64))

    def take_buffer(self) -> ByteArray:
        """uint8[STREAMS_SIZE_MAX + SLACK_SIZE], with anything in it."""
        return self._free(self._buffers, lambda: np.empty(STREAMS_SIZE_MAX + SLACK_SIZE, np.uint8))

    def _free(self, arrays: list[npt.NDArray[Any]], make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """One of the arrays that only the list has, or a new one."""
        with self._lock:
            for place in range(len(arrays)):
                if sys.getrefcount(arrays[place]) == _ALONE:
                    return arrays[place]
            array = make()
            if len(arrays) < _KEPT_COUNT_MAX:
                arrays.append(array)
            return array
