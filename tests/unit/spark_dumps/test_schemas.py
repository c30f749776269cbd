"""Columns of the tables: their Arrow schema is the one that PySpark's workers make of them, and each is filled."""

from __future__ import annotations

import pytest

from tests.support.golden import Golden

pytest.importorskip("pyspark")

from pyspark.sql.pandas.types import to_arrow_schema

from spark_dumps.schemas import arrow_schema, struct_of
from spark_dumps.source import KafkaSegments
from spark_dumps.tables import MODULES, find_table


@pytest.mark.parametrize("name", MODULES)
def test_the_schema_is_pysparks(name: str) -> None:
    schema = struct_of(find_table(name).columns)
    assert arrow_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"))


# A column that no attribute is called as stays null, and nobody is told.
@pytest.mark.parametrize(
    ("name", "directory", "null"),
    [
        ("producers", "transactions", set()),
        ("transactions", "transactions", set()),
        ("transaction_state", "transactions", set()),
        ("group_offsets", "groups", {"expire_timestamp"}),  # no record there has one
    ],
)
def test_every_column_has_values(name: str, directory: str, null: set[str], golden: Golden) -> None:
    source = KafkaSegments({"path": str(golden(directory)), "table": name})
    reader = source.reader(source.schema())
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert {column for column in rows[0] if all(row[column] is None for row in rows)} == null
