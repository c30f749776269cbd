"""Writes columns of records as v2 batches (`DefaultRecord.writeTo`, `DefaultRecordBatch.writeHeader`)."""

from __future__ import annotations

from typing import Any

from ...layout import batch as layout
from ...layout.batch import HEADER_SIZE, LOG_OVERHEAD_SIZE
from ...native.device import device
from ...native.kernel import kernel
from ...native.structs import bytes_at, words_at
from ..primitives import add64
from ..scan import batches as scan
from ..scan.crc32c import crc32c_of
from .fields import put_be32, put_be64, put_field, put_headers, put_varint
from .sizes import NOT_KNOWN, are_rows_uniform, body_size, content_size, field_of
from .structs import COLUMNS_CHANGED, OK, Encoding


@device
def put_header(out: Any, start: int, end: int, columns: Any, capacity: int, batch: int) -> int:
    """Write the header of the batch at `start` to `end`; sets POSITION, SIZE, MAGIC, CRC and IS_VALID."""
    columns[scan.POSITION * capacity + batch] = start
    columns[scan.SIZE * capacity + batch] = end - start
    columns[scan.MAGIC * capacity + batch] = 2
    columns[scan.IS_VALID * capacity + batch] = 1
    put_be64(out, start + layout.BASE_OFFSET, columns[scan.BASE_OFFSET * capacity + batch])
    put_be32(out, start + layout.BATCH_LENGTH, end - start - LOG_OVERHEAD_SIZE)
    put_be32(out, start + layout.PARTITION_LEADER_EPOCH, columns[scan.PARTITION_LEADER_EPOCH * capacity + batch])
    out[start + layout.MAGIC] = 2
    # writes an int16 as the high half of an int32; the next field overwrites the low half
    put_be32(out, start + layout.ATTRIBUTES, columns[scan.ATTRIBUTES * capacity + batch] << 16)
    put_be32(out, start + layout.LAST_OFFSET_DELTA, columns[scan.LAST_OFFSET_DELTA * capacity + batch])
    put_be64(out, start + layout.BASE_TIMESTAMP, columns[scan.BASE_TIMESTAMP * capacity + batch])
    put_be64(out, start + layout.MAX_TIMESTAMP, columns[scan.MAX_TIMESTAMP * capacity + batch])
    put_be64(out, start + layout.PRODUCER_ID, columns[scan.PRODUCER_ID * capacity + batch])
    put_be32(out, start + layout.PRODUCER_EPOCH, columns[scan.PRODUCER_EPOCH * capacity + batch] << 16)
    put_be32(out, start + layout.BASE_SEQUENCE, columns[scan.BASE_SEQUENCE * capacity + batch])
    put_be32(out, start + layout.RECORD_COUNT, columns[scan.RECORD_COUNT * capacity + batch])
    crc = crc32c_of(out, start + layout.ATTRIBUTES, end)
    columns[scan.CRC * capacity + batch] = crc
    put_be32(out, start + layout.CRC, crc)
    return end


@kernel(Encoding)
def encode_batches(encoding: Any) -> int:
    """Write the batches that `measure_batches` measured, from `row` on, without gaps. Returns the status.

    Reads the header fields of `batches`, and writes POSITION, SIZE, MAGIC, CRC and IS_VALID.
    """
    # local variables: for all that the compiler knows, a write to `out` changes the struct
    key_starts, key_ends = words_at(encoding.keys_starts), words_at(encoding.keys_ends)
    value_starts, value_ends = words_at(encoding.values_starts), words_at(encoding.values_ends)
    header_starts, header_ends = words_at(encoding.headers_starts), words_at(encoding.headers_ends)
    keys, values, headers = bytes_at(encoding.keys), bytes_at(encoding.values), bytes_at(encoding.headers)
    keys_size, values_size, headers_size = encoding.keys_size, encoding.values_size, encoding.headers_size
    key_width, value_width, header_width = encoding.keys_width, encoding.values_width, encoding.headers_width
    has_timestamps, timestamp, timestamps = encoding.has_timestamps, encoding.timestamp, words_at(encoding.timestamps)
    has_offset_deltas, offset_deltas = encoding.has_offset_deltas, words_at(encoding.offset_deltas)
    columns, capacity, out, out_size_max = (
        words_at(encoding.batches),
        encoding.batch_capacity,
        bytes_at(encoding.out),
        encoding.out_size_max,
    )
    row, o, content, are_uniform = encoding.row, 0, NOT_KNOWN, are_rows_uniform(encoding)
    for batch in range(encoding.batch_count):
        start, first_row = o, row
        o += HEADER_SIZE
        base_timestamp = columns[scan.BASE_TIMESTAMP * capacity + batch]
        end_row = min(words_at(encoding.row_ends)[batch], encoding.row_count)
        while row < end_row:
            key_start, key_size = field_of(key_starts, key_ends, row, keys_size, key_width)
            value_start, value_size = field_of(value_starts, value_ends, row, values_size, value_width)
            head_start, head_size = field_of(header_starts, header_ends, row, headers_size, header_width)
            if content == NOT_KNOWN or not are_uniform:
                content = content_size(key_size, value_size, head_size)
            delta = offset_deltas[row] if has_offset_deltas == 1 else row - first_row
            timestamp = timestamps[row] if has_timestamps == 1 else timestamp
            time_delta = add64(timestamp, -base_timestamp)
            body = body_size(time_delta, delta, content)
            if content < 0 or o + body > out_size_max:  # another thread changed the columns after they were measured
                return COLUMNS_CHANGED
            o = put_varint(out, o, body)
            out[o] = 0
            o = put_varint(out, put_varint(out, o + 1, time_delta), delta)
            o = put_field(out, o, keys, key_start, key_size)
            o = put_field(out, o, values, value_start, value_size)
            o = put_headers(out, o, headers, head_start, head_size)
            row += 1
        if o > out_size_max:
            return COLUMNS_CHANGED
        put_header(out, start, o, columns, capacity, batch)
    encoding.out_size = o
    return OK


@kernel("u8*, i64, i64*, i64")
def write_headers(data: Any, data_size: int, columns: Any, batch_count: int) -> int:
    """Write the headers of batches whose records are in `data`; returns how many, up to one that is not within it.

    data: uint8[data_size], in and out; columns: int64[scan.COLUMN_COUNT, batch_count], in, except MAGIC, CRC and
    IS_VALID, which are out.
    """
    for batch in range(batch_count):
        start = columns[scan.POSITION * batch_count + batch]
        size = columns[scan.SIZE * batch_count + batch]
        if size < HEADER_SIZE or start < 0 or start > data_size - size:
            return batch
        put_header(data, start, start + size, columns, batch_count, batch)
    return batch_count
