"""Records of one v2 batch to the columns of a record table (`DefaultRecord.readFrom`, `DefaultRecordBatch`)."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from .primitives import add64, prefetch_bytes, wrap32
from .quick_record import NOT_QUICK, quick_record
from .record_matrix import (
    COLUMN_COUNT,
    HEADER_COUNT,
    HEADERS_POSITION,
    KEY_POSITION,
    KEY_SIZE,
    OFFSET,
    SEQUENCE,
    TIMESTAMP,
    VALUE_POSITION,
    VALUE_SIZE,
)
from .varint import (
    TOO_LONG,
    read_varint,
    too_long_value,
    varint_position,
    varint_value,
    varlong_size,
    varlong_value,
)

# the rows of the matrix, for callers of the kernel
__all__ = [
    "COLUMN_COUNT",
    "HEADERS_POSITION",
    "HEADER_COUNT",
    "KEY_POSITION",
    "KEY_SIZE",
    "OFFSET",
    "SEQUENCE",
    "TIMESTAMP",
    "VALUE_POSITION",
    "VALUE_SIZE",
    "decode_records",
]

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

TOGETHER = 8  # records that are not asked whether they are quick, once one is not: it is seldom alone
AHEAD_SIZE = 16 * 1024  # bytes, about a batch: while records are decoded nothing else is asked of memory


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
        columns[TIMESTAMP * capacity + row] = add64(state[BASE_TIMESTAMP], delta)
    packed = read_varint(data, start + 1 + size, end)
    if packed < 0:
        return -1
    offset_delta = varint_value(packed)
    columns[OFFSET * capacity + row] = add64(state[BASE_OFFSET], offset_delta)
    sequence = -1
    if state[BASE_SEQUENCE] >= 0:
        sequence = sequence_after(state[BASE_SEQUENCE], offset_delta)
    columns[SEQUENCE * capacity + row] = sequence
    return varint_position(packed)


@device
def _decode_headers(data: Any, position: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """Header count and headers. Position after them, or minus the status."""
    packed = read_varint(data, position, end)
    if packed < 0:
        return -BAD_STRUCTURE
    count = varint_value(packed)
    position = varint_position(packed)
    columns[HEADER_COUNT * capacity + row] = count
    columns[HEADERS_POSITION * capacity + row] = position
    if count == 0:
        return position
    state[DETAIL] = count
    if count < 0:
        return -BAD_HEADER_COUNT
    if count > end - position:
        return -HEADER_COUNT_BEYOND_RECORD
    position = _skip_headers(data, position, end, count, state)
    if position == -2:
        return -BAD_HEADER_KEY_SIZE
    return -BAD_STRUCTURE if position < 0 else position


@device
def _decode_body(data: Any, start: int, end: int, state: Any, columns: Any, capacity: int, row: int) -> int:
    """One record's fields from `start`, not past `end`. Position after it, or minus the status."""
    position = _decode_deltas(data, start, end, state, columns, capacity, row)
    if position < 0:
        return -BAD_STRUCTURE
    packed = skip_field(data, position, end)
    if packed < 0:
        return -BAD_STRUCTURE
    size = max(varint_value(packed), -1)
    position = varint_position(packed)
    columns[KEY_SIZE * capacity + row] = size
    columns[KEY_POSITION * capacity + row] = position - max(size, 0)
    packed = skip_field(data, position, end)
    if packed < 0:
        return -BAD_STRUCTURE
    size = max(varint_value(packed), -1)
    position = varint_position(packed)
    columns[VALUE_SIZE * capacity + row] = size
    columns[VALUE_POSITION * capacity + row] = position - max(size, 0)
    return _decode_headers(data, position, end, state, columns, capacity, row)


@device
def _bad_length(data: Any, position: int, packed: int, is_stream: int, state: Any) -> int:
    """Minus the status of a length varint that does not end."""
    # a stream that ends inside the varint reads as 0xff and so becomes too long
    if packed == TOO_LONG and is_stream == 0:
        state[DETAIL] = too_long_value(data, position)
        return -VARINT_TOO_LONG
    return -PREMATURE_END


