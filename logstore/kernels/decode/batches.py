"""Records of many v2 batches to one record table, in a call: of plain ones, or of the streams of compressed ones."""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ...jit.kernel import kernel
from ...layout.batch import LOG_APPEND_TIME_FLAG
from ..scan import batches as scan
from ..scan.batches import check_row
from . import records as decode
from .records import OK, PLAIN, decode_rows

# Beside the status of `kernels.decode.records`.
BAD_COUNT = 11  # a record count below 0
SHORT_BATCH = 12  # shorter than its header
RECORDS_FULL = 13  # no room for the records of the row
WRONG_CHECKSUM = 14

TO_CHECK = -2  # in IS_VALID: the checksum is to be computed before the records are decoded, while the bytes are at hand


@device
def begin_batch(columns: Any, capacity: int, row: int, position: int, end: int, source: int, state: Any) -> int:
    """Set the state of `records` to a row's batch with its records at `position` … `end` - 1; return their count."""
    is_log_append_time = columns[scan.ATTRIBUTES * capacity + row] & LOG_APPEND_TIME_FLAG != 0
    state[decode.BASE_OFFSET] = columns[scan.BASE_OFFSET * capacity + row]
    state[decode.BASE_TIMESTAMP] = columns[scan.BASE_TIMESTAMP * capacity + row]
    state[decode.LOG_APPEND_TIME] = 1 if is_log_append_time else 0
    state[decode.MAX_TIMESTAMP] = columns[scan.MAX_TIMESTAMP * capacity + row]
    state[decode.BASE_SEQUENCE] = columns[scan.BASE_SEQUENCE * capacity + row]
    state[decode.RECORD_COUNT] = columns[scan.RECORD_COUNT * capacity + row]
    state[decode.SOURCE] = source
    state[decode.END_POSITION] = end
    state[decode.RECORD_INDEX] = 0
    state[decode.NEXT_POSITION] = position
    state[decode.ROW_COUNT] = 0
    return state[decode.RECORD_COUNT]


@kernel("u8*, i64*, i64*, i64, i64*, i64, i64, i64, i64*, i64*, i64, i64*")
def decode_batches(
    data: Any,
    starts: Any,
    ends: Any,
    source: int,
    columns: Any,
    capacity: int,
    row: int,
    row_end: int,
    state: Any,
    records: Any,
    record_capacity: int,
    record_rows: Any,
) -> int:
    """Decode the records of rows `row` … `row_end` - 1 of a batch table of magic 2, one batch after the other.

    data: uint8, what the table was scanned from, or for a `source` of STREAM what its batches were decompressed to;
    starts, ends: int64[row_end - row], where in it their records are; columns: int64[scan.COLUMN_COUNT, capacity];
    state: int64[decode.STATE_COUNT], out; records: int64[decode.COLUMN_COUNT, record_capacity], out; record_rows:
    int64[capacity + 1], out: the first record of each row, and behind the last row decoded that of the next. The
    checksum of a plain row that says TO_CHECK is computed, into IS_VALID. Stops at a row with a wrong one, that does
    not parse or has no room; returns the status, and the row in state[ROW_COUNT].
    """
    first_row = row
    record_row = 0
    status = OK
    while row < row_end:
        record_rows[row] = record_row
        start, end = starts[row - first_row], ends[row - first_row]
        count = begin_batch(columns, capacity, row, start, end, source, state)
        is_to_check = source == PLAIN and columns[scan.IS_VALID * capacity + row] == TO_CHECK
        if end < start:
            status = SHORT_BATCH
        elif is_to_check and check_row(data, columns, capacity, row) == 0:
            status = WRONG_CHECKSUM
        elif count < 0:
            status = BAD_COUNT
            state[decode.DETAIL] = count
        elif min(count, end - start + 1) > record_capacity - record_row:
            # a record takes a byte at least, so that a count that lies is found out before there is no room
            status = RECORDS_FULL
        else:
            status = decode_rows(data, state, records, record_capacity, record_row, record_capacity)
        if status != OK:
            break
        record_row += count
        row += 1
    record_rows[row] = record_row
    state[decode.ROW_COUNT] = row
    return status
