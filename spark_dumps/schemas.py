"""Types of columns, for Spark and for Arrow, and schemas of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from logstore.errors import UsageError
from logstore.rows.schema import Kind, RowField, fields_of, kind_of

MICROSECONDS_PER_MS = 1000  # Spark's times are in microseconds
HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
#: Spark's types by Arrow's; workers compare Arrow's exactly
_ARROW_TYPES: dict[DataType, pa.DataType] = {
    BinaryType(): pa.binary(),
    BooleanType(): pa.bool_(),
    IntegerType(): pa.int32(),
    LongType(): pa.int64(),
    ShortType(): pa.int16(),
    StringType(): pa.string(),
    TimestampType(): pa.timestamp("us", "UTC"),
}
_NAMED: dict[str, DataType] = {
    "binary": BinaryType(),
    "bool": BooleanType(),
    "headers": HEADERS,
    "int": IntegerType(),
    "long": LongType(),
    "short": ShortType(),
    "string": StringType(),
    "timestamp": TimestampType(),
}
_KINDS: dict[Kind, DataType] = {
    Kind.BINARY: BinaryType(),
    Kind.BOOLEAN: BooleanType(),
    Kind.INT32: IntegerType(),
    Kind.INT64: LongType(),
    Kind.STRING: StringType(),
    Kind.TIME: TimestampType(),
}


def columns_of(row_type: type) -> dict[str, DataType]:
    """Return the columns of a row of `logstore.rows`: types by name."""
    return {field.name: _type_of(field) for field in fields_of(row_type)}


def _type_of(field: RowField) -> DataType:
    if field.kind is not Kind.LIST:
        return _KINDS[field.kind]
    kind, item = kind_of(field.item)
    return ArrayType(struct_of(columns_of(item)) if kind is Kind.OBJECT else _KINDS[kind])


def parse_columns(text: str) -> dict[str, DataType]:
    """Parse `name type, name type`, for the columns of Spark's own Kafka source; return types by name."""
    return {name: _NAMED[kind] for name, kind in (column.split() for column in text.split(","))}


def struct_of(columns: dict[str, DataType], names: Iterable[str] | None = None) -> StructType:
    """Return the schema of the columns, or of those in `names`."""
    chosen = columns if names is None else names
    return StructType([StructField(name, columns[name]) for name in chosen])


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that a worker expects of batches with these columns."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType), field.nullable) for field in schema])


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type that a worker expects of a column."""
    if isinstance(kind, ArrayType):
        return pa.list_(arrow_type(kind.elementType))
    if isinstance(kind, StructType):
        return pa.struct([(field.name, arrow_type(field.dataType)) for field in kind])
    return _ARROW_TYPES[kind]


def check_schema(given: StructType, known: dict[str, DataType], table: str) -> None:
    """Raise UsageError for a column that the table does not have, or has with another type."""
    for field in given:
        if field.name not in known:
            raise UsageError(
                f"table {table} has no column {field.name!r}", expected="of " + ", ".join(known), found=field.name
            )
        if field.dataType != known[field.name]:
            raise UsageError(
                f"column {field.name!r} of table {table} has another type",
                expected=known[field.name].simpleString(),
                found=field.dataType.simpleString(),
            )
