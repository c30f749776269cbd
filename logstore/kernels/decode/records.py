"""Decodes the records of one v2 batch into the columns of a record table (`DefaultRecord.readFrom`).

A fast path decodes usual records: short numbers, no headers, sizes that agree. The full decoder takes any other record
and finds any error.
"""

from __future__ import annotations

from typing import Any

from ...layout.record import SEQUENCE_MAX
from ...native.device import device, inlined
from ...native.kernel import kernel
from ..primitives import add64, load64, prefetch
from ..rules import increment_sequence
from ..varint import (
    BYTES_PAST_END,
    NEGATIVE_KEY_SIZE,
    PAST_END,
    TOO_LONG,
    read_field,
    read_header,
    read_varint,
    read_varlong,
)

# Rows of the column matrix, one int64 per record. Positions count from the start of the decoded buffer.
OFFSET = 0
TIMESTAMP = 1
SEQUENCE = 2  # -1: none
KEY_POSITION = 3
KEY_SIZE = 4  # -1: null
VALUE_POSITION = 5
VALUE_SIZE = 6  # -1: null
HEADERS_POSITION = 7  # first header, after the count
HEADER_COUNT = 8
COLUMN_COUNT = 9

# Slots of the state of a batch's decode. Fields of the batch,
BASE_OFFSET = 0
BASE_TIMESTAMP = 1
LOG_APPEND_TIME = 2  # 1: every record has MAX_TIMESTAMP
MAX_TIMESTAMP = 3
BASE_SEQUENCE = 4
RECORD_COUNT = 5
SOURCE = 6  # one of the sources below
END_POSITION = 7  # end of the records
# the progress,
RECORD_INDEX = 8  # records of the batch decoded so far
NEXT_POSITION = 9
# the result of the last call,
ROW_COUNT = 10
DETAIL = 11
SECOND_DETAIL = 12
# and a setting of the caller.
SIZE_MAX = 13  # length of the largest record of a stream; 0: any length, as Kafka 4.3 reads it
STATE_COUNT = 14

# Sources.
PLAIN = 0  # the batch itself
STREAM = 1  # decompressed; Kafka reads each record into a buffer of its own
SKIPPED_STREAM = 2  # decompressed, read as leaders do: they ignore a record's length (`PartialDefaultRecord`)

# Status of a decode; `columns.record_table` has the messages.
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
NEGATIVE_SIZE = 11  # of a stream; DETAIL: length
SIZE_ABOVE_MAX = 12  # of a stream; DETAIL: length, SECOND_DETAIL: SIZE_MAX
# Of a skipped stream; `log.append.validate` has the messages.
LENGTH_TOO_LONG = 20
STRUCTURE_TOO_LONG = 21
ENDED_IN_LENGTH = 22
ENDED_IN_STRUCTURE = 23
ENDED_IN_FIELD = 24  # DETAIL: bytes of the key, value or header that are missing

TOGETHER = 8  # records that the full decoder takes once one is not for the fast path, as they seldom come alone
AHEAD_SIZE = 16 * 1024  # bytes to prefetch ahead, about a batch: the decode leaves the memory bandwidth unused

_NOT_FAST = 0
_FAST_ROOM = 24  # bytes that must follow, so that no number up to the key's size needs its own check of the end
_WORD_SIZE = 8
_FAST_LENGTH_END = 1 << 20  # no record that long is for the fast path, as its length has more than three bytes
_NO_NUMBER = 1 << 40  # larger than any number that it is compared with


@inlined
def _number_size(word: int) -> int:
    """Return the size, 1 to 3, of the varint at the start of a little-endian word."""
    if word & 0x80 == 0:
        return 1
    if word & 0x8000 == 0:
        return 2
    return 3


@inlined
def _number_of(word: int) -> int:
    """Return the varint at the start of a little-endian word, still zigzag; _NO_NUMBER if it has over three bytes."""
    if word & 0x80 == 0:
        return word & 0x7F
    if word & 0x8000 == 0:
        return (word & 0x7F) | ((word >> 1) & 0x3F80)
    if word & 0x800000 == 0:
        return (word & 0x7F) | ((word >> 1) & 0x3F80) | ((word >> 2) & 0x1FC000)
    return _NO_NUMBER


@inlined
def _fast_field(data: Any, position: int, columns: Any, position_place: int, size_place: int) -> int:
    """Write position and size of the key or value at `position` to two places; returns the position after it."""
    word = load64(data, position)
    number = _number_of(word)
    position += _number_size(word)
    columns[position_place] = position
    if number & 1 == 1:
        columns[size_place] = -1
        return position
    columns[size_place] = number >> 1
    return position + (number >> 1)


