"""Divides columns of records into batches and measures them (`DefaultRecord`, `RecordAccumulator`)."""

from __future__ import annotations

from typing import Any

from ...layout.batch import DELETE_HORIZON_FLAG, HEADER_SIZE, NO_TIMESTAMP
from ...layout.record import RECORD_OVERHEAD_SIZE
from ...native.device import device
from ...native.kernel import kernel
from ...native.structs import words_at
from ..primitives import add64
from ..scan import batches as scan
from . import structs as status
from .sizes import INT_MAX, NOT_KNOWN, are_rows_uniform, body_size, content_size, field_of, varint_size
from .structs import OK, Encoding

_NO_LIMIT = 1 << 62


@device
def _wrong_row(encoding: Any, row: int, content: int, timestamp: int, offset_delta: int) -> int:
    """Return the status for a wrong `row`."""
    encoding.row = row
    if content < 0:
        return status.OUT_OF_DATA
    if timestamp < NO_TIMESTAMP:
        encoding.detail = timestamp
        return status.BAD_TIMESTAMP
    encoding.detail = offset_delta
    return status.BAD_OFFSET_DELTA


@device
def _too_large(encoding: Any, row: int, record_size: int, batch_size: int) -> int:
    """Return the status for a `row` that makes its record or batch too large."""
    encoding.row = row
    encoding.detail = record_size if record_size > INT_MAX else batch_size
    return status.RECORD_TOO_LARGE if record_size > INT_MAX else status.BATCH_TOO_LARGE


@device
def _size_limit(batch_size_max: int, content: int) -> int:
    """Return the size limit of a batch; `RecordAccumulator` estimates its first record with the largest overhead."""
    if batch_size_max == 0:
        return _NO_LIMIT
    return min(max(batch_size_max, HEADER_SIZE + RECORD_OVERHEAD_SIZE + content), INT_MAX)


@device
def _end_row(encoding: Any) -> int:
    """Return the row behind the next batch if that is given, else behind all rows."""
    if encoding.batch_size_max == 0:
        end_row = words_at(encoding.row_ends)[encoding.batch_count]
        if encoding.row < end_row < encoding.row_count:
            return end_row
    return encoding.row_count


@device
def _base_timestamp(encoding: Any, first_timestamp: int) -> int:
    """Return the next batch's base timestamp: its first record's, or the given delete horizon."""
    columns, capacity, batch = words_at(encoding.batches), encoding.batch_capacity, encoding.batch_count
    if columns[scan.ATTRIBUTES * capacity + batch] & DELETE_HORIZON_FLAG == 0:
        return first_timestamp
    return columns[scan.BASE_TIMESTAMP * capacity + batch]


@device
def _end_batch(encoding: Any, row: int, size: int, base_timestamp: int, last_delta: int, max_timestamp: int) -> int:
    """Note the batch that ends before `row`."""
    columns, capacity, batch = words_at(encoding.batches), encoding.batch_capacity, encoding.batch_count
    columns[scan.SIZE * capacity + batch] = size
    columns[scan.BASE_TIMESTAMP * capacity + batch] = base_timestamp
    columns[scan.LAST_OFFSET_DELTA * capacity + batch] = last_delta
    columns[scan.MAX_TIMESTAMP * capacity + batch] = max_timestamp
    columns[scan.RECORD_COUNT * capacity + batch] = row - encoding.row
    words_at(encoding.row_ends)[batch] = row
    encoding.row = row
    encoding.batch_count = batch + 1
    return row


@kernel(Encoding)
def measure_batches(encoding: Any) -> int:
    """Compute sizes, deltas, timestamps and counts of the batches of the rows from `row` on. Returns the status.

    Reads ATTRIBUTES of the batches from `batch_count` on, and with the delete horizon bit BASE_TIMESTAMP.
    """
    # local variables: for all that the compiler knows, each write changes the struct
    key_starts, key_ends = words_at(encoding.keys_starts), words_at(encoding.keys_ends)
    value_starts, value_ends = words_at(encoding.values_starts), words_at(encoding.values_ends)
    header_starts, header_ends = words_at(encoding.headers_starts), words_at(encoding.headers_ends)
    keys_size, values_size, headers_size = encoding.keys_size, encoding.values_size, encoding.headers_size
    key_width, value_width, header_width = encoding.keys_width, encoding.values_width, encoding.headers_width
    has_timestamps, timestamp, timestamps = encoding.has_timestamps, encoding.timestamp, words_at(encoding.timestamps)
    has_offset_deltas, offset_deltas = encoding.has_offset_deltas, words_at(encoding.offset_deltas)
    row, content, are_uniform = encoding.row, NOT_KNOWN, are_rows_uniform(encoding)
    while row < encoding.row_count:
        if encoding.batch_count == encoding.batch_capacity:
            return status.BATCHES_FULL
        first_row, end_row = row, _end_row(encoding)
        timestamp = timestamps[row] if has_timestamps == 1 else timestamp
        base_timestamp = _base_timestamp(encoding, timestamp)
        size, size_limit, last_delta, max_timestamp = HEADER_SIZE, _NO_LIMIT, -1, NO_TIMESTAMP
        while row < end_row:
            if content == NOT_KNOWN or not are_uniform:
                content = content_size(
                    field_of(key_starts, key_ends, row, keys_size, key_width)[1],
                    field_of(value_starts, value_ends, row, values_size, value_width)[1],
                    field_of(header_starts, header_ends, row, headers_size, header_width)[1],
                )
            timestamp = timestamps[row] if has_timestamps == 1 else timestamp
            delta = offset_deltas[row] if has_offset_deltas == 1 else row - first_row
            if content < 0 or timestamp < NO_TIMESTAMP or delta <= last_delta or delta > INT_MAX:
                return _wrong_row(encoding, row, content, timestamp, delta)
            body = body_size(add64(timestamp, -base_timestamp), delta, content)
            size_with = size + varint_size(body) + body
            if row == first_row:
                size_limit = _size_limit(encoding.batch_size_max, content)
            elif size_with > size_limit:
                break
            if size_with > INT_MAX:
                return _too_large(encoding, row, body, size_with)
            size = size_with
            last_delta, max_timestamp = delta, max(max_timestamp, timestamp)
            row += 1
        _end_batch(encoding, row, size, base_timestamp, last_delta, max_timestamp)
    return OK
