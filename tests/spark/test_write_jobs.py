"""Writes as Spark runs them: its tasks, its failures, its end of a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from logstore.model import FetchIsolation
from tests.spark.written import left_beside, make_topics, values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameWriter

    from tests.spark.conftest import Load

ROW = [
    "cast(id as string) key",
    "concat('v', id) value",
    "array(named_struct('key', 'id', 'value', cast(cast(id as string) as binary))) headers",
    "timestamp_millis(1700000000000 + id) timestamp",
]
COLUMNS = ["key", "value", "topic", "partition", "timestamp", "headers"]


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """1000 rows in four tasks."""
    return spark.range(0, 1000, 1, 4).selectExpr(*ROW)


def to_store(frame: DataFrame, **options: Any) -> DataFrameWriter:
    writer = frame.write.format("kafka_segments").mode("append")
    for name, value in options.items():
        writer = writer.option(name, value)
    return writer


def test_a_written_dataframe_is_read_back(frame: DataFrame, load: Load, tmp_path: Path) -> None:
    path = tmp_path / "data"
    to_store(frame, topic="orders", partitions=3).save(str(path))
    assert left_beside(path) == []
    found = load(path, includeHeaders="true", isolation_level="read_committed")
    written = found.selectExpr("cast(key as string) key", "cast(value as string) value", "headers", "timestamp")
    assert found.count() == load(path).count() == 1000
    assert frame.exceptAll(written).count() == 0
    copy = tmp_path / "copy"
    rows = load(path, includeHeaders="true")
    to_store(rows, partitions=3).save(str(copy))  # as it was read, offsets and all
    again = load(copy, includeHeaders="true").select(*COLUMNS)
    assert again.exceptAll(rows.select(*COLUMNS)).count() == 0
    assert load(copy).where("partition = 1").count() == rows.where("partition = 1").count() > 200
    to_store(frame, topic="orders").save(str(copy))
    assert load(copy).count() == 2000


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = make_topics(tmp_path / "data", orders=2)

    value = "if(id = 990, raise_error('this row is too much'), concat('v', id)) value"
    broken = spark.range(0, 1000, 1, 4).selectExpr(value)
    with pytest.raises(PySparkException, match="this row is too much"):
        to_store(broken, topic="orders").save(str(path))
    assert left_beside(path) == []
    assert values(path, isolation=FetchIsolation.LOG_END) == {0: [], 1: []}


@pytest.mark.slow
def test_a_write_that_cannot_be_fails_with_kafkas_words(frame: DataFrame, tmp_path: Path) -> None:
    path = make_topics(tmp_path / "data", orders=2)
    with pytest.raises(PySparkException, match='Please use either the "Append" or "Overwrite" mode'):
        frame.write.format("kafka_segments").option("topic", "orders").save(str(path))
    with pytest.raises(PySparkException, match="Save mode Overwrite not allowed for Kafka"):
        to_store(frame, topic="orders").mode("overwrite").save(str(path))
    with pytest.raises(PySparkException, match=r"Topic nowhere not present in metadata.*set option partitions"):
        to_store(frame, topic="nowhere").save(str(path))
    with pytest.raises(PySparkException, match="Partition 7 of topic orders with partition count 2 is not present"):
        to_store(frame.selectExpr("value", "7 partition"), topic="orders").save(str(path))
    assert left_beside(path) == []
    assert values(path, isolation=FetchIsolation.LOG_END) == {0: [], 1: []}


def test_no_rows(frame: DataFrame, tmp_path: Path) -> None:
    path = make_topics(tmp_path / "data", orders=1)
    to_store(frame.where("value = 'none'"), topic="orders").save(str(path))
    assert values(path) == {0: []}
    assert left_beside(path) == []
