"""The columns of each table as Spark sees them, and what of them a read gives."""

from __future__ import annotations

from collections.abc import Iterable

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
TYPES: dict[str, DataType] = {
    "binary": BinaryType(),
    "bool": BooleanType(),
    "headers": HEADERS,
    "int": IntegerType(),
    "long": LongType(),
    "short": ShortType(),
    "string": StringType(),
    "timestamp": TimestampType(),
}


def columns_of(text: str) -> dict[str, DataType]:
    """Names and types of `name type, name type`."""
    return {name: TYPES[kind] for name, kind in (column.split() for column in text.split(","))}


def struct_of(columns: dict[str, DataType], names: Iterable[str] | None = None) -> StructType:
    """The schema of the columns, or of those named."""
    chosen = columns if names is None else names
    return StructType([StructField(name, columns[name]) for name in chosen])


def check_schema(given: StructType, known: dict[str, DataType], table: str) -> None:
    """Raise UsageError for a column that the table has not, or that is of another type there."""
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
