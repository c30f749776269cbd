"""Why `kafka_segments` takes no filters from Spark: it would answer one query with the filters of another.

The day this fails, Spark has learned to keep the filters of two queries on one DataFrame apart, and filters can be
pushed down (see docs/decisions/spark.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition, LessThan

from spark_dumps.tables import TableReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

COUNT = 100
SETTING = "spark.sql.python.filterPushdown.enabled"


@pytest.mark.long
def test_filters_of_one_query_are_used_in_another(spark: SparkSession) -> None:
    class Numbers(DataSource):
        @classmethod
        def name(cls) -> str:
            return "numbers"

        def schema(self) -> str:
            return "number long"

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader()

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self.end = COUNT

        def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
            self.end = min([COUNT, *(one.value for one in filters if isinstance(one, LessThan))])
            return iter(filters)  # Spark is to apply them again

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(self.end)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return ((number,) for number in range(partition.value))

    spark.dataSource.register(Numbers)
    spark.conf.set(SETTING, "true")
    try:
        frame = spark.read.format("numbers").load()
        assert frame.where("number < 10").count() == 10
        assert frame.count() == 10, "it has 100: Spark is mended"
    finally:
        spark.conf.unset(SETTING)


def test_this_source_takes_none() -> None:
    assert TableReader.pushFilters is DataSourceReader.pushFilters
