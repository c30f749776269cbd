"""Records of a compressed batch as a leader reads them, which skips what it does not check (`PartialDefaultRecord`).

Their sizes are read and not looked at: only keys, values and headers say where a record ends. So records are taken here
that `decode` refuses. State and columns are those of `decode`; of the columns only what is checked is filled.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from .decode import (
    BAD_HEADER_COUNT,
    BAD_HEADER_KEY_SIZE,
    BASE_OFFSET,
    BASE_TIMESTAMP,
    DETAIL,
    END_POSITION,
    KEY_SIZE,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP,
    NEXT_POSITION,
    OFFSET,
    OK,
    RECORD_COUNT,
    RECORD_INDEX,
    RECORDS_REMAINING,
    ROW_COUNT,
    TIMESTAMP,
    VALUE_SIZE,
)
from .primitives import add64
from .varint import PAST_END, read_varint, varint_position, varint_value, varlong_size, varlong_value

# Status of a read, beside those of a decode. The words are in `log.skipped_records`.
LENGTH_TOO_LONG = 20
STRUCTURE_TOO_LONG = 21
# The stream has no more bytes:
ENDED_IN_LENGTH = 22
ENDED_IN_STRUCTURE = 23
ENDED_IN_FIELD = 24  # DETAIL: bytes of the key, value or header that are missing


@device
def _broken(packed: int) -> int:
    """Minus the status of a varint inside of a record that cannot be read."""
    return -ENDED_IN_STRUCTURE if packed == PAST_END else -STRUCTURE_TOO_LONG


@device
def _skip_field(data: Any, position: int, end: int, state: Any) -> int:
    """Past size and bytes of a nullable field, packed like a varint (position, size), or minus the status."""
    packed = read_varint(data, position, end)
    if packed < 0:
        return _broken(packed)
    size = varint_value(packed)
    if size <= 0:
        return packed
    missing_size = size - (end - varint_position(packed))
    if missing_size > 0:
        state[DETAIL] = missing_size
        return -ENDED_IN_FIELD
    return packed + (size << 32)


@device
def _skip_headers(data: Any, position: int, end: int, count: int, state: Any) -> int:
    """Position after `count` headers, or minus the status."""
    for _ in range(count):
        packed = read_varint(data, position, end)
        if packed < 0:
            return _broken(packed)
        if varint_value(packed) < 0:
            state[DETAIL] = varint_value(packed)
            return -BAD_HEADER_KEY_SIZE
        packed = _skip_field(data, position, end, state)
        if packed < 0:
            return packed
        packed = _skip_field(data, varint_position(packed), end, state)
        if packed < 0:
            return packed
        position = varint_position(packed)
    return position


@device
def _read_deltas(data: Any, position: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """Attributes, timestamp and offset. Position after them, or minus the status."""
    size = varlong_size(data, position + 1, end)
    if size < 0:
        return _broken(size)
    if state[LOG_APPEND_TIME] == 1:
        columns[TIMESTAMP * capacity + row] = state[MAX_TIMESTAMP]
    else:
        delta = varlong_value(data, position + 1, size)
        columns[TIMESTAMP * capacity + row] = add64(state[BASE_TIMESTAMP], delta)
    packed = read_varint(data, position + 1 + size, end)
    if packed < 0:
        return _broken(packed)
    columns[OFFSET * capacity + row] = add64(state[BASE_OFFSET], varint_value(packed))
    return varint_position(packed)


@device
def _skip_record(data: Any, position: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """Position after the record at `position`, or minus the status."""
    packed = read_varint(data, position, end)
    if packed < 0:
        return -ENDED_IN_LENGTH if packed == PAST_END else -LENGTH_TOO_LONG
    position = _read_deltas(data, varint_position(packed), end, state, columns, capacity, row)
    if position < 0:
        return position
    for column in (KEY_SIZE, VALUE_SIZE):
        packed = _skip_field(data, position, end, state)
        if packed < 0:
            return packed
        columns[column * capacity + row] = varint_value(packed)
        position = varint_position(packed)
    packed = read_varint(data, position, end)
    if packed < 0:
        return _broken(packed)
    count = varint_value(packed)
    if count < 0:
        state[DETAIL] = count
        return -BAD_HEADER_COUNT
    return _skip_headers(data, varint_position(packed), end, count, state)


@kernel("u8*, i64*, i64*, i64")
def skip_records(data: Any, state: Any, columns: Any, capacity: int) -> int:
    """Read up to `capacity` records of a stream from state[NEXT_POSITION], not past state[END_POSITION].

    data: uint8, the decompressed stream; state: int64[decode.STATE_COUNT], in and out: call again while
    state[RECORD_INDEX] is below the count; columns: int64[decode.COLUMN_COUNT, capacity], out: OFFSET, TIMESTAMP, and
    KEY_SIZE and VALUE_SIZE as they are stored, any negative one for null. Returns the status.
    """
    count = state[RECORD_COUNT]
    end = state[END_POSITION]
    index = state[RECORD_INDEX]
    position = state[NEXT_POSITION]
    row = 0
    status = OK
    while index < count and row < capacity:
        after = _skip_record(data, position, end, state, columns, capacity, row)
        if after < 0:
            status = -after
            break
        position = after
        index += 1
        if index == count and position != end:
            status = RECORDS_REMAINING
            break
        row += 1
    state[RECORD_INDEX] = index
    state[NEXT_POSITION] = position
    state[ROW_COUNT] = row
    return status
