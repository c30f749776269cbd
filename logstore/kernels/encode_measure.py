"""Columns of records to batches: which rows go into which batch, and how many bytes it takes (`DefaultRecord`)."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from ..layout.batch import DELETE_HORIZON_FLAG, HEADER_SIZE
from .encode_alike import add_alike
from .encode_size import (
    BAD_OFFSET_DELTA,
    BAD_TIMESTAMP,
    BATCH_COUNT,
    BATCH_SIZE_MAX,
    BATCH_TOO_LARGE,
    BATCHES_FULL,
    DETAIL,
    HAS_OFFSET_DELTAS,
    HAS_TIMESTAMPS,
    HEADERS_DATA_SIZE,
    HEADERS_WIDTH,
    INT_MAX,
    KEY_DATA_SIZE,
    KEY_WIDTH,
    LAST_OFFSET_DELTA_SO_FAR,
    MAX_TIMESTAMP_SO_FAR,
    NO_LIMIT,
    OK,
    OUT_OF_DATA,
    RECORD_TOO_LARGE,
    ROW,
    ROW_COUNT,
    SIZE_LIMIT,
    SIZE_SO_FAR,
    TIMESTAMP,
    VALUE_DATA_SIZE,
    VALUE_WIDTH,
    body_size,
    column_size,
    content_size,
    offset_delta_of,
    timestamp_of,
    varint_size,
)
from .primitives import add64
from .scan import ATTRIBUTES, BASE_TIMESTAMP, LAST_OFFSET_DELTA, MAX_TIMESTAMP, RECORD_COUNT, SIZE

BATCH_ENDED = -1  # a status within the kernel: the row is not of this batch
RECORD_OVERHEAD_MAX = 21  # length, attributes and deltas at their longest (`DefaultRecord.MAX_RECORD_OVERHEAD`)


@device
def _wrong_row(state: Any, row: int, content_size: int, timestamp: int, offset_delta: int) -> int:
    """Which status it is that stops before `row`."""
    state[ROW] = row
    if content_size < 0:
        return OUT_OF_DATA
    if timestamp < -1:
        state[DETAIL] = timestamp
        return BAD_TIMESTAMP
    state[DETAIL] = offset_delta
    return BAD_OFFSET_DELTA


@device
def _too_large(state: Any, row: int, record_size: int, batch_size: int) -> int:
    """Which status it is that stops before `row`."""
    state[ROW] = row
    state[DETAIL] = batch_size
    if record_size > INT_MAX:
        state[DETAIL] = record_size
        return RECORD_TOO_LARGE
    return BATCH_TOO_LARGE


@device
def _begin_batch(state: Any, columns: Any, capacity: int, timestamp: int, content_size: int) -> int:
    """Begin a batch with its first record.

    `RecordAccumulator` lets a batch be as large as its buffer, which has room for the first record at its longest.
    """
    batch = state[BATCH_COUNT]
    if columns[ATTRIBUTES * capacity + batch] & DELETE_HORIZON_FLAG == 0:
        columns[BASE_TIMESTAMP * capacity + batch] = timestamp
    limit = max(state[BATCH_SIZE_MAX], HEADER_SIZE + RECORD_OVERHEAD_MAX + content_size)
    state[SIZE_LIMIT] = min(limit, INT_MAX) if state[BATCH_SIZE_MAX] > 0 else NO_LIMIT
    state[SIZE_SO_FAR] = HEADER_SIZE
    state[LAST_OFFSET_DELTA_SO_FAR] = -1
    state[MAX_TIMESTAMP_SO_FAR] = -1
    return 0


@device
def _end_batch(state: Any, columns: Any, capacity: int, row_ends: Any, row: int) -> int:
    """Write down the batch that ends before `row`."""
    batch = state[BATCH_COUNT]
    columns[SIZE * capacity + batch] = state[SIZE_SO_FAR]
    columns[LAST_OFFSET_DELTA * capacity + batch] = state[LAST_OFFSET_DELTA_SO_FAR]
    columns[MAX_TIMESTAMP * capacity + batch] = state[MAX_TIMESTAMP_SO_FAR]
    columns[RECORD_COUNT * capacity + batch] = row - state[ROW]
    row_ends[batch] = row
    state[ROW] = row
    state[BATCH_COUNT] = batch + 1
    return BATCH_ENDED


@device
def _add_row(
    state: Any, columns: Any, capacity: int, row_ends: Any, row: int, content_size: int, timestamp: int, delta: int
) -> int:
    """Add a row to the batch, or end the batch before it. Returns the status."""
    batch = state[BATCH_COUNT]
    if row == state[ROW]:
        _begin_batch(state, columns, capacity, timestamp, content_size)
    if content_size < 0 or timestamp < -1 or delta <= state[LAST_OFFSET_DELTA_SO_FAR] or delta > INT_MAX:
        return _wrong_row(state, row, content_size, timestamp, delta)
    body = body_size(add64(timestamp, -columns[BASE_TIMESTAMP * capacity + batch]), delta, content_size)
    size = state[SIZE_SO_FAR] + varint_size(body) + body
    if size > state[SIZE_LIMIT] and row > state[ROW]:
        return _end_batch(state, columns, capacity, row_ends, row)
    if size > INT_MAX:
        return _too_large(state, row, body, size)
    state[SIZE_SO_FAR] = size
    state[LAST_OFFSET_DELTA_SO_FAR] = delta
    state[MAX_TIMESTAMP_SO_FAR] = max(state[MAX_TIMESTAMP_SO_FAR], timestamp)
    if row + 1 == state[ROW_COUNT] or (state[BATCH_SIZE_MAX] == 0 and row + 1 == row_ends[batch]):
        _end_batch(state, columns, capacity, row_ends, row + 1)
    return OK


@kernel("i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64, i64*")
def measure_batches(
    state: Any,
    key_starts: Any,
    key_ends: Any,
    value_starts: Any,
    value_ends: Any,
    headers_starts: Any,
    headers_ends: Any,
    timestamps: Any,
    offset_deltas: Any,
    columns: Any,
    capacity: int,
    row_ends: Any,
) -> int:
    """Sizes, deltas, timestamps and record counts of batches of the rows from state[ROW] on. Returns the status.

    state: int64[STATE_COUNT], in and out. columns: int64[scan.COLUMN_COUNT, capacity], in: ATTRIBUTES and, with the
    delete horizon bit, BASE_TIMESTAMP, from batch state[BATCH_COUNT] on; out: those of the first line. row_ends:
    int64[capacity], the row behind each batch; in where state[BATCH_SIZE_MAX] is 0, else out.
    """
    row, last_content = state[ROW], -1
    while row < state[ROW_COUNT]:
        if state[BATCH_COUNT] == capacity:
            return BATCHES_FULL
        content = content_size(
            column_size(key_starts, key_ends, row, state[KEY_DATA_SIZE], state[KEY_WIDTH]),
            column_size(value_starts, value_ends, row, state[VALUE_DATA_SIZE], state[VALUE_WIDTH]),
            column_size(headers_starts, headers_ends, row, state[HEADERS_DATA_SIZE], state[HEADERS_WIDTH]),
        )
        timestamp = timestamp_of(timestamps, state[HAS_TIMESTAMPS], row, state[TIMESTAMP])
        delta = offset_delta_of(offset_deltas, state[HAS_OFFSET_DELTAS], row, state[ROW])
        status = _add_row(state, columns, capacity, row_ends, row, content, timestamp, delta)
        if status > OK:
            return status
        row += 1 + status
        # every 16th row: to try each would cost rows of many sizes as much as it saves the others
        if row & 15 == 0 and content == last_content and row > state[ROW]:
            row += add_alike(
                state, key_starts, key_ends, value_starts, value_ends, timestamps, columns, capacity, row_ends, row
            )
        last_content = content
    return OK
