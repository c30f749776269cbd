"""What the kernels that build batches of columns are told, and how many bytes a record takes (`DefaultRecord`).

A field of a row is the range `starts[row]` to `ends[row]` of the bytes of its column; null where it ends before it
starts. The headers of a row are one such field, which holds their count and then the headers as a record has them.
Where all fields of a column are as long, its width says the same: arrays that are not read need not be made.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device

# Slots of the state. First what the columns are,
KEY_DATA_SIZE = 0  # bytes that the keys are ranges of; -1: all keys are null
VALUE_DATA_SIZE = 1
HEADERS_DATA_SIZE = 2  # -1: no row has headers
KEY_WIDTH = 3  # bytes of every key, which lie behind one another; -1: where they are is in `starts` and `ends`
VALUE_WIDTH = 4
HEADERS_WIDTH = 5
HAS_TIMESTAMPS = 6  # 0: TIMESTAMP is that of every row
TIMESTAMP = 7
HAS_OFFSET_DELTAS = 8  # 0: the rows of a batch have 0, 1, 2, …
ROW_COUNT = 9
# then what is asked for,
BATCH_SIZE_MAX = 10  # 0: the ends of the batches are given
OUT_CAPACITY = 11
# how far a call is,
ROW = 12  # the first one of the next batch
BATCH_COUNT = 13
OUT_SIZE = 14
# the batch that is being measured,
SIZE_LIMIT = 15
SIZE_SO_FAR = 16
LAST_OFFSET_DELTA_SO_FAR = 17
MAX_TIMESTAMP_SO_FAR = 18
# and what stopped a call.
DETAIL = 19
STATE_COUNT = 20

# Status; state[ROW] is the row that is wrong. The words are in `columns.record_building`.
OK = 0
BATCHES_FULL = 1  # no room for another batch: call again
OUT_OF_DATA = 2  # a range that is not within the bytes of its column
BAD_TIMESTAMP = 3  # DETAIL: below -1
BAD_OFFSET_DELTA = 4  # DETAIL: not above the one before, or not in 0 to 2147483647
RECORD_TOO_LARGE = 5  # DETAIL: bytes
BATCH_TOO_LARGE = 6  # DETAIL: bytes
COLUMNS_CHANGED = 7  # they are not what was measured

INT_MAX = 2147483647
NO_LIMIT = 1 << 62


@device
def varint_size(value: int) -> int:
    """Bytes of a signed number as a varint or varlong."""
    magnitude = value ^ (value >> 63)
    if magnitude < 64:
        return 1
    if magnitude < 8192:
        return 2
    return _long_varint_size(magnitude)


@device
def _long_varint_size(magnitude: int) -> int:
    size = 2
    rest = magnitude >> 13
    while rest > 0:
        size += 1
        rest = rest >> 7
    return size


@device
def field_size(starts: Any, ends: Any, row: int, data_size: int) -> int:
    """Bytes of a field; -1 null, -2 not within `data_size`. All are null when that is -1."""
    if data_size < 0:
        return -1
    start = starts[row]
    end = ends[row]
    if end < start:
        return -1
    if start < 0 or end > data_size:
        return -2
    return end - start


@device
def column_size(starts: Any, ends: Any, row: int, data_size: int, width: int) -> int:
    """As `field_size`, of a column whose fields may all have this width, which are within it."""
    return width if width >= 0 else field_size(starts, ends, row, data_size)


@device
def field_start(starts: Any, row: int, width: int) -> int:
    """Where the bytes of a field begin."""
    return row * width if width >= 0 else starts[row]


@device
def sized(size: int) -> int:
    """Bytes of a field with its size before it, given its size, -1 null."""
    return 1 if size < 0 else varint_size(size) + size


@device
def timestamp_of(timestamps: Any, has_timestamps: int, row: int, timestamp: int) -> int:
    """Milliseconds; `timestamp` is that of every row without."""
    return timestamps[row] if has_timestamps == 1 else timestamp


@device
def offset_delta_of(offset_deltas: Any, has_offset_deltas: int, row: int, first_row: int) -> int:
    """Offset delta of a row in a batch that begins with `first_row`."""
    return offset_deltas[row] if has_offset_deltas == 1 else row - first_row


@device
def body_size(timestamp_delta: int, offset_delta: int, content_size: int) -> int:
    """Bytes of a record after its length: attributes, deltas, key, value and headers."""
    return 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + content_size


@device
def content_size(key_size: int, value_size: int, headers_size: int) -> int:
    """Bytes of a record's key, value and headers with their sizes, given those; -1 when one is out of its data."""
    if min(key_size, value_size, headers_size) == -2:
        return -1
    return sized(key_size) + sized(value_size) + max(headers_size, 1)
