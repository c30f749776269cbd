"""Records as Arrow: a record table as one record batch.

Offsets and timestamps are copied, as a table may be overwritten. Keys and values are copied once into `binary` columns.
As `binary_view`, only their first twelve bytes are copied, and the rest stays where the records lie: in the mapped
segment, which the columns keep mapped, or in a decompressed stream.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..kernels.table import gather
from ..layout.batch import NO_TIMESTAMP
from .batch_table import ByteArray, Int64Array
from .header_columns import HeaderColumns
from .record_table import RecordTable

RecordBatch = Any  # of pyarrow, which is imported on first use
Array = Any


def imported_pyarrow() -> Any:
    """Return the module pyarrow; raises UsageError if it is not installed."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise UsageError("Arrow needs pyarrow", advice="pip install 'logstore-kafka[arrow]'") from error
    return pa


@cache
def record_schema(*, is_view: bool = False) -> Any:
    """Return the schema of `record_batch`.

    | column    | type                                                                                              |
    |-----------|---------------------------------------------------------------------------------------------------|
    | offset    | int64                                                                                             |
    | timestamp | timestamp[ms, UTC]; null without a timestamp                                                      |
    | key       | binary, or binary_view                                                                            |
    | value     | binary, or binary_view                                                                            |
    | headers   | list<struct<key: string, value: binary>>; empty without headers; keys as Java decodes them        |
    """
    import pyarrow as pa

    kind = pa.binary_view() if is_view else pa.binary()
    header = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    return pa.schema(
        [
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("ms", "UTC")),
            pa.field("key", kind),
            pa.field("value", kind),
            pa.field("headers", pa.list_(pa.field("header", header, nullable=False)), nullable=False),
        ]
    )


def record_batch(records: RecordTable, *, is_view: bool = False) -> RecordBatch:
    """Return all records as a `pyarrow.RecordBatch` of `record_schema`.

    Args:
        is_view: do not copy keys and values. They are valid as long as the file is not cut.

    Raises:
        UsageError: a table that does not fit its data; more than 2 GiB of values in all, or for views of data; pyarrow
            is not installed.
    """
    pa = imported_pyarrow()
    if is_view:
        return _as_views(records)
    columns = [
        _int64s(records.offset, pa.int64(), None),
        _int64s(records.timestamp, pa.timestamp("ms", "UTC"), _bits(records.timestamp != NO_TIMESTAMP)),
        binary_array(records.data, records.key_position, records.key_size),
        binary_array(records.data, records.value_position, records.value_size),
        _headers(records),
    ]
    return pa.record_batch(columns, schema=record_schema())


def _as_views(records: RecordTable) -> RecordBatch:
    """Return all records with one kernel call; only columns that hold nulls are read again."""
    import pyarrow as pa

    count, matrix = len(records), np.ascontiguousarray(records.matrix)
    (offset_buffer, offsets), (timestamp_buffer, timestamps) = _empty(count, np.int64), _empty(count, np.int64)
    (key_buffer, keys), (value_buffer, values) = _empty(count * gather.VIEW_SIZE), _empty(count * gather.VIEW_SIZE)
    found = np.empty(gather.FOUND_COUNT, np.int64)
    data, capacity = records.data, matrix.shape[1]
    arguments = (data, data.size, matrix, capacity, count, offsets, timestamps, keys, values, found)
    if gather.write_record_views(*arguments) < count:
        raise _not_there()
    key_null_count, value_null_count, timestamp_null_count, with_headers_count = found.tolist()
    data_buffer = pa.py_buffer(data)

    def views(buffer: Any, sizes: Int64Array, null_count: int) -> Array:
        if null_count == count:
            return pa.nulls(count, pa.binary_view())
        validity = _bits(sizes >= 0) if null_count else None
        return pa.Array.from_buffers(pa.binary_view(), count, [validity, buffer, data_buffer], null_count)

    has_time = _bits(timestamps != NO_TIMESTAMP) if timestamp_null_count else None
    columns = [
        pa.Array.from_buffers(pa.int64(), count, [None, offset_buffer], 0),
        pa.Array.from_buffers(pa.timestamp("ms", "UTC"), count, [has_time, timestamp_buffer], timestamp_null_count),
        views(key_buffer, records.key_size, key_null_count),
        views(value_buffer, records.value_size, value_null_count),
        _headers(records) if with_headers_count else _no_headers(count),
    ]
    return pa.record_batch(columns, schema=record_schema(is_view=True))


