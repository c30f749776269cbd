"""Columns of records out of whatever a program has its data in: Python lists, numpy, or anything that speaks Arrow."""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from . import arrow_columns, numpy_columns
from .batch_table import Int64Array
from .header_columns import HeaderColumns
from .record_columns import BytesColumn, RecordColumns


def record_columns(
    *, values: Any = None, keys: Any = None, timestamps: Any = None, headers: Any = None
) -> RecordColumns:
    """Records to be written, a column each; one that is None is null in every record.

    Args:
        values, keys: see `numpy_columns.bytes_column` and `arrow_columns.bytes_column`.
        timestamps: milliseconds as integers, datetime64, or Arrow's; None: none yet, see `RecordColumns.stamped`.
        headers: a list of (key, value) for each record, Arrow's list of structs or map, or a `BytesColumn` of them as
            they stand in records.

    Raises:
        UsageError: columns of different lengths, of other types, or none at all.
    """
    value_column, key_column = _bytes(values), _bytes(keys)
    times = None if timestamps is None else _timestamps(timestamps)
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
    return numpy_columns.bytes_column(values)


def _timestamps(values: Any) -> Int64Array:
    if arrow_columns.is_arrow(values):
        return arrow_columns.timestamps_column(values)
    return numpy_columns.timestamps_column(values)


def _headers(values: Any) -> BytesColumn:
    if isinstance(values, BytesColumn):
        return values
    if arrow_columns.is_arrow(values):
        return arrow_columns.headers_columns(values).encoded()
    return HeaderColumns.of_lists(values).encoded()
