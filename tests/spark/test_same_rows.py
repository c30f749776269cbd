"""Spark's tables have the rows, names and types of the library's public functions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType, TimestampType

import logstore
from logstore.rows.schema import Kind, fields_of
from tests.support.golden import Golden

if TYPE_CHECKING:
    from tests.spark.conftest import Load

NOW_MS = 1_795_246_963_000 + 3_600_000
TYPES = {
    Kind.STRING: StringType,
    Kind.BOOLEAN: BooleanType,
    Kind.INT32: IntegerType,
    Kind.INT64: LongType,
    Kind.TIME: TimestampType,
    Kind.LIST: ArrayType,
}
OF_ANOTHER_LOG = {"transactional_id", "path"}  # of producers: a task reads its own partition
ASKED: dict[str, Callable[[Path], logstore.Rows[Any]]] = {
    "findings": lambda path: logstore.audit(path, now_ms=NOW_MS),
    "producers": logstore.producers,
    "batches": logstore.dump,
}


def milliseconds(value: Any) -> Any:
    return round(value.replace(tzinfo=UTC).timestamp() * 1000) if isinstance(value, datetime) else value


@pytest.mark.parametrize("table", ASKED)
@pytest.mark.parametrize("name", ["demo", "groups"])
def test_a_table_has_the_rows_of_the_function(table: str, name: str, golden: Golden, load: Load) -> None:
    rows = ASKED[table](golden(name))
    options = {"now": str(NOW_MS)} if table == "findings" else {"subscribePattern": ".*"}
    frame = load(golden(name), table=table, **options)
    fields = [field for field in fields_of(rows.row_type) if table != "producers" or field.name not in OF_ANOTHER_LOG]
    assert {column.name: type(column.dataType) for column in frame.schema} == {
        field.name: TYPES[field.kind] for field in fields
    }
    found = [tuple(milliseconds(row[field.name]) for field in fields) for row in frame.collect()]
    asked = [row for row in rows if table == "findings" or not row.topic.startswith("__")]  # which no pattern matches
    expected = [tuple(getattr(row, field.name) for field in fields) for row in asked]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert found or (table, name) in (("findings", "demo"), ("producers", "groups"))
