"""Fields that lie anywhere in a buffer to Arrow's two forms of byte strings: one behind the other, or views.

A view is 16 bytes: the size as int32; up to 12 bytes the string itself, else its first four bytes, the number of a
buffer (here 0) and the position in it, int32 each, all little-endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import copying
from .copying import copy_words
from .kernel import device, kernel
from .primitives import MASK32, load64, prefetch_bytes, store64

VIEW_SIZE = 16
SLACK_SIZE = copying.SLACK_SIZE
INLINE_SIZE_MAX = 12
_INT32_MAX = 2147483647
_SHORT_SIZE_MAX = 16
_AHEAD_COUNT = 32  # rows, whose bytes are asked for before they are needed: they lie too far apart to be foreseen
_LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(8)] + [-1], np.int64)  # a mask for each size up to 8


@device
def _put_field(out: Any, o: int, data: Any, position: int, size: int, data_size: int) -> int:
    """Copy bytes, and up to SLACK_SIZE more; nothing is read from `data_size` on. Returns the position after them."""
    if data_size - position < size + SLACK_SIZE:
        for index in range(size):
            out[o + index] = data[position + index]
    elif size <= _SHORT_SIZE_MAX:
        store64(out, o, load64(data, position))
        store64(out, o + 8, load64(data, position + 8))
    else:
        copy_words(out, o, data, position, size)
    return o + size


@kernel("u8*, i64, i64*, i64*, i64, u8*, i64, i64*")
def gather_fields(
    data: Any, data_size: int, positions: Any, sizes: Any, row_count: int, out: Any, out_capacity: int, out_ends: Any
) -> int:
    """Copy the fields of all rows one behind the other. Returns how many, up to one that is not there or has no room.

    data: uint8[data_size]; positions, sizes: int64[row_count], size -1 null; out: uint8[out_capacity + SLACK_SIZE];
    out_ends: int64[row_count], out.
    """
    o = 0
    for row in range(row_count):
        size = sizes[row]
        if size > 0:
            position = positions[row]
            if position < 0 or size > data_size or position > data_size - size or size > out_capacity - o:
                return row
            o = _put_field(out, o, data, position, size, data_size)
        out_ends[row] = o
    return row_count


@device
def _put_view(out: Any, o: int, data: Any, position: int, size: int, data_size: int) -> int:
    store64(out, o, size)
    if size > INLINE_SIZE_MAX:
        store64(out, o + 4, load64(data, position))
        return store64(out, o + 8, position << 32)
    if size > 0 and data_size - position >= 16:
        low = load64(data, position) & _LOW_BYTES[min(size, 8)]
        high = load64(data, position + 8) & _LOW_BYTES[max(size - 8, 0)]
        store64(out, o + 4, low)
        return store64(out, o + 8, (low >> 32 & MASK32) | (high << 32))
    store64(out, o + 8, 0)
    for index in range(size):
        out[o + 4 + index] = data[position + index]
    return 0


@kernel("u8*, i64, i64*, i64*, i64, u8*")
def write_views(data: Any, data_size: int, positions: Any, sizes: Any, row_count: int, out: Any) -> int:
    """Write a view of the field of every row. Returns how many, up to one that is not there or too far away for a view.

    data: uint8[data_size]; positions, sizes: int64[row_count], size -1 null; out: uint8[row_count * VIEW_SIZE].
    """
    for row in range(row_count):
        prefetch_bytes(data, positions[min(row + _AHEAD_COUNT, row_count - 1)])
        size = max(sizes[row], 0)
        position = positions[row]
        if size > 0 and (
            position < 0 or size > data_size or position > data_size - size or position + size > _INT32_MAX
        ):
            return row
        _put_view(out, row * VIEW_SIZE, data, position, size, data_size)
    return row_count
