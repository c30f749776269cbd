"""Records of one append, from joined keys and values and their sizes to a batch."""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.structs import bytes_at, words_at
from ..layout.batch import HEADER_SIZE, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP
from . import scan
from .encode import put_header
from .encode_fields import put_bytes, put_varint
from .encode_size import body_size, sized, varint_size
from .primitives import add64
from .rules import is_timestamp_in_range

KEY_SIZE, VALUE_SIZE, TIMESTAMP = 0, 1, 2  # columns of a row; a size of -1 is that of null
ROW_WIDTH = 3


@device
def put_batch_header(log: Any, fast: Any, request: Any, size: int) -> int:
    """Write the header of a batch whose records are there, and fill the fields of its row that they do not say."""
    row = words_at(fast.row)
    row[scan.BASE_OFFSET] = log.log_end_offset
    row[scan.PARTITION_LEADER_EPOCH] = request.leader_epoch
    row[scan.ATTRIBUTES] = request.attributes
    if fast.is_log_append_time != 0:
        row[scan.ATTRIBUTES] |= LOG_APPEND_TIME_FLAG
        row[scan.MAX_TIMESTAMP] = request.now_ms
    row[scan.LAST_OFFSET_DELTA] = request.record_count - 1
    row[scan.PRODUCER_ID] = request.producer_id
    row[scan.PRODUCER_EPOCH] = request.producer_epoch
    row[scan.BASE_SEQUENCE] = request.base_sequence
    row[scan.RECORD_COUNT] = request.record_count
    put_header(bytes_at(fast.out), 0, size, row, 1, 0)
    return size


@device
def _is_in_range(fast: Any, request: Any, timestamp: int) -> bool:
    """Whether a record may have this timestamp (`LogValidator.validateTimestamp`)."""
    return timestamp >= NO_TIMESTAMP and (
        fast.is_log_append_time != 0
        or is_timestamp_in_range(timestamp, request.now_ms, fast.timestamp_before_max_ms, fast.timestamp_after_max_ms)
    )


@device
def _put_field(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Write bytes with their size before them."""
    o = put_varint(out, o, size)
    return o if size < 1 else put_bytes(out, o, data, start, size)


@device
def put_records(fast: Any, request: Any, data: Any) -> int:
    """Write the records behind the header; returns the position after them, 0 if that is not for the fast path.

    data: the key and the value of each record, one behind the other.
    """
    rows, out, row = words_at(request.rows), bytes_at(fast.out), words_at(fast.row)
    limit = min(fast.out_size, fast.batch_size_max)
    needs_keys = fast.needs_keys != 0
    base_timestamp = max_timestamp = rows[TIMESTAMP]
    start = 0
    o = HEADER_SIZE
    for number in range(request.record_count):
        at = number * ROW_WIDTH
        key_size, value_size, timestamp = rows[at + KEY_SIZE], rows[at + VALUE_SIZE], rows[at + TIMESTAMP]
        if not _is_in_range(fast, request, timestamp) or (needs_keys and key_size < 0):
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
    row[scan.BASE_TIMESTAMP] = base_timestamp
    row[scan.MAX_TIMESTAMP] = max_timestamp
    return o
