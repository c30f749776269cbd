"""Records of one append, from joined keys and values and their sizes to the records of a batch."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..layout.batch import HEADER_SIZE, NO_TIMESTAMP
from . import append_slots as slot
from . import scan
from .encode_fields import put_bytes, put_varint
from .encode_size import body_size, sized, varint_size
from .primitives import add64

KEY_SIZE, VALUE_SIZE, TIMESTAMP = 0, 1, 2  # columns of a row; a size of -1 is that of null
ROW_WIDTH = 3


@device
def _is_in_range(slots: Any, timestamp: int) -> bool:
    """Whether a record may have this timestamp (`LogValidator.validateTimestamp`)."""
    if timestamp == NO_TIMESTAMP or slots[slot.IS_LOG_APPEND_TIME] != 0:
        return timestamp >= NO_TIMESTAMP
    ahead = add64(timestamp, -slots[slot.NOW_MS])
    return (
        timestamp >= 0 and -ahead <= slots[slot.TIMESTAMP_BEFORE_MAX_MS] and ahead <= slots[slot.TIMESTAMP_AFTER_MAX_MS]
    )


@device
def _put_field(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Write bytes with their size before them."""
    o = put_varint(out, o, size)
    return o if size < 1 else put_bytes(out, o, data, start, size)


@device
def put_records(slots: Any, data: Any, rows: Any, columns: Any, out: Any) -> int:
    """Write the records behind the header; returns the position after them, 0 if that is not for here.

    data: the key and the value of each record, one behind the other; rows: int64[record_count, ROW_WIDTH].
    """
    limit = min(slots[slot.OUT_CAPACITY], slots[slot.BATCH_SIZE_MAX])
    needs_keys = slots[slot.NEEDS_KEYS] != 0
    base_timestamp = max_timestamp = rows[TIMESTAMP]
    start = 0
    o = HEADER_SIZE
    for number in range(slots[slot.RECORD_COUNT]):
        row = number * ROW_WIDTH
        key_size, value_size, timestamp = rows[row + KEY_SIZE], rows[row + VALUE_SIZE], rows[row + TIMESTAMP]
        if not _is_in_range(slots, timestamp) or (needs_keys and key_size < 0):
            return 0
        max_timestamp = max(max_timestamp, timestamp)
        delta = add64(timestamp, -base_timestamp)
        body = body_size(delta, number, sized(key_size) + sized(value_size) + 1)
        if o + varint_size(body) + body > limit:
            return 0
        o = put_varint(out, o, body)
        out[o] = 0
        o = put_varint(out, put_varint(out, o + 1, delta), number)
        o = _put_field(out, o, data, start, key_size)
        start += max(key_size, 0)
        o = _put_field(out, o, data, start, value_size)
        start += max(value_size, 0)
        out[o] = 0
        o += 1
    columns[scan.BASE_TIMESTAMP] = base_timestamp
    columns[scan.MAX_TIMESTAMP] = max_timestamp
    return o
