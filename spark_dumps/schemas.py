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

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
PARTITIONS = ArrayType(StructType([StructField("topic", StringType()), StructField("partition", IntegerType())]))
TYPES: dict[str, tuple[DataType, pa.DataType]] = {  # Spark's and Arrow's; workers compare Arrow types exactly
    "binary": (BinaryType(), pa.binary()),
    "bool": (BooleanType(), pa.bool_()),
    "headers": (HEADERS, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    "int": (IntegerType(), pa.int32()),
    "long": (LongType(), pa.int64()),
    "partitions": (PARTITIONS, pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))),
    "short": (ShortType(), pa.int16()),
    "string": (StringType(), pa.string()),
    "timestamp": (TimestampType(), pa.timestamp("us", "UTC")),
}
_ARROW_TYPES = dict(TYPES.values())


def columns_of(text: str) -> dict[str, DataType]:
    """Parse `name type, name type`; return types by name."""
    return {name: TYPES[kind][0] for name, kind in (column.split() for column in text.split(","))}


def struct_of(columns: dict[str, DataType], names: Iterable[str] | None = None) -> StructType:
    """Return the schema of the columns, or of those in `names`."""
    chosen = columns if names is None else names
    return StructType([StructField(name, columns[name]) for name in chosen])


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that a worker expects of batches with these columns."""
    return pa.schema([pa.field(field.name, _ARROW_TYPES[field.dataType], field.nullable) for field in schema])


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
