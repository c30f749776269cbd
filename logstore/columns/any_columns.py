"""Columns of records from a program's data: Python lists, numpy arrays, or anything that speaks Arrow."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from . import arrow_columns
from .batch_table import Int64Array
from .header_columns import HeaderColumns
from .record_columns import BytesColumn, RecordColumns

_ADVICE = "give bytes: a list, an array of dtype S, V or object, uint8[n, width], (uint8 data, offsets), or Arrow"


def record_columns(
    *, values: Any = None, keys: Any = None, timestamps: Any = None, headers: Any = None
) -> RecordColumns:
    """Make columns of records to be written; a column that is None is null in every record.

    Args:
        values, keys: Arrow's (see `arrow_columns.bytes_column`), a `BytesColumn`, or a kind of the table below.
        timestamps: milliseconds as integers, datetime64, or Arrow's; None for none yet, see `RecordColumns.stamped`.
        headers: a list of (key, value) for each record, Arrow's list of structs or map, or a `BytesColumn` of encoded
            headers.

    | what                           | how it is read                                                             |
    |--------------------------------|----------------------------------------------------------------------------|
    | list or tuple of bytes or None | copied into one buffer                                                     |
    | array of objects, 1-D          | the same                                                                   |
    | array of dtype S, 1-D          | in place; zero bytes at the end are padding, as everywhere in numpy        |
    | array of dtype V, 1-D          | in place, all of its bytes                                                 |
    | array of uint8, 2-D            | in place, a row each                                                       |
    | (uint8 data, offsets)          | in place: string i is data[offsets[i]:offsets[i + 1]]                      |

    An array that is not contiguous is copied. An empty value is not null; only None is.

    Raises:
        UsageError: columns of different lengths, of unsupported types, or none at all.
    """
    value_column, key_column = _bytes(values), _bytes(keys)
    times = None if timestamps is None else timestamps_ms(timestamps)
    header_column = None if headers is None else _headers(headers)
    columns = (value_column, key_column, times, header_column)
    count = next((len(column) for column in columns if column is not None), None)
    if count is None:
        raise UsageError("There are no columns", expected="values, keys, timestamps or headers")
    return RecordColumns(count, key_column, value_column, times, header_column)


def _bytes(values: Any) -> BytesColumn | None:
    if values is None or isinstance(values, BytesColumn):
        return values
    if arrow_columns.is_arrow(values):
        return arrow_columns.bytes_column(values)
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(part, np.ndarray) for part in values):
        return BytesColumn.of_offsets(*values)
    if isinstance(values, list | tuple):
        return _of_objects(values)
    if not isinstance(values, np.ndarray):
        raise _refused(type(values).__name__)
    if values.ndim == 1 and values.dtype.kind == "O":
        return _of_objects(values.tolist())
    if np.ma.is_masked(values):
        raise _refused("a masked array")
    if values.ndim == 1 and values.dtype.kind in "SV" and values.dtype.fields is None:
        sizes = np.strings.str_len(values) if values.dtype.kind == "S" else None
        return _of_rows(np.ascontiguousarray(values).view(np.uint8), values.size, values.itemsize, sizes)
    if values.ndim == 2 and values.dtype == np.uint8:
        count, width = values.shape
        return _of_rows(np.ascontiguousarray(values), count, width, None)
    raise _refused(f"{values.dtype}, {values.ndim}-D")


def _of_rows(data: npt.NDArray[np.uint8], count: int, width: int, sizes: npt.NDArray[Any] | None) -> BytesColumn:
    """Make a column of rows of `width` bytes; only the first `sizes` bytes of each count, None for all."""
    rows = BytesColumn.of_width(data.reshape(-1), count, width)
    return rows if sizes is None or (sizes == width).all() else BytesColumn(rows.data, rows.starts, rows.starts + sizes)


def _of_objects(values: list[Any] | tuple[Any, ...]) -> BytesColumn:
    try:
        return BytesColumn.of_values(values)
    except UsageError as error:
        raise _refused(error.found) from error


def _headers(values: Any) -> BytesColumn:
    if isinstance(values, BytesColumn):
        return values
    if arrow_columns.is_arrow(values):
        return arrow_columns.headers_columns(values).encoded()
    return HeaderColumns.of_lists(values).encoded()


def timestamps_ms(values: Any) -> Int64Array:
    """Return ints, datetime64 or Arrow's as milliseconds since 1970, truncated: int64[n]; -1 is no timestamp.

    Raises:
        UsageError: they are something else, such as floats, text or times of Python, whose zone nobody names.
    """
    if arrow_columns.is_arrow(values):
        values = arrow_columns.timestamps_array(values)
    array = values if isinstance(values, np.ndarray) else np.array(values)
    if isinstance(values, list | tuple) and not values:  # which numpy takes for floats
        array = array.astype(np.int64)
    if np.ma.is_masked(array):
        raise UsageError("A timestamp is masked", advice="give -1 for no timestamp")
    if array.ndim == 1 and array.dtype.kind == "M":
        with suppress(OverflowError):  # from numpy 2.5 on; older ones wrap around
            times = array.astype("datetime64[ms]")
            if (times.astype("datetime64[Y]") == array.astype("datetime64[Y]")).all():  # neither NaT, nor wrapped
                return times.astype(np.int64)
    elif array.ndim == 1 and array.dtype.kind in "iu" and not (array.dtype == np.uint64 and (array >> 63).any()):
        return np.ascontiguousarray(array, np.int64)
    raise UsageError(
        "Timestamps are not milliseconds since 1970",
        expected="integers, or datetime64 that are times within 64 bits, 1-D",
        found=f"{array.dtype}, {array.ndim}-D",
    )


def _refused(found: object) -> UsageError:
    return UsageError("Keys and values are bytes", found=found, advice=_ADVICE)
