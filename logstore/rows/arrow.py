"""Arrow's types of rows, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from .schema import Kind, RowField, fields_of, kind_of

ROWS_A_BATCH = 4096
TIME = pa.timestamp("ms", "UTC")
_TYPES = {
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.TIME: TIME,
    Kind.MAP: pa.map_(pa.string(), pa.string()),
}


def schema_of(row_type: type) -> pa.Schema:
    """Return the Arrow schema of a row; a field that is never null says so."""
    return pa.schema([pa.field(field.name, _type_of(field), field.is_nullable) for field in fields_of(row_type)])


def _type_of(field: RowField) -> pa.DataType:
    if field.kind is Kind.LIST:
        kind, item = kind_of(field.item)
        return pa.list_(_struct(item) if kind is Kind.OBJECT else _TYPES[kind])
    return _struct(field.item) if field.kind is Kind.OBJECT else _TYPES[field.kind]


def _struct(row_type: type) -> pa.DataType:
    return pa.struct(list(schema_of(row_type)))


def table_of(row_type: type, rows: Iterable[Any]) -> pa.Table:
    """Return rows as a table with `schema_of` their type."""
    schema, taken, batches = schema_of(row_type), iter(rows), []
    while part := list(islice(taken, ROWS_A_BATCH)):
        columns = [pa.array([_value(getattr(row, field.name)) for row in part], field.type) for field in schema]
        batches.append(pa.record_batch(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _value(value: Any) -> Any:
    """Return what pyarrow makes an array of."""
    if hasattr(value, "_asdict"):
        return {name: _value(member) for name, member in value._asdict().items()}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return list(value.items()) if isinstance(value, Mapping) else value
