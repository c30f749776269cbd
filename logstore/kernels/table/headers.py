"""Converts headers of records to columns, and back (`DefaultRecord`, KIP-82)."""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ...native.kernel import kernel
from ..encode.fields import put_field, put_varint
from ..encode.sizes import NULL, OUTSIDE, field_of, sized, varint_size
from ..varint import read_header

# Rows of the matrix of headers, one int64 per header: ranges of the data, as in `encode.structs`.
KEY_START = 0
KEY_END = 1
VALUE_START = 2
VALUE_END = 3  # null if before the start
COLUMN_COUNT = 4

# Slots of the state. In, for `encode_headers`:
ROW_COUNT = 0
HEADER_COUNT = 1
KEY_DATA_SIZE = 2
VALUE_DATA_SIZE = 3  # -1: all values are null
OUT_CAPACITY = 4
# Out:
ROW = 5  # where the kernel stopped
HAS_OTHER_THAN_ASCII = 6  # of `decode_headers`
STATE_COUNT = 7

# Status, for row state[ROW]; `columns.header_columns` has the messages.
OK = 0
BAD_RANGE = 1  # a row's headers, or the bytes of a header, are not within the data
NULL_KEY = 2
OUT_FULL = 3


@kernel("i64*, i64*, i64*, u8*, i64*, i64*, u8*, i64*, i64*, u8*, i64*")
def encode_headers(
    state: Any,
    starts: Any,
    ends: Any,
    keys: Any,
    key_starts: Any,
    key_ends: Any,
    values: Any,
    value_starts: Any,
    value_ends: Any,
    out: Any,
    out_ends: Any,
) -> int:
    """Encode the headers of each row as in a record, their count first. Returns the status.

    starts, ends: int64[state[ROW_COUNT]], range of each row's headers; keys, values: uint8; the other starts and ends:
    int64[state[HEADER_COUNT]]; out: uint8[state[OUT_CAPACITY] + fields.SLACK_SIZE]; out_ends: int64[state[ROW_COUNT]],
    out, end of each row's headers.
    """
    o, capacity = 0, state[OUT_CAPACITY]
    key_data_size, value_data_size = state[KEY_DATA_SIZE], state[VALUE_DATA_SIZE]
    for row in range(state[ROW_COUNT]):
        state[ROW] = row
        first, end = starts[row], ends[row]
        if first < 0 or end < first or end > state[HEADER_COUNT]:
            return BAD_RANGE
        if o + varint_size(end - first) > capacity:
            return OUT_FULL
        o = put_varint(out, o, end - first)
        for index in range(first, end):
            key_start, key_size = field_of(key_starts, key_ends, index, key_data_size, -1)
            value_start, value_size = field_of(value_starts, value_ends, index, value_data_size, -1)
            if key_size == NULL:
                return NULL_KEY
            if min(key_size, value_size) == OUTSIDE:
                return BAD_RANGE
            if sized(key_size) + sized(value_size) > capacity - o:
                return OUT_FULL
            o = put_field(out, o, keys, key_start, key_size)
            o = put_field(out, o, values, value_start, value_size)
        out_ends[row] = o
    return OK


@device
def _has_other_than_ascii(data: Any, start: int, end: int) -> int:
    bits = 0
    for position in range(start, end):
        bits |= data[position]
    return bits >> 7


@device
def _decode_header(data: Any, position: int, end: int, columns: Any, capacity: int, index: int) -> int:
    """Note the ranges of the header at `position`; returns the position after it, -1 if it is not within the data."""
    key_size, key_end, value_size, position = read_header(data, position, end)
    if position < 0:
        return -1
    value_start = position - max(value_size, 0)
    columns[KEY_START * capacity + index] = key_end - key_size
    columns[KEY_END * capacity + index] = key_end
    columns[VALUE_START * capacity + index] = value_start
    columns[VALUE_END * capacity + index] = value_start + max(value_size, -1)
    return position


@kernel("i64*, u8*, i64, i64*, i64*, i64*, i64")
def decode_headers(
    state: Any, data: Any, data_size: int, positions: Any, counts: Any, columns: Any, capacity: int
) -> int:
    """Find the headers of records, row by row. Returns the status.

    state: int64[STATE_COUNT], in: ROW_COUNT; out: ROW, and HAS_OTHER_THAN_ASCII, 1 if a key has such a byte; data:
    uint8[data_size]; positions, counts: int64[state[ROW_COUNT]], of `decode_records`; columns:
    int64[COLUMN_COUNT, capacity], out.
    """
    index = 0
    state[HAS_OTHER_THAN_ASCII] = 0
    for row in range(state[ROW_COUNT]):
        state[ROW] = row
        position = positions[row]
        if position < 0 or position > data_size:
            return BAD_RANGE
        if counts[row] > capacity - index:
            return OUT_FULL
        for _ in range(counts[row]):
            position = _decode_header(data, position, data_size, columns, capacity, index)
            if position < 0:
                return BAD_RANGE
            start, end = columns[KEY_START * capacity + index], columns[KEY_END * capacity + index]
            state[HAS_OTHER_THAN_ASCII] |= _has_other_than_ascii(data, start, end)
            index += 1
    return OK
