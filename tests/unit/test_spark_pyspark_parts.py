"""What PySpark does not promise has a stand-in."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pyspark")

from spark_dumps.pyspark_parts import arrow_schema
from spark_dumps.schemas import struct_of
from spark_dumps.tables import MODULES, find_table


@pytest.mark.parametrize("name", MODULES)
def test_the_schema_is_pysparks_without_its_function_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = struct_of(find_table(name).columns)
    expected = arrow_schema(schema)
    monkeypatch.setitem(sys.modules, "pyspark.sql.pandas.types", None)
    assert arrow_schema(schema).equals(expected)
