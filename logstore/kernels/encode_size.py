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
# and what stopped a call.
DETAIL = 15
STATE_COUNT = 16

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
NULL = -1  # in place of a size
OUTSIDE = -2
NOT_KNOWN = -2  # bytes of a row before the first one was looked at


@device
def varint_size(value: int) -> int:
    """Bytes of a signed number as a varint or varlong."""
    magnitude = value ^ (value >> 63)
    if magnitude < 1 << 20:
        return 1 + (magnitude >= 64) + (magnitude >= 8192)  # sums: sizes of all kinds would be badly predicted
    return _long_varint_size(magnitude)


@device
def _long_varint_size(magnitude: int) -> int:
    size = 3
    rest = magnitude >> 20
    while rest > 0:
        size += 1
        rest = rest >> 7
    return size


@device
def field_of(starts: Any, ends: Any, row: int, data_size: int, width: int) -> tuple[int, int]:
    """Where the field of a row begins, and its size: NULL, or OUTSIDE if it is not within `data_size`.

    The ranges are read once: another thread may change them after they were checked. Fields of a width are inside.
    """
    if width >= 0:
        return row * width, width
    if data_size < 0:
        return 0, NULL
    start, end = starts[row], ends[row]
    if end < start:
        return 0, NULL
    if start < 0 or end > data_size:
        return 0, OUTSIDE
    return start, end - start


@device
def sized(size: int) -> int:
    """Bytes of a field with its size before it, given its size or NULL."""
    return 1 if size < 0 else varint_size(size) + size


@device
def _is_uniform(data_size: int, width: int) -> bool:
    return data_size < 0 or width >= 0


@device
def are_rows_uniform(state: Any) -> bool:
    """Whether key, value and headers of all rows take as many bytes."""
    return (
        _is_uniform(state[KEY_DATA_SIZE], state[KEY_WIDTH])
        and _is_uniform(state[VALUE_DATA_SIZE], state[VALUE_WIDTH])
        and _is_uniform(state[HEADERS_DATA_SIZE], state[HEADERS_WIDTH])
    )


@device
def body_size(timestamp_delta: int, offset_delta: int, content_size: int) -> int:
    """Bytes of a record after its length: attributes, deltas, key, value and headers."""
    return 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + content_size


@device
def content_size(key_size: int, value_size: int, headers_size: int) -> int:
    """Bytes of a record's key, value and headers with their sizes, given those; -1 if one is OUTSIDE."""
    if min(key_size, value_size, headers_size) == OUTSIDE:
        return -1
    return sized(key_size) + sized(value_size) + max(headers_size, 1)