@inlined
def _fast_record(
    data: Any,
    position: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    delta_max: int,
    columns: Any,
    capacity: int,
    row: int,
) -> int:
    """Decode the record at `position` of a batch up to `end`; returns the position after it, or _NOT_FAST.

    A record depends on the one before only by its length, so that the processor works on several at once. A number's
    size is tested before its bits are used, so that the compiler drops the code of the other sizes in each branch. The
    caller fills sequences and header counts; `delta_max` is the last delta whose sequence does not overflow.
    """
    if end - position < _FAST_ROOM:
        return _NOT_FAST
    word = load64(data, position)
    number = _number_of(word)
    position += _number_size(word)
    after = position + (number >> 1)
    if number & 1 == 1 or after > end:
        return _NOT_FAST
    word = load64(data, position + 1)
    number = _number_of(word)
    if number == _NO_NUMBER:
        return _NOT_FAST
    columns[TIMESTAMP * capacity + row] = add64(base_timestamp, (number >> 1) ^ -(number & 1))
    position += 1 + _number_size(word)
    word = load64(data, position)
    number = _number_of(word)
    if number & 1 == 1 or (number >> 1) > delta_max:
        return _NOT_FAST
    columns[OFFSET * capacity + row] = add64(base_offset, number >> 1)
    position += _number_size(word)
    position = _fast_field(data, position, columns, KEY_POSITION * capacity + row, KEY_SIZE * capacity + row)
    if end - position < _WORD_SIZE:
        return _NOT_FAST
    position = _fast_field(data, position, columns, VALUE_POSITION * capacity + row, VALUE_SIZE * capacity + row)
    if position + 1 != after or data[position] != 0:
        return _NOT_FAST
    columns[HEADERS_POSITION * capacity + row] = after
    return after


@device
def _decode_body(
    data: Any, start: int, end: int, source: int, state: Any, columns: Any, capacity: int, row: int
) -> int:
    """Decode a record's fields from `start`, not past `end`; returns the position after it, or minus the status."""
    delta, position = read_varlong(data, start + 1, end)  # after the attributes
    if position < 0:
        return _broken(source, position, 0, state)
    timestamp = state[MAX_TIMESTAMP] if state[LOG_APPEND_TIME] == 1 else add64(state[BASE_TIMESTAMP], delta)
    columns[TIMESTAMP * capacity + row] = timestamp
    delta, position = read_varint(data, position, end)
    if position < 0:
        return _broken(source, position, 0, state)
    columns[OFFSET * capacity + row] = add64(state[BASE_OFFSET], delta)
    base_sequence = state[BASE_SEQUENCE]
    columns[SEQUENCE * capacity + row] = increment_sequence(base_sequence, delta) if base_sequence >= 0 else -1
    size, position = read_field(data, position, end)
    if position < 0:
        return _broken(source, position, size, state)
    columns[KEY_SIZE * capacity + row] = max(size, -1)
    columns[KEY_POSITION * capacity + row] = position - max(size, 0)
    size, position = read_field(data, position, end)
    if position < 0:
        return _broken(source, position, size, state)
    columns[VALUE_SIZE * capacity + row] = max(size, -1)
    columns[VALUE_POSITION * capacity + row] = position - max(size, 0)
    count, position = read_varint(data, position, end)
    if position < 0:
        return _broken(source, position, 0, state)
    columns[HEADER_COUNT * capacity + row] = count
    columns[HEADERS_POSITION * capacity + row] = position
    return position if count == 0 else _skip_headers(data, position, end, source, count, state)


@device
def _skip_headers(data: Any, position: int, end: int, source: int, count: int, state: Any) -> int:
    """Return the position after `count` headers, or minus the status."""
    state[DETAIL] = count
    if count < 0:
        return -BAD_HEADER_COUNT
    if count > end - position and source != SKIPPED_STREAM:
        return -HEADER_COUNT_BEYOND_RECORD
    for _ in range(count):
        key_size, _key_end, value_size, position = read_header(data, position, end)
        if position == NEGATIVE_KEY_SIZE:
            state[DETAIL] = key_size
            return -BAD_HEADER_KEY_SIZE
        if position < 0:
            return _broken(source, position, value_size, state)
    return position


@device
def _broken(source: int, failure: int, missing_size: int, state: Any) -> int:
    """Return minus the status for a failure of `kernels.varint` inside a record."""
    if source != SKIPPED_STREAM:
        return -BAD_STRUCTURE
    if failure == BYTES_PAST_END:
        state[DETAIL] = missing_size
        return -ENDED_IN_FIELD
    return -ENDED_IN_STRUCTURE if failure == PAST_END else -STRUCTURE_TOO_LONG


