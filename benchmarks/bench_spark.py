"""Spark: what a task does with a segment, and whole queries beside Spark's own Kafka source, ready Arrow batches, and
next to no records.

Where the real Kafka runs, a real broker holds the topic and its data directory is what we read, beside it; else the
directory is one of ours and the broker's users are absent. Every full answer must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import xxhash

import spark_dumps
from benchmarks.peers.kafka import LocalBroker, oracle
from benchmarks.support.data import MIB, SEGMENT, scale, scaled, write_segment
from benchmarks.support.floors import copying
from benchmarks.support.logs import settings_of
from benchmarks.support.measure import Floor, Measured, PeerAbsentError, Side, has_peers, seconds_of
from benchmarks.support.page_cache import read_again
from logstore.errors import UsageError
from logstore.log.load.recover import recover_partition
from tests.spark.planned import Planned
from tests.support.oracle import OracleUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION_COUNT = 2
# when all is tiny they say what tests/spark says
VALUE_SIZES = [pytest.param(size, marks=pytest.mark.long) for size in (100, 1000)]
WARM_UP_COUNT = scaled(0, 20)  # queries, while the JVM compiles what plans and schedules them
SIZE = scaled(MIB, 1024 * MIB, 1)  # what the ratios are asked for: next to it a query's own cost is less
SUM = "sum(length(value))"
WITHOUT_CLOCK = ("partition", "offset", "length(key)", "length(value)")  # and without what a broker put where
IN_TASKS = {"minPartitions": str(PARTITION_COUNT)}  # everything, in at least two tasks
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
}
TASK_SIZE = scaled(MIB, 128 * MIB)


def write_topic(data: Path, name: str, size: int, value_size: int) -> int:
    """Write a topic of about `size` bytes, with the indexes that tasks are cut at; the number of records."""
    record_count = 0
    for number in range(PARTITION_COUNT):
        path = data / f"{name}-{number}" / SEGMENT
        path.parent.mkdir(parents=True)
        record_count += write_segment(path, size // PARTITION_COUNT, value_size=value_size)
        recover_partition(str(path.parent), settings_of(was_clean=False))
    return record_count


@pytest.mark.parametrize("schema", [None, "value binary"], ids=["all columns", "values"])
def test_spark_task(schema: str | None, tmp_path: Path, measured: Measured) -> None:
    (tmp_path / "orders-0").mkdir()
    count = write_segment(tmp_path / "orders-0" / "00000000000000000000.log", TASK_SIZE, value_size=1000)
    planned = Planned(tmp_path, schema)

    def read() -> int:
        return sum(batch.num_rows for batch in planned.batches())

    def digest_of_values() -> str:
        digest = xxhash.xxh64()
        for batch in planned.batches():
            digest.update(b"".join(batch.column("value").to_pylist()))
        return digest.hexdigest()

    title = f"what a Spark task does with {TASK_SIZE / MIB:.4g} MiB, {'all columns' if schema is None else 'values'}"
    task = {"size": TASK_SIZE, "count": count, "floor": copying(TASK_SIZE), "reads": tmp_path.glob("*/*.log")}
    assert measured(read, title=title, **task, hashed=lambda rows: (rows, digest_of_values())) == count


@dataclass
class Topic:
    """The records, a session, and where a broker has the same; None without one, for the reason."""

    spark: SparkSession
    broker: LocalBroker
    name: str
    directory: Path
    value_size: int
    record_count: int
    bootstrap: str | None
    reason: str = ""

    def records(self, options: dict[str, str], schema: str | None = None) -> DataFrame:
        """All columns, or those of a schema."""
        reader = self.spark.read.format("kafka_segments").option("subscribe", self.name).options(**options)
        return (reader if schema is None else reader.schema(schema)).load(str(self.directory))

    def segments(self) -> list[Path]:
        """Those that a broker has written, too."""
        return sorted(self.directory.glob(f"{self.name}-*/*.log"))

    def values(self, options: dict[str, str]) -> DataFrame:
        return self.records(options, "value binary")

    def sum(self, frame: DataFrame) -> int:
        """Bytes of all values."""
        row = frame.selectExpr(SUM).first()
        assert row is not None
        return int(row[0])

    def answered(self, frame: DataFrame) -> None:
        """RuntimeError when the sum is not that of all values."""
        found = self.sum(frame)
        if found != self.record_count * self.value_size:
            raise RuntimeError(f"{found} bytes instead of {self.record_count * self.value_size}")

    def few(self) -> tuple[int, dict[str, str]]:
        """How many are 1 % of the records, from the middle of each partition, and the options for them."""
        middle = self.record_count // PARTITION_COUNT // 2
        count = self.record_count // PARTITION_COUNT // 100
        ends = {"startingOffsets": middle, "endingOffsets": middle + count}
        options = {
            name: json.dumps({self.name: dict.fromkeys(map(str, range(PARTITION_COUNT)), offset)})
            for name, offset in ends.items()
        }
        return count * PARTITION_COUNT, options

    def kafka_source(self) -> float:
        """Seconds of Spark's own Kafka source."""
        from benchmarks.peers.spark_kafka_source import kafka_frame

        if self.bootstrap is None:
            raise PeerAbsentError(self.reason)
        bootstrap = self.bootstrap
        return seconds_of(1, lambda: self.answered(kafka_frame(self.spark, bootstrap, self.name)))

    def ready_batches(self) -> float:
        """Seconds of a source that yields as many Arrow batches which are there already, two tasks."""
        return seconds_of(1, lambda: self.answered(self._ready(self.record_count, PARTITION_COUNT)))

    def one_record(self) -> float:
        """Seconds of a query whose source yields one record: what Spark takes for itself."""
        return seconds_of(1, lambda: self.sum(self._ready(1, 1)))

    def one_record_whole(self) -> float:
        """Seconds of a query that drops one record, as `read_whole` does."""
        return seconds_of(1, lambda: read_whole(self._ready(1, 1)))

    def _ready(self, record_count: int, task_count: int) -> DataFrame:
        from benchmarks.peers.spark_kafka_source import ReadyBatches

        self.spark.dataSource.register(ReadyBatches)
        sizes = {"records": record_count, "size": self.value_size, "tasks": task_count}
        return self.spark.read.format("ready_batches").options(**sizes).load()


