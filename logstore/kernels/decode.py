"""Records of one v2 batch to the columns of a record table (`DefaultRecord.readFrom`, `DefaultRecordBatch`)."""

from __future__ import annotations

from typing import Any

from .kernel import device, kernel
from .primitives import wrap32, wrap64
from .varint import (
    TOO_LONG,
    read_varint,
    too_long_value,
    varint_position,
    varint_value,
    varlong_size,
    varlong_value,
)

# Rows of the column matrix, one int64 a record. Positions count from the start of the buffer decoded from.
OFFSET = 0
TIMESTAMP = 1
SEQUENCE = 2  # -1 without
KEY_POSITION = 3
KEY_SIZE = 4  # -1 null
VALUE_POSITION = 5
VALUE_SIZE = 6  # -1 null
HEADERS_POSITION = 7  # first header, after the count
HEADER_COUNT = 8
COLUMN_COUNT = 9

# Slots of the state that a decode of one batch works on. First what the batch says,
BASE_OFFSET = 0
BASE_TIMESTAMP = 1
LOG_APPEND_TIME = 2  # 1: every record has MAX_TIMESTAMP
MAX_TIMESTAMP = 3
BASE_SEQUENCE = 4
RECORD_COUNT = 5
IS_STREAM = 6  # 1: decompressed, where Kafka reads each record into a buffer of its own
END_POSITION = 7  # the batch ends here
# then how far the decode is,
RECORD_INDEX = 8  # records of the batch decoded so far
NEXT_POSITION = 9
# and what the last call did.
ROW_COUNT = 10
DETAIL = 11
SECOND_DETAIL = 12
STATE_COUNT = 13

# Status of a decode; the words are in `columns.record_table`.
OK = 0
PREMATURE_END = 1
VARINT_TOO_LONG = 2  # length of a plain record; DETAIL: the 32 bits read so far
SIZE_BEYOND_BATCH = 3  # DETAIL: length, SECOND_DETAIL: bytes remaining
SIZE_BEYOND_STREAM = 4  # DETAIL: length
BAD_STRUCTURE = 5
BAD_HEADER_COUNT = 6  # DETAIL: count
HEADER_COUNT_BEYOND_RECORD = 7  # DETAIL: count
BAD_HEADER_KEY_SIZE = 8  # DETAIL: size
SIZE_MISMATCH = 9  # DETAIL: length, SECOND_DETAIL: bytes read
RECORDS_REMAINING = 10


@device
def skip_field(data: Any, position: int, end: int) -> int:
    """Past a nullable field, packed like a varint (position after the field, its size); negative if it does not fit."""
    packed = read_varint(data, position, end)
    if packed < 0:
        return -1
    size = varint_value(packed)
    if size <= 0:
        return packed
    after = varint_position(packed)
    if size > end - after:
        return -1
    return packed + (size << 32)


@device
def _skip_headers(data: Any, position: int, end: int, count: int, state: Any) -> int:
    """Past `count` headers; -1 bad structure, -2 bad key size (in state[DETAIL])."""
    for _ in range(count):
        packed = read_varint(data, position, end)
        if packed < 0:
            return -1
        key_size = varint_value(packed)
        if key_size < 0:
            state[DETAIL] = key_size
            return -2
        if key_size > end - varint_position(packed):
            return -1
        packed = skip_field(data, varint_position(packed) + key_size, end)
        if packed < 0:
            return -1
        position = varint_position(packed)
    return position


@device
def sequence_after(sequence: int, increment: int) -> int:
    """`DefaultRecordBatch.incrementSequence`, Java's overflow included: 0 follows 2147483647."""
    if sequence > wrap32(2147483647 - increment):
        return wrap32(increment - (2147483647 - sequence) - 1)
    return wrap32(sequence + increment)


