"""Columns of records from Arrow: bytes are read in place; offsets of 32 bits are widened."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from .batch_table import ByteArray
from .header_columns import HeaderColumns
from .record_columns import BytesColumn

Array = Any  # of pyarrow, which whoever passes one has imported


def is_arrow(values: Any) -> bool:
    """Return whether a value speaks Arrow's protocol: pyarrow's arrays and tables, and those of other libraries."""
    return hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")


def bytes_column(values: Array) -> BytesColumn:
    """Return a column of binary, string, their large and view forms, fixed_size_binary, or a dictionary of them.

    One chunk, sliced or not, of binary, string, fixed_size_binary or a dictionary of them is not copied. Null stays
    null, empty stays empty.

    Raises:
        UsageError: another type.
    """
    import pyarrow as pa

    array = _one_chunk(values)
    if pa.types.is_dictionary(array.type):
        words, rows = bytes_column(array.dictionary), array.indices.cast(pa.int64()).fill_null(-1).to_numpy()
        # row -1 is the null behind all words
        return BytesColumn(words.data, np.append(words.starts, 0)[rows], np.append(words.ends, -1)[rows])
    if pa.types.is_null(array.type) or pa.types.is_binary_view(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        if not array.null_count and array.buffers()[-1] is not None:
            return BytesColumn.of_width(_bytes(array.buffers()[-1])[array.offset * width :], len(array), width)
        offsets = np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64) * width
    elif pa.types.is_binary(array.type) or pa.types.is_string(array.type):
        offsets = _offsets(array, np.int32)
    elif pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type):
        offsets = _offsets(array, np.int64)
    else:
        raise UsageError(
            "Keys and values are bytes", expected="binary, string or fixed_size_binary", found=str(array.type)
        )
    return BytesColumn.of_offsets(_bytes(array.buffers()[-1]), offsets, _is_null(array))


def timestamps_array(values: Array) -> npt.NDArray[Any]:
    """Return integers or timestamps (with a zone: UTC) as numpy has them; UsageError for another type, or a null."""
    import pyarrow as pa

    array = _one_chunk(values)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    elif pa.types.is_null(array.type):  # as an empty list has
        array = array.cast(pa.int64())
    if array.null_count:
        raise UsageError("A timestamp is null", found=f"{array.null_count} nulls", advice="give -1 for no timestamp")
    if not (pa.types.is_integer(array.type) or pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        raise UsageError(
            "Timestamps are not milliseconds since 1970", expected="integers or timestamps", found=str(array.type)
        )
    return array.to_numpy(zero_copy_only=False)


def headers_columns(values: Array) -> HeaderColumns:
    """Return headers from a list of structs (key, value) for each record, or from a map; a null list has no headers.

    Fields named key and value may stand in either order.

    Raises:
        UsageError: another type.
    """
    import pyarrow as pa

    array = _one_chunk(values)
    if array.type in (pa.null(), pa.list_(pa.null())):  # the type of rows without any
        array = array.cast(pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})))
    is_list = pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_map(array.type)
    if not is_list or not pa.types.is_struct(array.values.type) or array.values.type.num_fields != 2:
        raise UsageError(
            "Headers are lists of keys and values", expected="list<struct<key, value>> or map", found=str(array.type)
        )
    keys, items = array.values.flatten()
    if [field.name for field in array.values.type] == ["value", "key"]:
        keys, items = items, keys
    offsets = np.ascontiguousarray(array.offsets.to_numpy(), np.int64)
    is_null = _is_null(array)
    ends = offsets[1:] if is_null is None else np.where(is_null, offsets[:-1], offsets[1:])
    return HeaderColumns(offsets[:-1], ends, bytes_column(keys), bytes_column(items))


def _one_chunk(values: Array) -> Array:
    import pyarrow as pa

    if not isinstance(values, pa.Array | pa.ChunkedArray):
        values = pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
    if isinstance(values, pa.Array):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        values = values.cast(pa.large_binary())  # chunks together may exceed offsets of 32 bits
    elif pa.types.is_dictionary(values.type):
        values = values.cast(pa.dictionary(pa.int64(), values.type.value_type))  # … or have more words than indices
    return values.combine_chunks()


def _offsets(array: Array, dtype: type[np.int32] | type[np.int64]) -> npt.NDArray[Any]:
    buffer = array.buffers()[1]
    if buffer is None or not buffer.size:  # an empty array may come without offsets
        return np.zeros(1, dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array) + 1]


def _bytes(buffer: Any) -> ByteArray:
    return np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)


def _is_null(array: Array) -> npt.NDArray[np.bool_] | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
