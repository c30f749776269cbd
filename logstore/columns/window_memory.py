"""Memory for windows of records, reused as soon as nothing refers to it.

The first touch of new memory made reading 10 to 50 % slower. So each array is a view of a ctypes array over memory kept
here. Every view, numpy's or Arrow's, keeps the ctypes array alive; when that is freed, its finalizer returns the memory
to the spares. Nobody has to give anything back, and a view is valid as long as it exists.
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
SPARE_COUNT_MAX = 16  # of each size: about what two threads and the reader use at a time


def new_matrix(capacity: int) -> Int64Array:
    """Return int64[COLUMN_COUNT, capacity], uninitialized."""
    return _leased(COLUMN_COUNT * capacity * 8).view(np.int64).reshape(COLUMN_COUNT, capacity)


def new_stream_buffer() -> ByteArray:
    """Return uint8[STREAMS_SIZE_MAX + SLACK_SIZE], uninitialized."""
    return _leased(STREAMS_SIZE_MAX + SLACK_SIZE)


def new_buffer(size: int) -> ByteArray:
    """Return uint8 of `size` or up to twice as much, uninitialized."""
    return _leased(1 << size.bit_length())


@cache
def _spare(size: int) -> deque[ByteArray]:
    """Return the unused memory of this size, shared by all threads: append and pop are atomic."""
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
