"""Scans the bytes of a `.log` into the columns of a batch table, one row per batch (`FileLogInputStream`)."""

from __future__ import annotations

from typing import Any

from ...layout import batch as layout
from ...layout.batch import HEADER_SIZE, HEADER_UP_TO_MAGIC_SIZE, LENGTH_MIN, LOG_OVERHEAD_SIZE
from ...native.device import device
from ...native.kernel import kernel
from ..primitives import be16, be32, be32_unsigned, be64, prefetch
from .crc32c import crc32c_of

# Rows of the column matrix, one int64 per batch. v0/v1 entries have -1 in fields that they lack.
POSITION = 0  # byte position of the batch in the file
SIZE = 1  # bytes of the whole batch
BASE_OFFSET = 2  # v0/v1: the entry's offset, which its last message has
PARTITION_LEADER_EPOCH = 3
MAGIC = 4  # signed byte
CRC = 5  # stored checksum, unsigned
ATTRIBUTES = 6
LAST_OFFSET_DELTA = 7  # 0 for v0/v1
BASE_TIMESTAMP = 8
MAX_TIMESTAMP = 9  # v1: the entry's timestamp
PRODUCER_ID = 10
PRODUCER_EPOCH = 11
BASE_SEQUENCE = 12
RECORD_COUNT = 13
IS_VALID = 14  # 1: the checksum is right; 0: wrong; -1: not computed (v0/v1, or nobody asked for it)
COLUMN_COUNT = 15

# Status of a scan.
MORE = 0  # the table is full or the window ends: go on at the next position
END = 1  # 17 bytes or fewer are left, or the next batch reaches past the end
LENGTH_TOO_SMALL = 2  # a length field below 14
HEADER_BEYOND_FILE = 3  # the file ends in a v2 header

# Slots of the result buffer.
ROW_COUNT = 0
NEXT_POSITION = 1
BAD_LENGTH = 2
RESULT_COUNT = 3

# Headers are far apart, so that the processor does not prefetch them. The scan prefetches where a header is if the
# batches until then are all as large as this one, as full batches of a producer are.
AHEAD_COUNT = 8


@device
def read_header(data: Any, position: int, columns: Any, capacity: int, row: int) -> int:
    """Fill a row from the v2 header at `position`, except POSITION, SIZE and MAGIC."""
    columns[BASE_OFFSET * capacity + row] = be64(data, position + layout.BASE_OFFSET)
    columns[PARTITION_LEADER_EPOCH * capacity + row] = be32(data, position + layout.PARTITION_LEADER_EPOCH)
    columns[CRC * capacity + row] = be32_unsigned(data, position + layout.CRC)
    columns[ATTRIBUTES * capacity + row] = be16(data, position + layout.ATTRIBUTES)
    columns[LAST_OFFSET_DELTA * capacity + row] = be32(data, position + layout.LAST_OFFSET_DELTA)
    columns[BASE_TIMESTAMP * capacity + row] = be64(data, position + layout.BASE_TIMESTAMP)
    columns[MAX_TIMESTAMP * capacity + row] = be64(data, position + layout.MAX_TIMESTAMP)
    columns[PRODUCER_ID * capacity + row] = be64(data, position + layout.PRODUCER_ID)
    columns[PRODUCER_EPOCH * capacity + row] = be16(data, position + layout.PRODUCER_EPOCH)
    columns[BASE_SEQUENCE * capacity + row] = be32(data, position + layout.BASE_SEQUENCE)
    columns[RECORD_COUNT * capacity + row] = be32(data, position + layout.RECORD_COUNT)
    columns[IS_VALID * capacity + row] = -1
    return 0


@device
def check_row(data: Any, columns: Any, capacity: int, row: int) -> int:
    """Check the checksum of a v2 row; sets IS_VALID and returns it. A batch shorter than its header is not valid."""
    start = columns[POSITION * capacity + row]
    end = start + columns[SIZE * capacity + row]
    is_valid = 0
    if end - start >= HEADER_SIZE and crc32c_of(data, start + layout.ATTRIBUTES, end) == columns[CRC * capacity + row]:
        is_valid = 1
    columns[IS_VALID * capacity + row] = is_valid
    return is_valid


@device
def _fill_legacy(data: Any, position: int, magic: int, columns: Any, capacity: int, row: int) -> int:
    for column in range(PARTITION_LEADER_EPOCH, COLUMN_COUNT):
        columns[column * capacity + row] = -1
    columns[BASE_OFFSET * capacity + row] = be64(data, position + layout.BASE_OFFSET)
    columns[CRC * capacity + row] = be32_unsigned(data, position + 12)
    columns[ATTRIBUTES * capacity + row] = data[position + 17]
    columns[LAST_OFFSET_DELTA * capacity + row] = 0
    if magic == 1:
        columns[MAX_TIMESTAMP * capacity + row] = be64(data, position + 18)
    return 0


@kernel("u8*, i64, i64, i64, i64, i64*, i64, i64*")
def scan_batches(
    data: Any, file_size: int, position: int, window_end: int, end: int, columns: Any, capacity: int, result: Any
) -> int:
    """Scan batches from `position` until one starts at or behind `window_end`, or `end`, or `capacity` rows are filled.

    data: uint8[file_size]; columns: int64[COLUMN_COUNT, capacity], out; result: int64[RESULT_COUNT], out (rows filled,
    position after the last of them, the offending length). No batch reaches past `end` (≤ file_size). Returns the
    status.
    """
    row = 0
    status = MORE
    while row < capacity and position < window_end:
        if position >= end - HEADER_UP_TO_MAGIC_SIZE:
            status = END
            break
        length = be32(data, position + layout.BATCH_LENGTH)
        if length < LENGTH_MIN:
            result[BAD_LENGTH] = length
            status = LENGTH_TOO_SMALL
            break
        size = length + LOG_OVERHEAD_SIZE
        if size > end - position:
            status = END
            break
        magic = (data[position + layout.MAGIC] ^ 128) - 128  # the byte as a signed number
        if magic >= 2 and file_size - position < HEADER_SIZE:
            status = HEADER_BEYOND_FILE
            break
        columns[POSITION * capacity + row] = position
        columns[SIZE * capacity + row] = size
        if magic >= 2:
            read_header(data, position, columns, capacity, row)
        else:
            _fill_legacy(data, position, magic, columns, capacity, row)
        columns[MAGIC * capacity + row] = magic
        prefetch(data, position + AHEAD_COUNT * size)
        prefetch(data, position + AHEAD_COUNT * size + HEADER_SIZE - 1)
        position += size
        row += 1
    if status == MORE and position >= end:
        status = END
    result[ROW_COUNT] = row
    result[NEXT_POSITION] = position
    return status


@kernel("u8*, i64*, i64, i64, i64")
def check_batches(data: Any, columns: Any, capacity: int, row: int, row_end: int) -> int:
    """Set IS_VALID of v2 rows `row` … `row_end` - 1; returns the number of wrong checksums."""
    wrong_count = 0
    while row < row_end:
        if columns[MAGIC * capacity + row] >= 2:
            wrong_count += 1 - check_row(data, columns, capacity, row)
        row += 1
    return wrong_count