@device
def _bad_length(source: int, failure: int, bits: int, state: Any) -> int:
    """Return minus the status for a length that cannot be read."""
    if source == SKIPPED_STREAM:
        return -ENDED_IN_LENGTH if failure == PAST_END else -LENGTH_TOO_LONG
    # Kafka reads 0xff behind the end of a stream, so that a varint there becomes too long
    if failure == TOO_LONG and source == PLAIN:
        state[DETAIL] = bits
        return -VARINT_TOO_LONG
    return -PREMATURE_END


@device
def _decode_record(
    data: Any, position: int, end: int, source: int, state: Any, columns: Any, capacity: int, row: int
) -> int:
    """Decode any record, its length first; returns the position after it, or minus the status."""
    length, start = read_varint(data, position, end)
    if start < 0:
        return _bad_length(source, start, length, state)
    limit = end
    if state[SIZE_MAX] > 0 and source != PLAIN:
        state[DETAIL] = length
        state[SECOND_DETAIL] = state[SIZE_MAX]
        if length < 0:
            return -NEGATIVE_SIZE
        if length > state[SIZE_MAX]:
            return -SIZE_ABOVE_MAX
    if source != SKIPPED_STREAM:
        if source == STREAM and length < 0:
            state[DETAIL] = length
            return -NEGATIVE_SIZE
        if length > end - start:
            state[DETAIL] = length
            state[SECOND_DETAIL] = end - start
            return -SIZE_BEYOND_STREAM if source == STREAM else -SIZE_BEYOND_BATCH
        limit = start + length if source == STREAM else end
    position = _decode_body(data, start, limit, source, state, columns, capacity, row)  # its only call: LLVM inlines it
    if position >= 0 and position - start != length and source != SKIPPED_STREAM:
        state[DETAIL] = length
        state[SECOND_DETAIL] = position - start
        return -SIZE_MISMATCH
    return position


@device
def _fast_records(data: Any, end: int, state: Any, columns: Any, capacity: int, row: int, row_end: int) -> int:
    """Decode records up to `row_end`, or one that is not for the fast path; returns the row where it stopped.

    A separate loop, as the variables of the full decoder would push its own out of registers. It is called at two
    places, so that LLVM does not inline it.
    """
    first_row = row
    position = state[NEXT_POSITION]
    base_offset = state[BASE_OFFSET]
    base_timestamp = state[BASE_TIMESTAMP]
    base_sequence = state[BASE_SEQUENCE]
    delta_max = SEQUENCE_MAX - max(base_sequence, 0)
    while row < row_end:
        after = _fast_record(data, position, end, base_offset, base_timestamp, delta_max, columns, capacity, row)
        if after == _NOT_FAST:
            break
        prefetch(data, position + AHEAD_SIZE)
        prefetch(data, position + AHEAD_SIZE + 64)
        position = after
        row += 1
    state[NEXT_POSITION] = position
    _fill_sequences(columns, capacity, first_row, row, base_offset, base_sequence)
    return row


@device
def _fill_sequences(columns: Any, capacity: int, row: int, row_end: int, base_offset: int, base_sequence: int) -> int:
    """Fill the sequences and header counts of fast records, with loops that LLVM vectorizes."""
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
    """Decode any records up to `row_end`, or a bad one; returns the status, and the row in state[ROW_COUNT]."""
    end = state[END_POSITION]
    source = state[SOURCE]
    position = state[NEXT_POSITION]
    status = OK
    while row < row_end:
        after = _decode_record(data, position, end, source, state, columns, capacity, row)
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
    """Decode records of one batch from state[NEXT_POSITION] into rows `row` … `row_end` - 1, or to the batch's count.

    Returns the status; state[ROW_COUNT] is the row behind the last good one.
    """
    end = state[END_POSITION]
    # the fast path computes timestamps from deltas only, and looks at no bound
    is_bounded = 0 < state[SIZE_MAX] < _FAST_LENGTH_END and state[SOURCE] != PLAIN
    fast_end = 0 if state[LOG_APPEND_TIME] == 1 or is_bounded else end
    missing_count = state[RECORD_COUNT] - state[RECORD_INDEX]
    first_row = row
    row_end = min(row_end, row + missing_count)
    status = OK
    row = _fast_records(data, fast_end, state, columns, capacity, row, row_end)
    while row < row_end and status == OK:
        status = _any_records(data, state, columns, capacity, row, min(row + TOGETHER, row_end))
        row = state[ROW_COUNT]
        if status == OK:
            row = _fast_records(data, fast_end, state, columns, capacity, row, row_end)
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