def _empty(size: int, kind: type[Any] = np.uint8) -> tuple[Any, npt.NDArray[Any]]:
    """Allocate Arrow's memory, as a buffer and as an array of `size` items: unlike numpy's it is reused."""
    import pyarrow as pa

    buffer = pa.allocate_buffer(max(size, 1) * np.dtype(kind).itemsize)
    return buffer, np.frombuffer(buffer, kind)[:size]


def _bits(is_set: npt.NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return None if is_set.all() else pa.py_buffer(np.packbits(is_set, bitorder="little"))


def _int64s(values: Int64Array, kind: Any, validity: Any) -> Array:
    import pyarrow as pa

    buffer, copied = _empty(values.size, np.int64)
    copied[:] = values
    return pa.Array.from_buffers(kind, values.size, [validity, buffer])


def binary_array(data: ByteArray, positions: Int64Array, sizes: Int64Array) -> Array:
    """Copy fields into a `binary` array, size -1 as null; raise UsageError for one outside, or more than 2 GiB."""
    import pyarrow as pa

    positions, sizes = np.ascontiguousarray(positions), np.ascontiguousarray(sizes)
    is_valid = sizes >= 0
    if not is_valid.any():
        return pa.nulls(sizes.size, pa.binary())
    return pa.Array.from_buffers(pa.binary(), sizes.size, [_bits(is_valid), *_gathered(data, positions, sizes)])


def _gathered(data: ByteArray, positions: Int64Array, sizes: Int64Array) -> tuple[Any, Any]:
    """Return two Arrow buffers: offsets, int32[n + 1], and content with slack behind it."""
    total = int(np.maximum(sizes, 0).sum())
    if not 0 <= total <= np.iinfo(np.int32).max:
        raise UsageError("Too many bytes for one Arrow column", expected="at most 2 GiB", found=total)
    content_buffer, content = _empty(total + gather.SLACK_SIZE)
    _, ends = _empty(sizes.size, np.int64)
    if gather.gather_fields(data, data.size, positions, sizes, sizes.size, content, total, ends) < sizes.size:
        raise _not_there()
    offsets_buffer, offsets = _empty(sizes.size + 1, np.int32)
    offsets[0] = 0
    offsets[1:] = ends
    return offsets_buffer, content_buffer


def _headers(records: RecordTable) -> Array:
    if not records.header_count.any():
        return _no_headers(len(records))
    return headers_array(records, slice(None), record_schema().field("headers").type)


def headers_array(records: RecordTable, rows: Int64Array | slice, kind: Any, is_null: Any = None) -> Array:
    """Return headers of some records as an array of `kind`, a list of structs of `string` keys and `binary` values."""
    import pyarrow as pa

    headers = HeaderColumns.of_records(records, rows)
    key_buffers = _gathered(headers.keys.data, headers.keys.starts, headers.keys.sizes)
    keys = pa.Array.from_buffers(pa.string(), len(headers.keys), [None, *key_buffers])
    values = binary_array(headers.values.data, headers.values.starts, headers.values.sizes)
    structs = pa.StructArray.from_arrays([keys, values], fields=list(kind.value_type))
    bounds = np.concatenate([headers.starts[:1], headers.ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), structs, type=kind, mask=is_null)


@lru_cache(maxsize=8)  # most batches have as many rows as fit a window, so few sizes occur
def _no_headers(count: int) -> Array:
    import pyarrow as pa

    kind = record_schema().field("headers").type
    offsets_buffer, offsets = _empty(count + 1, np.int32)
    offsets[:] = 0
    return pa.Array.from_buffers(kind, count, [None, offsets_buffer], 0, children=[pa.array([], kind.value_type)])


def _not_there() -> UsageError:
    return UsageError("A record table does not fit its data")
