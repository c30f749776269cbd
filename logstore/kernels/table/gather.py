"""Converts fields anywhere in a buffer to Arrow's two layouts of byte strings: contiguous ones, or views.

A view has 16 bytes: the size as int32; then a string of up to 12 bytes itself, of a longer one its first four bytes,
the number of a buffer (here 0) and the position in it, int32 each; all little-endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...layout.batch import NO_TIMESTAMP
from ...native.device import device
from ...native.kernel import kernel
from ..codec import copying
from ..codec.copying import copy_words
from ..decode.records import HEADER_COUNT, KEY_POSITION, KEY_SIZE, OFFSET, TIMESTAMP, VALUE_POSITION, VALUE_SIZE
from ..primitives import MASK32, copy16, load64, prefetch, store64

VIEW_SIZE = 16
SLACK_SIZE = copying.SLACK_SIZE
INLINE_SIZE_MAX = 12
# Slots of `found` of `write_record_views`: rows without a key, a value or a timestamp, and rows with headers.
KEY_NULL_COUNT = 0
VALUE_NULL_COUNT = 1
TIMESTAMP_NULL_COUNT = 2
WITH_HEADERS_COUNT = 3
FOUND_COUNT = 4
_INT32_MAX = 2147483647
_SHORT_SIZE_MAX = 16
_AHEAD_COUNT = 32  # rows to prefetch ahead: their bytes are too far apart for the processor to do so
_LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(8)] + [-1], np.int64)  # a mask for each size up to 8


@device
def _put_field(out: Any, o: int, data: Any, position: int, size: int, data_size: int) -> int:
    """Copy bytes, and up to SLACK_SIZE more, but read none from `data_size` on; returns the position after them."""
    if data_size - position < size + SLACK_SIZE:
        for index in range(size):
            out[o + index] = data[position + index]
    elif size <= _SHORT_SIZE_MAX:
        copy16(out, o, data, position)
    else:
        copy_words(out, o, data, position, size)
    return o + size


@kernel("u8*, i64, i64*, i64*, i64, u8*, i64, i64*")
def gather_fields(
    data: Any, data_size: int, positions: Any, sizes: Any, row_count: int, out: Any, out_capacity: int, out_ends: Any
) -> int:
    """Copy the fields of all rows without gaps; returns how many, up to one that is not within the data or has no room.

    data: uint8[data_size]; positions, sizes: int64[row_count], a size of -1 is null; out:
    uint8[out_capacity + SLACK_SIZE]; out_ends: int64[row_count], out.
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
    if size > INLINE_SIZE_MAX:  # so there are 8 bytes to load, of which the next store overwrites four
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


@device
def _is_in_reach(position: int, size: int, data_size: int) -> bool:
    """Return whether a field is within the data and its position fits a view; the size is not negative."""
    return size == 0 or (
        position >= 0 and size <= data_size and position <= data_size - size and position + size <= _INT32_MAX
    )


@kernel("u8*, i64, i64*, i64, i64, i64*, i64*, u8*, u8*, i64*")
def write_record_views(
    data: Any,
    data_size: int,
    records: Any,
    capacity: int,
    row_count: int,
    offsets: Any,
    timestamps: Any,
    keys: Any,
    values: Any,
    found: Any,
) -> int:
    """Write views of all keys and values, and copy offsets and timestamps, in one pass over the columns.

    Returns how many rows, up to one with a field that is not within the data or too far away for a view.

    data: uint8[data_size]; records: int64[decode.COLUMN_COUNT, capacity]; offsets, timestamps: int64[row_count], out;
    keys, values: uint8[row_count * VIEW_SIZE], out; found: int64[FOUND_COUNT], out if all rows are written.
    """
    key_null_count = 0
    value_null_count = 0
    timestamp_null_count = 0
    header_count = 0
    for row in range(row_count):
        ahead = min(row + _AHEAD_COUNT, row_count - 1)
        prefetch(data, records[VALUE_POSITION * capacity + ahead])
        key_size = records[KEY_SIZE * capacity + row]
        key_position = records[KEY_POSITION * capacity + row]
        value_size = records[VALUE_SIZE * capacity + row]
        value_position = records[VALUE_POSITION * capacity + row]
        key_null_count += 1 if key_size < 0 else 0
        value_null_count += 1 if value_size < 0 else 0
        key_size = max(key_size, 0)
        value_size = max(value_size, 0)
        if not (
            _is_in_reach(key_position, key_size, data_size) and _is_in_reach(value_position, value_size, data_size)
        ):
            return row
        _put_view(keys, row * VIEW_SIZE, data, key_position, key_size, data_size)
        _put_view(values, row * VIEW_SIZE, data, value_position, value_size, data_size)
        offsets[row] = records[OFFSET * capacity + row]
        timestamp = records[TIMESTAMP * capacity + row]
        timestamps[row] = timestamp
        timestamp_null_count += 1 if timestamp == NO_TIMESTAMP else 0
        header_count += 1 if records[HEADER_COUNT * capacity + row] != 0 else 0
    found[KEY_NULL_COUNT] = key_null_count
    found[VALUE_NULL_COUNT] = value_null_count
    found[TIMESTAMP_NULL_COUNT] = timestamp_null_count
    found[WITH_HEADERS_COUNT] = header_count
    return row_count
