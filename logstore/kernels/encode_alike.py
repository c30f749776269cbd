"""Rows whose records take as many bytes as the one before, which is most rows of columns of a fixed width.

What such a record takes need not be worked out again, and its first bytes, length and attributes, are those of the
record before.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from .encode_fields import put_field, put_varint
from .encode_size import (
    BATCH_COUNT,
    BATCH_SIZE_MAX,
    HAS_OFFSET_DELTAS,
    HAS_TIMESTAMPS,
    HEADERS_DATA_SIZE,
    INT_MAX,
    KEY_DATA_SIZE,
    KEY_WIDTH,
    LAST_OFFSET_DELTA_SO_FAR,
    MAX_TIMESTAMP_SO_FAR,
    NO_LIMIT,
    ROW,
    ROW_COUNT,
    SIZE_LIMIT,
    SIZE_SO_FAR,
    TIMESTAMP,
    VALUE_DATA_SIZE,
    VALUE_WIDTH,
    column_size,
    content_size,
    timestamp_of,
    varint_size,
)
from .primitives import add64, load64, store64
from .scan import BASE_TIMESTAMP

ROW_COUNT_MIN = 16  # of a batch whose rows are looked at for it


@device
def _is_plain(state: Any) -> bool:
    """Whether the rows have nothing but keys, values and timestamps."""
    return state[HEADERS_DATA_SIZE] < 0 and state[HAS_OFFSET_DELTAS] == 0


@device
def _are_equal(data_size: int, width: int) -> bool:
    """Whether all fields of a column are as long, so that none of them has to be looked at."""
    return data_size < 0 or width >= 0


@device
def _longer_delta(delta: int) -> int:
    """The next offset delta that takes more bytes."""
    limit = 64
    while delta >= limit:
        limit <<= 7
    return limit


@device
def add_alike(
    state: Any, key_starts: Any, key_ends: Any, value_starts: Any, value_ends: Any, timestamps: Any,
    columns: Any, capacity: int, row_ends: Any, row: int,
) -> int:  # fmt: skip
    """Add the rows from `row` on that are like the one before it to its batch, but for the batch's last one.

    Arguments as those of `measure_batches`. Returns how many.
    """
    if not _is_plain(state):
        return 0
    keys_size, values_size = state[KEY_DATA_SIZE], state[VALUE_DATA_SIZE]
    key_width, value_width = state[KEY_WIDTH], state[VALUE_WIDTH]
    has_timestamps, only_timestamp = state[HAS_TIMESTAMPS], state[TIMESTAMP]
    first_row, base_timestamp = state[ROW], columns[BASE_TIMESTAMP * capacity + state[BATCH_COUNT]]
    key_size = column_size(key_starts, key_ends, row - 1, keys_size, key_width)
    value_size = column_size(value_starts, value_ends, row - 1, values_size, value_width)
    time_delta = add64(timestamp_of(timestamps, has_timestamps, row - 1, only_timestamp), -base_timestamp)
    deltas_size = varint_size(time_delta) + varint_size(row - 1 - first_row)
    body = 1 + deltas_size + content_size(key_size, value_size, -1)
    record_size = varint_size(body) + body
    size, size_limit = state[SIZE_SO_FAR], min(state[SIZE_LIMIT], INT_MAX)
    max_timestamp = state[MAX_TIMESTAMP_SO_FAR]
    last_row = min(state[ROW_COUNT], row_ends[state[BATCH_COUNT]] if state[BATCH_SIZE_MAX] == 0 else NO_LIMIT) - 1
    end_row = min(last_row, row + (size_limit - size) // record_size)
    at = row
    if has_timestamps == 0 and _are_equal(keys_size, key_width) and _are_equal(values_size, value_width):
        at = max(row, min(end_row, first_row + _longer_delta(row - 1 - first_row)))
    while at < end_row:
        timestamp = timestamp_of(timestamps, has_timestamps, at, only_timestamp)
        if (
            timestamp < -1
            or column_size(key_starts, key_ends, at, keys_size, key_width) != key_size
            or column_size(value_starts, value_ends, at, values_size, value_width) != value_size
            or varint_size(add64(timestamp, -base_timestamp)) + varint_size(at - first_row) != deltas_size
        ):
            break
        max_timestamp = max(max_timestamp, timestamp)
        at += 1
    state[SIZE_SO_FAR] = size + (at - row) * record_size
    state[LAST_OFFSET_DELTA_SO_FAR] = at - 1 - first_row
    state[MAX_TIMESTAMP_SO_FAR] = max_timestamp
    return at - row


@device
def _are_as_long(starts: Any, ends: Any, data_size: int, width: int, row: int, end_row: int) -> bool:
    """Whether the fields of the first, the second, the middle and the last row have the same size."""
    size = column_size(starts, ends, row, data_size, width)
    return (
        column_size(starts, ends, row + 1, data_size, width) == size
        and column_size(starts, ends, (row + end_row) >> 1, data_size, width) == size
        and column_size(starts, ends, end_row - 1, data_size, width) == size
    )


@device
def are_alike(
    state: Any, key_starts: Any, key_ends: Any, value_starts: Any, value_ends: Any, row: int, end_row: int
) -> bool:
    """Whether the rows of a batch look as if most were alike, so that looking for those pays."""
    return (
        end_row - row >= ROW_COUNT_MIN
        and _is_plain(state)
        and _are_as_long(value_starts, value_ends, state[VALUE_DATA_SIZE], state[VALUE_WIDTH], row, end_row)
        and _are_as_long(key_starts, key_ends, state[KEY_DATA_SIZE], state[KEY_WIDTH], row, end_row)
    )


@device
def put_alike(
    out: Any, out_capacity: int, start: int, o: int, state: Any,
    keys: Any, key_starts: Any, key_ends: Any, values: Any, value_starts: Any, value_ends: Any, timestamps: Any,
    base_timestamp: int, first_row: int, row: int, end_row: int,
) -> int:  # fmt: skip
    """Write the rows from `row` on that are like the one before, whose record is `start` to `o`. Returns how many."""
    keys_size, values_size = state[KEY_DATA_SIZE], state[VALUE_DATA_SIZE]
    key_width, value_width = state[KEY_WIDTH], state[VALUE_WIDTH]
    has_timestamps, only_timestamp = state[HAS_TIMESTAMPS], state[TIMESTAMP]
    key_size = column_size(key_starts, key_ends, row - 1, keys_size, key_width)
    value_size = column_size(value_starts, value_ends, row - 1, values_size, value_width)
    content = content_size(key_size, value_size, -1)
    time_delta = add64(timestamp_of(timestamps, has_timestamps, row - 1, only_timestamp), -base_timestamp)
    deltas_size = varint_size(time_delta) + varint_size(row - 1 - first_row)
    size, head = o - start, load64(out, start)
    head_size = size - deltas_size - content
    if content < 0 or head_size < 2:  # the columns were changed meanwhile
        return 0
    at = row
    while at < end_row and o + size <= out_capacity:
        time_delta = add64(timestamp_of(timestamps, has_timestamps, at, only_timestamp), -base_timestamp)
        delta = at - first_row
        if (
            column_size(key_starts, key_ends, at, keys_size, key_width) != key_size
            or column_size(value_starts, value_ends, at, values_size, value_width) != value_size
            or varint_size(time_delta) + varint_size(delta) != deltas_size
        ):
            break
        store64(out, o, head)
        o = put_varint(out, put_varint(out, o + head_size, time_delta), delta)
        o = put_field(out, o, keys, key_starts, at, key_width, key_size)
        o = put_field(out, o, values, value_starts, at, value_width, value_size)
        out[o] = 0
        o += 1
        at += 1
    return at - row
