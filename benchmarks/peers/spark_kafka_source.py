"""What `kafka_segments` is measured by: Spark's own Kafka source over a real broker, and one that costs nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import BinaryType, StructField, StructType

from tests.support.oracle import Oracle, filling, oracle_cache, resolve_by_maven

POM = Path(__file__).parent / "spark_kafka" / "pom.xml"
NOT_IN_PYSPARK = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
BATCH_SIZE = 4 * 1024 * 1024  # bytes of values in an Arrow batch of the source that costs nothing


def kafka_source_jars() -> str:
    """Return comma separated paths, for `spark.jars`.

    Raises:
        OracleUnavailableError: Maven is missing or cannot resolve them.
    """
    known = oracle_cache() / "spark-kafka.txt"
    with filling(oracle_cache()):
        if not known.exists():
            resolve_by_maven(POM, known)
    return ",".join(jar for jar in known.read_text().split(os.pathsep) if Path(jar).name.startswith(NOT_IN_PYSPARK))


def produce(
    oracle: Oracle, bootstrap: str, topic: str, record_count: int, value_size: int, partition_count: int
) -> None:
    """Create the topic and fill it with Kafka's own `kafka-producer-perf-test`."""
    cwd = Path.cwd()
    words = ["--create", "--topic", topic, "--partitions", str(partition_count), "--bootstrap-server", bootstrap]
    oracle.run("org.apache.kafka.tools.TopicCommand", *words, cwd=cwd)
    sizes = ["--num-records", str(record_count), "--record-size", str(value_size), "--throughput", "-1"]
    settings = ["--producer-props", f"bootstrap.servers={bootstrap}", "acks=1"]
    oracle.run("org.apache.kafka.tools.ProducerPerformance", "--topic", topic, *sizes, *settings, cwd=cwd)


def kafka_frame(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return the topic through Spark's Kafka source, two tasks."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    return reader.option("subscribe", topic).option("minPartitions", 2).load()


class ReadyBatches(DataSource):
    """Values that are ready in memory; options `records`, `size` (of a value) and `tasks`."""

    @classmethod
    def name(cls) -> str:
        """What `format` is called with."""
        return "ready_batches"

    def schema(self) -> StructType:
        return StructType([StructField("value", BinaryType())])

    def reader(self, schema: StructType) -> DataSourceReader:
        return _ReadyReader(*(int(self.options[name]) for name in ("records", "size", "tasks")))


class _ReadyReader(DataSourceReader):
    def __init__(self, record_count: int, value_size: int, task_count: int) -> None:
        self._record_count = record_count
        self._value_size = value_size
        self._task_count = task_count

    def partitions(self) -> list[InputPartition]:
        edges = [self._record_count * task // self._task_count for task in range(self._task_count + 1)]
        return [InputPartition(end - start) for start, end in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        count = max(1, min(partition.value, BATCH_SIZE // self._value_size))
        bounds = np.arange(count + 1, dtype=np.int32) * self._value_size
        data = np.zeros(int(bounds[-1]), np.uint8)
        values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
        batch = pa.record_batch([values], names=["value"])
        remaining = partition.value
        while remaining > 0:
            yield batch.slice(0, min(remaining, count))
            remaining -= count
