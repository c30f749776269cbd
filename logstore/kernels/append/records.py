"""Builds the batch of one append from joined values, keys and headers and their sizes, or of a marker."""

from __future__ import annotations

from typing import Any

from ...layout.batch import (
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from ...layout.record import PRODUCER_EPOCH_MAX, SEQUENCE_MAX
from ...native.device import device
from ...native.structs import bytes_at, words_at
from ..encode.batches import put_header
from ..encode.fields import put_bytes, put_field, put_headers, put_varint
from ..encode.sizes import NULL, body_size, content_size, varint_size
from ..primitives import add64
from ..rules import is_timestamp_in_range
from ..scan import batches as scan

COLUMN_COUNT_MAX = 4  # columns of a request, see `put_records`


@device
def _is_producer_plain(request: Any) -> bool:
    """Return whether the producer's fields fit a batch, or there is no producer; the slow path has the messages."""
    epoch, sequence = request.producer_epoch, request.base_sequence
    if request.producer_id < 0:
        is_none = request.producer_id == NO_PRODUCER_ID and epoch == -1 and sequence == NO_SEQUENCE
        return is_none and request.attributes & TRANSACTIONAL_FLAG == 0
    return 0 <= epoch <= PRODUCER_EPOCH_MAX and NO_SEQUENCE <= sequence <= SEQUENCE_MAX


@device
def put_batch_header(log: Any, fast: Any, request: Any, size: int) -> int:
    """Write the header of a batch whose records are written, and fill the rest of its row.

    Returns `size`, or 0 if the producer's fields are not for the fast path.
    """
    if not _is_producer_plain(request):
        return 0
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
    """Return whether a record may have this timestamp (`LogValidator.validateTimestamp`)."""
    return timestamp >= NO_TIMESTAMP and (
        fast.is_log_append_time != 0
        or is_timestamp_in_range(timestamp, request.now_ms, fast.timestamp_before_max_ms, fast.timestamp_after_max_ms)
    )


@device
def _bytes_of(sizes: Any, start: int, end: int, size_max: int) -> int:
    """Sum sizes; returns size_max + 1 if the sum is above `size_max`, so that it cannot overflow."""
    size = 0
    for at in range(start, end):
        size += max(sizes[at], 0)
        if size > size_max or sizes[at] > size_max:
            return size_max + 1
    return size


@device
def put_records(fast: Any, request: Any, data: Any) -> int:
    """Write the records behind the header; returns the position after them, 0 if they are not for the fast path.

    The request's columns are the sizes of values, keys and headers, and the timestamps, as far as it has them. A size
    of -1 is null; headers of 0 bytes are none.

    data: all values, then all keys, then the headers of all records.
    """
    columns, out, row = words_at(request.columns), bytes_at(fast.out), words_at(fast.row)
    count, size, now_ms = request.record_count, request.data_size, request.now_ms
    has_keys, has_headers, has_timestamps = request.has_keys != 0, request.has_headers != 0, request.has_timestamps != 0
    needs_keys = fast.needs_keys != 0
    keys_at = count
    headers_at = keys_at + (count if has_keys else 0)
    times_at = headers_at + (count if has_headers else 0)
    # the length that a program's object reports may not be that of its bytes: then the sum differs
    value_start, key_start = 0, _bytes_of(columns, 0, keys_at, size)
    headers_start = key_start + _bytes_of(columns, keys_at, headers_at, size)
    if headers_start + _bytes_of(columns, headers_at, times_at, size) != size:
        return 0
    limit = min(fast.out_size, fast.batch_size_max)
    base_timestamp = max_timestamp = columns[times_at] if has_timestamps else now_ms
    o = HEADER_SIZE
    for number in range(count):
        value_size = columns[number]
        key_size = columns[keys_at + number] if has_keys else NULL
        headers_size = columns[headers_at + number] if has_headers else 0
        timestamp = columns[times_at + number] if has_timestamps else now_ms
        if not _is_in_range(fast, request, timestamp) or (needs_keys and key_size < 0):
            return 0
        max_timestamp = max(max_timestamp, timestamp)
        delta = add64(timestamp, -base_timestamp)
        body = body_size(delta, number, content_size(key_size, value_size, headers_size))
        if o + varint_size(body) + body > limit:
            return 0
        o = put_varint(out, o, body)
        out[o] = 0
        o = put_varint(out, put_varint(out, o + 1, delta), number)
        o = put_field(out, o, data, key_start, key_size)
        o = put_field(out, o, data, value_start, value_size)
        o = put_headers(out, o, data, headers_start, headers_size)
        key_start += max(key_size, 0)
        value_start += max(value_size, 0)
        headers_start += headers_size
    row[scan.BASE_TIMESTAMP] = base_timestamp
    row[scan.MAX_TIMESTAMP] = max_timestamp
    return o


@device
def put_marker(fast: Any, request: Any, data: Any) -> int:
    """Copy the record of a marker; returns the position after it, 0 if there is no room."""
    out, row, end = bytes_at(fast.out), words_at(fast.row), HEADER_SIZE + request.data_size
    if end > min(fast.out_size, fast.batch_size_max) or request.now_ms < 0:
        return 0
    row[scan.BASE_TIMESTAMP] = request.now_ms
    row[scan.MAX_TIMESTAMP] = request.now_ms
    return put_bytes(out, HEADER_SIZE, data, 0, request.data_size)
