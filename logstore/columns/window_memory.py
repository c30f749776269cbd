"""Memory for windows of records, used again when nobody has a view of it any more.

New memory costs its first touch: it took reading 10 to 50 % more processor time. So an array is a view of a ctypes
array that lies over memory of ours. Every view of it, numpy's or Arrow's, keeps the ctypes array alive, and when that
goes, its finalizer makes the memory spare. Nothing has to be given back, and whoever holds a view keeps its memory.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from functools import cache
from typing import Any

import numpy as np

from ..kernels.codec.copying import SLACK_SIZE
from ..kernels.decode.records import COLUMN_COUNT
from .batch_table import ByteArray, Int64Array

STREAMS_SIZE_MAX = 4 * 1024 * 1024  # bytes; from here on numpy asks for huge pages
SPARE_COUNT_MAX = 16  # of a size: about what two threads and the reader have in hand


def new_matrix(capacity: int) -> Int64Array:
    """Return int64[COLUMN_COUNT, capacity], with anything in it."""
    return _leased(COLUMN_COUNT * capacity * 8).view(np.int64).reshape(COLUMN_COUNT, capacity)


def new_stream_buffer() -> ByteArray:
    """Return uint8[STREAMS_SIZE_MAX + SLACK_SIZE], with anything in it."""
    return _leased(STREAMS_SIZE_MAX + SLACK_SIZE)


@cache
def _spare(size: int) -> deque[ByteArray]:
    """What nobody has a view of, of all threads: appending and popping are atomic."""
    return deque(maxlen=SPARE_COUNT_MAX)


def _leased(size: int) -> ByteArray:
    spare = _spare(size)
    try:
        memory = spare.pop()
    except IndexError:
        memory = np.empty(size, np.uint8)
    owner: Any = (ctypes.c_uint8 * size).from_buffer(memory.data)
    weakref.finalize(owner, spare.append, memory).atexit = False
    return np.frombuffer(owner, np.uint8)
