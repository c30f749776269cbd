"""Columns of records to batches: which rows go into which batch, and how many bytes it takes (`DefaultRecord`)."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from ..layout.batch import DELETE_HORIZON_FLAG, HEADER_SIZE, NO_TIMESTAMP
from . import scan
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
    NOT_KNOWN,
    OK,
    OUT_OF_DATA,
    RECORD_TOO_LARGE,
    ROW,
    ROW_COUNT,
    TIMESTAMP,
    VALUE_DATA_SIZE,
    VALUE_WIDTH,
    are_rows_uniform,
    body_size,
    content_size,
    field_of,
    varint_size,
)
from .primitives import add64

_NO_LIMIT = 1 << 62
RECORD_OVERHEAD_MAX = 21  # length, attributes and deltas at their longest (`DefaultRecord.MAX_RECORD_OVERHEAD`)


@device
def _wrong_row(state: Any, row: int, content: int, timestamp: int, offset_delta: int) -> int:
    """Which status it is that stops before `row`."""
    state[ROW] = row
    if content < 0:
        return OUT_OF_DATA
    if timestamp < NO_TIMESTAMP:
        state[DETAIL] = timestamp
        return BAD_TIMESTAMP
    state[DETAIL] = offset_delta
    return BAD_OFFSET_DELTA


@device
def _too_large(state: Any, row: int, record_size: int, batch_size: int) -> int:
    """Which status it is that stops before `row`."""
    state[ROW] = row
    state[DETAIL] = record_size if record_size > INT_MAX else batch_size
    return RECORD_TOO_LARGE if record_size > INT_MAX else BATCH_TOO_LARGE


@device
def _size_limit(batch_size_max: int, content: int) -> int:
    """Bytes that a batch may have: `RecordAccumulator` makes room for its first record at its longest."""
    if batch_size_max == 0:
        return _NO_LIMIT
    return min(max(batch_size_max, HEADER_SIZE + RECORD_OVERHEAD_MAX + content), INT_MAX)


@device
def _end_batch(
    state: Any, columns: Any, capacity: int, row: int, size: int, base_timestamp: int, last_delta: int, max_time: int
) -> int:
    """Write down the batch that ends before `row`."""
    batch = state[BATCH_COUNT]
    columns[scan.SIZE * capacity + batch] = size
    columns[scan.BASE_TIMESTAMP * capacity + batch] = base_timestamp
    columns[scan.LAST_OFFSET_DELTA * capacity + batch] = last_delta
    columns[scan.MAX_TIMESTAMP * capacity + batch] = max_time
    columns[scan.RECORD_COUNT * capacity + batch] = row - state[ROW]
    state[ROW] = row
    state[BATCH_COUNT] = batch + 1
    return row


@kernel("i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64, i64*")
def measure_batches(
    state: Any, key_starts: Any, key_ends: Any, value_starts: Any, value_ends: Any,
    headers_starts: Any, headers_ends: Any, timestamps: Any, offset_deltas: Any,
    columns: Any, capacity: int, row_ends: Any,
) -> int:  # fmt: skip
    """Sizes, deltas, timestamps and counts of batches of the rows from state[ROW] on. Returns the status.

    state: int64[STATE_COUNT]. columns: int64[scan.COLUMN_COUNT, capacity], out; in: ATTRIBUTES and, with the delete
    horizon bit, BASE_TIMESTAMP. row_ends: int64[capacity], the row behind each batch; in if BATCH_SIZE_MAX is 0.
    """
    # in registers: what is written to `columns` may be the state, as far as the compiler knows
    row, row_count, batch_size_max = state[ROW], state[ROW_COUNT], state[BATCH_SIZE_MAX]
    keys_size, values_size, headers_size = state[KEY_DATA_SIZE], state[VALUE_DATA_SIZE], state[HEADERS_DATA_SIZE]
    key_width, value_width, headers_width = state[KEY_WIDTH], state[VALUE_WIDTH], state[HEADERS_WIDTH]
    has_timestamps, timestamp, has_offset_deltas = state[HAS_TIMESTAMPS], state[TIMESTAMP], state[HAS_OFFSET_DELTAS]
    content, are_uniform = NOT_KNOWN, are_rows_uniform(state)
    while row < row_count:
        batch, first_row = state[BATCH_COUNT], row
        if batch == capacity:
            return BATCHES_FULL
        end_row = row_ends[batch] if batch_size_max == 0 and row < row_ends[batch] < row_count else row_count
        base_timestamp = columns[scan.BASE_TIMESTAMP * capacity + batch]
        if columns[scan.ATTRIBUTES * capacity + batch] & DELETE_HORIZON_FLAG == 0:
            base_timestamp = timestamps[row] if has_timestamps == 1 else timestamp
        size, size_limit, last_delta, max_timestamp = HEADER_SIZE, _NO_LIMIT, -1, NO_TIMESTAMP
        while row < end_row:
            if content == NOT_KNOWN or not are_uniform:
                content = content_size(
                    field_of(key_starts, key_ends, row, keys_size, key_width)[1],
                    field_of(value_starts, value_ends, row, values_size, value_width)[1],
                    field_of(headers_starts, headers_ends, row, headers_size, headers_width)[1],
                )
            timestamp = timestamps[row] if has_timestamps == 1 else timestamp
            delta = offset_deltas[row] if has_offset_deltas == 1 else row - first_row
            if content < 0 or timestamp < NO_TIMESTAMP or delta <= last_delta or delta > INT_MAX:
                return _wrong_row(state, row, content, timestamp, delta)
            body = body_size(add64(timestamp, -base_timestamp), delta, content)
            size_with = size + varint_size(body) + body
            if row == first_row:
                size_limit = _size_limit(batch_size_max, content)
            elif size_with > size_limit:
                break
            if size_with > INT_MAX:
                return _too_large(state, row, body, size_with)
            size = size_with
            last_delta, max_timestamp = delta, max(max_timestamp, timestamp)
            row += 1
        row_ends[batch] = row
        _end_batch(state, columns, capacity, row, size, base_timestamp, last_delta, max_timestamp)
    return OK
