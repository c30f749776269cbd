"""Decodes the records of many v2 batches, plain or decompressed, into one record table in one call."""

from __future__ import annotations

from typing import Any

from ...layout.batch import LOG_APPEND_TIME_FLAG
from ...native.device import device
from ...native.kernel import kernel
from ..scan import batches as scan
from ..scan.batches import check_row
from . import records as decode
from .records import OK, PLAIN, decode_rows

# Status, besides the ones in `kernels.decode.records`.
BAD_COUNT = 31  # a record count below 0
SHORT_BATCH = 32  # shorter than its header
RECORDS_FULL = 33  # the record table has no room for the row
WRONG_CHECKSUM = 34

TO_CHECK = -2  # in IS_VALID: compute the checksum right before the records are decoded, while the bytes are in cache


@device
def begin_batch(columns: Any, capacity: int, row: int, position: int, end: int, source: int, state: Any) -> int:
    """Set the state of `records` to a row's batch, whose records are at `position` … `end` - 1; return their count."""
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
    """Decode the records of rows `row` … `row_end` - 1, of magic 2, of a batch table.

    data: uint8, the bytes that were scanned, or for a `source` of STREAM the decompressed ones; starts, ends:
    int64[row_end - row], where the records of each row are in it; columns: int64[scan.COLUMN_COUNT, capacity]; state:
    int64[decode.STATE_COUNT], out except SIZE_MAX; records: int64[decode.COLUMN_COUNT, record_capacity], out;
    record_rows: int64[capacity + 1], out: the first record of each decoded row, and behind them the number of records.
    IS_VALID of a plain row with TO_CHECK is computed. Stops at a row with a wrong checksum, that does not parse or has
    no room; returns the status, and the row in state[ROW_COUNT].
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
            # a record has a byte at least, so that a wrong count cannot ask for more room than the bytes justify
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