@pytest.fixture(scope="module", params=VALUE_SIZES)
def topic(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, broker: LocalBroker
) -> Iterator[Topic]:
    """Filled by Kafka's own tool where there is a broker; a session that has the jars of the Kafka source then."""
    pytest.importorskip("pyspark")
    from benchmarks.peers.spark_kafka_source import kafka_source_jars, produce

    value_size: int = request.param
    name = f"of-{value_size}"
    directory, bootstrap, reason, jars = tmp_path_factory.mktemp("spark"), None, "", {}
    record_count = SIZE // value_size
    try:
        if not (scale() and has_peers()):
            raise PeerAbsentError("tiny, or without peers")
        jars = {"spark.jars": kafka_source_jars()}
        bootstrap = broker.bootstrap
        broker.go_on()
        produce(oracle(), bootstrap, name, record_count, value_size, PARTITION_COUNT)
        directory = broker.directory
        for path in directory.glob(f"{name}-*/*.log"):
            read_again(path)
    except (PeerAbsentError, OracleUnavailableError) as absent:
        reason = str(absent)
        record_count = write_topic(directory, name, SIZE, value_size)
    try:
        spark = spark_dumps.session(f"local[{PARTITION_COUNT}]", {**SETTINGS, **jars})
    except UsageError as unavailable:
        pytest.skip(f"no Spark: {unavailable}")
    spark.sparkContext.setLogLevel("OFF")
    yield Topic(spark, broker, name, directory, value_size, record_count, bootstrap, reason)
    if bootstrap is not None:
        spark.stop()  # otherwise other tests of the process may have it still


def test_sum_of_lengths(measured: Measured, topic: Topic) -> None:
    peers: dict[str, Side] = {
        "Spark's Kafka source": topic.broker.asked(topic.kafka_source),
        "ready Arrow batches": topic.ready_batches,
    }
    found = measured(
        lambda: topic.sum(topic.values(IN_TASKS)),
        title=f"`{SUM}` of {SIZE / MIB:.4g} MiB on Spark, values of {topic.value_size} bytes",
        size=SIZE,
        count=topic.record_count,
        peers=peers,
        floor="the ready batches beside it",
        reads=topic.segments(),
    )
    assert found == topic.record_count * topic.value_size


def test_sum_of_few(measured: Measured, topic: Topic) -> None:
    count, options = topic.few()
    for _ in range(WARM_UP_COUNT):
        topic.sum(topic.values(options))
    found = measured(
        lambda: topic.sum(topic.values(options)),
        title=f"`{SUM}` of 1 % of the offsets, values of {topic.value_size} bytes",
        count=count,
        peers={
            "full read": lambda: seconds_of(1, lambda: topic.answered(topic.values(IN_TASKS))),
            "one ready record": topic.one_record,
        },
        floor="the one ready record beside it",
        reads=topic.segments(),
    )
    assert found == count * topic.value_size


def test_all_columns_of_few(measured: Measured, topic: Topic) -> None:
    """Read by Spark's sink that drops what it gets, for nothing else is to be measured."""
    count, options = topic.few()
    assert topic.records(options).count() == count
    for _ in range(WARM_UP_COUNT):
        read_whole(topic.records(options))
    measured(
        lambda: read_whole(topic.records(options)),
        title=f"all columns of 1 % of the offsets, values of {topic.value_size} bytes",
        count=count,
        peers={"full read": lambda: seconds_of(1, lambda: read_whole(topic.records(IN_TASKS)))},
        floor=Floor("one ready record", topic.one_record_whole),
        reads=topic.segments(),
        hashed=lambda _: sorted(map(tuple, topic.records(options).selectExpr(*WITHOUT_CLOCK).collect())),
    )


def read_whole(frame: DataFrame) -> None:
    """Every column of every row, for nobody."""
    frame.write.format("noop").mode("overwrite").save()