@device
def decode_record(
    data: Any, position: int, end: int, is_stream: int, state: Any, columns: Any, capacity: int, row: int
) -> int:
    """Length and body of the record at `position`. Position after it, or minus the status."""
    packed = read_varint(data, position, end)
    if packed < 0:
        return _bad_length(data, position, packed, is_stream, state)
    length = varint_value(packed)
    start = varint_position(packed)
    if is_stream == 1 and length < 0:
        return -PREMATURE_END
    if length > end - start:
        state[DETAIL] = length
        state[SECOND_DETAIL] = end - start
        return -SIZE_BEYOND_STREAM if is_stream == 1 else -SIZE_BEYOND_BATCH
    limit = start + length if is_stream == 1 else end
    position = _decode_body(data, start, limit, state, columns, capacity, row)
    if position >= 0 and position - start != length:
        state[DETAIL] = length
        state[SECOND_DETAIL] = position - start
        return -SIZE_MISMATCH
    return position


@device
def _quick_records(data: Any, end: int, state: Any, columns: Any, capacity: int, row: int, row_end: int) -> int:
    """Records from state[NEXT_POSITION] on, up to one that is not quick, or `row_end`; the row where it stopped.

    A loop of its own: beside all that a record may be, what it needs would not stay in registers.
    """
    first_row = row
    position = state[NEXT_POSITION]
    base_offset = state[BASE_OFFSET]
    base_timestamp = state[BASE_TIMESTAMP]
    base_sequence = state[BASE_SEQUENCE]
    delta_max = 2147483647 - max(base_sequence, 0)
    while row < row_end:
        after = quick_record(data, position, end, base_offset, base_timestamp, delta_max, columns, capacity, row)
        if after == NOT_QUICK:
            break
        prefetch_bytes(data, position + AHEAD_SIZE)
        prefetch_bytes(data, position + AHEAD_SIZE + 64)
        position = after
        row += 1
    state[NEXT_POSITION] = position
    _fill_sequences(columns, capacity, first_row, row, base_offset, base_sequence)
    return row


@device
def _fill_sequences(columns: Any, capacity: int, row: int, row_end: int, base_offset: int, base_sequence: int) -> int:
    """Sequences and header counts of quick records: many in one step of the processor's."""
    for place in range(HEADER_COUNT * capacity + row, HEADER_COUNT * capacity + row_end):
        columns[place] = 0
    if base_sequence < 0:
        for place in range(SEQUENCE * capacity + row, SEQUENCE * capacity + row_end):
            columns[place] = -1
        return 0
    shift = add64(base_sequence, -base_offset)
    for index in range(row, row_end):
        columns[SEQUENCE * capacity + index] = add64(columns[OFFSET * capacity + index], shift)
    return 0


@device
def _any_records(data: Any, state: Any, columns: Any, capacity: int, row: int, row_end: int) -> int:
    """Records from state[NEXT_POSITION] on, up to a bad one, or `row_end`; status, and in state[ROW_COUNT] the row."""
    end = state[END_POSITION]
    is_stream = state[IS_STREAM]
    position = state[NEXT_POSITION]
    status = OK
    while row < row_end:
        after = decode_record(data, position, end, is_stream, state, columns, capacity, row)
        if after < 0:
            status = -after
            break
        position = after
        row += 1
    state[NEXT_POSITION] = position
    state[ROW_COUNT] = row
    return status


@device
def decode_rows(data: Any, state: Any, columns: Any, capacity: int, row: int, row_end: int) -> int:
    """Records of one batch from state[NEXT_POSITION] to `row` and on, before `row_end`, or until the batch's count.

    Returns the status; state[ROW_COUNT] is the row behind the last good one.
    """
    end = state[END_POSITION]
    quick_end = end if state[LOG_APPEND_TIME] == 0 else 0  # the others have times of their own
    missing_count = state[RECORD_COUNT] - state[RECORD_INDEX]
    first_row = row
    row_end = min(row_end, row + missing_count)
    status = OK
    while row < row_end and status == OK:
        row = _quick_records(data, quick_end, state, columns, capacity, row, row_end)
        status = _any_records(data, state, columns, capacity, row, min(row + TOGETHER, row_end))
        row = state[ROW_COUNT]
    state[RECORD_INDEX] += row - first_row
    if row - first_row == missing_count and missing_count > 0 and state[NEXT_POSITION] != end:
        status = RECORDS_REMAINING
        row -= 1
    state[ROW_COUNT] = row
    return status


@kernel("u8*, i64*, i64*, i64")
def decode_records(data: Any, state: Any, columns: Any, capacity: int) -> int:
    """Decode up to `capacity` records of one batch from state[NEXT_POSITION], not past state[END_POSITION].

    data: uint8; state: int64[STATE_COUNT], in and out: call again while state[RECORD_INDEX] is below the count;
    columns: int64[COLUMN_COUNT, capacity], out. Returns the status; the state[ROW_COUNT] rows before a failing record
    are good.
    """
    return decode_rows(data, state, columns, capacity, 0, capacity)
