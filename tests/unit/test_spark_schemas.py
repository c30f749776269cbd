"""The Arrow schema of each table is the one that PySpark's workers make of its columns."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.pandas.types import to_arrow_schema

from spark_dumps.schemas import arrow_schema, struct_of
from spark_dumps.tables import MODULES, find_table


@pytest.mark.parametrize("name", MODULES)
def test_the_schema_is_pysparks(name: str) -> None:
    schema = struct_of(find_table(name).columns)
    assert arrow_schema(schema).equals(to_arrow_schema(schema, timezone="UTC"))