@device
def _decode_deltas(data: Any, start: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """Attributes, timestamp, offset and sequence; position after them, -1 when they do not fit."""
    if start >= end:
        return -1
    size = varlong_size(data, start + 1, end)
    if size < 0:
        return -1
    if state[LOG_APPEND_TIME] == 1:
        columns[TIMESTAMP * capacity + row] = state[MAX_TIMESTAMP]
    else:
        delta = varlong_value(data, start + 1, size)
        columns[TIMESTAMP * capacity + row] = wrap64(state[BASE_TIMESTAMP], delta)
    packed = read_varint(data, start + 1 + size, end)
    if packed < 0:
        return -1
    offset_delta = varint_value(packed)
    columns[OFFSET * capacity + row] = wrap64(state[BASE_OFFSET], offset_delta)
    sequence = -1
    if state[BASE_SEQUENCE] >= 0:
        sequence = sequence_after(state[BASE_SEQUENCE], offset_delta)
    columns[SEQUENCE * capacity + row] = sequence
    return varint_position(packed)


@device
def _decode_headers(data: Any, position: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """Header count and headers. Status; state[NEXT_POSITION] := after them."""
    packed = read_varint(data, position, end)
    if packed < 0:
        return BAD_STRUCTURE
    count = varint_value(packed)
    position = varint_position(packed)
    columns[HEADER_COUNT * capacity + row] = count
    columns[HEADERS_POSITION * capacity + row] = position
    if count != 0:
        state[DETAIL] = count
        if count < 0:
            return BAD_HEADER_COUNT
        if count > end - position:
            return HEADER_COUNT_BEYOND_RECORD
        position = _skip_headers(data, position, end, count, state)
        if position == -2:
            return BAD_HEADER_KEY_SIZE
        if position < 0:
            return BAD_STRUCTURE
    state[NEXT_POSITION] = position
    return OK


@device
def _decode_body(data: Any, start: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """One record's fields from `start`, not past `end`. Status; state[NEXT_POSITION] := after it."""
    position = _decode_deltas(data, start, end, state, columns, capacity, row)
    if position < 0:
        return BAD_STRUCTURE
    packed = skip_field(data, position, end)
    if packed < 0:
        return BAD_STRUCTURE
    size = max(varint_value(packed), -1)
    position = varint_position(packed)
    columns[KEY_SIZE * capacity + row] = size
    columns[KEY_POSITION * capacity + row] = position - max(size, 0)
    packed = skip_field(data, position, end)
    if packed < 0:
        return BAD_STRUCTURE
    size = max(varint_value(packed), -1)
    position = varint_position(packed)
    columns[VALUE_SIZE * capacity + row] = size
    columns[VALUE_POSITION * capacity + row] = position - max(size, 0)
    return _decode_headers(data, position, end, state, columns, capacity, row)


@device
def _decode_record(data: Any, state: Any, columns: Any, capacity: int, row: int) -> int:
    """Length and body of the record at state[NEXT_POSITION]. Status."""
    end = state[END_POSITION]
    is_stream = state[IS_STREAM]
    packed = read_varint(data, state[NEXT_POSITION], end)
    if packed < 0:
        # a stream that ends inside the varint reads as 0xff and so becomes too long
        if packed == TOO_LONG and is_stream == 0:
            state[DETAIL] = too_long_value(data, state[NEXT_POSITION])
            return VARINT_TOO_LONG
        return PREMATURE_END
    length = varint_value(packed)
    start = varint_position(packed)
    if is_stream == 1 and length < 0:
        return PREMATURE_END
    state[DETAIL] = length
    if length > end - start:
        state[SECOND_DETAIL] = end - start
        return SIZE_BEYOND_STREAM if is_stream == 1 else SIZE_BEYOND_BATCH
    limit = start + length if is_stream == 1 else end
    status = _decode_body(data, start, limit, state, columns, capacity, row)
    if status != OK:
        return status
    read_size = state[NEXT_POSITION] - start
    if read_size != length:
        state[DETAIL] = length
        state[SECOND_DETAIL] = read_size
        return SIZE_MISMATCH
    return OK


@device
def decode_chunk(data: Any, state: Any, columns: Any, capacity: int) -> int:
    """Records of one batch from state[NEXT_POSITION] until `capacity` rows or the batch's count. Status."""
    count = state[RECORD_COUNT]
    index = state[RECORD_INDEX]
    row = 0
    status = OK
    while index < count and row < capacity:
        status = _decode_record(data, state, columns, capacity, row)
        if status != OK:
            break
        index += 1
        if index == count and state[NEXT_POSITION] != state[END_POSITION]:
            status = RECORDS_REMAINING
            break
        row += 1
    state[RECORD_INDEX] = index
    state[ROW_COUNT] = row
    return status


@kernel("u8*, i64*, i64*, i64")
def decode_records(data: Any, state: Any, columns: Any, capacity: int) -> int:
    """Decode up to `capacity` records of one batch from state[NEXT_POSITION], not past state[END_POSITION].

    data: uint8; state: int64[STATE_COUNT], in and out: call again while state[RECORD_INDEX] is below the count; columns:
    int64[COLUMN_COUNT, capacity], out. Returns the status; the state[ROW_COUNT] rows before a failing record are good.
    """
    return decode_chunk(data, state, columns, capacity)
