"""Spark over many partitions: planning of queries, triggers of a stream that has nothing new, audits on two workers.

Planning and triggers run in one Python process of the driver, without a JVM. The audits' peers read the same
partitions: one process on one processor, and two without Spark, which show what the second processor adds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import spark_dumps
from benchmarks.bench_audit import NOW_MS, copies, on_one_processor, write_partition
from benchmarks.bench_spark import SETTINGS
from benchmarks.support.data import KIB, MIB, SEGMENT, scaled
from benchmarks.support.measure import Measured, seconds_of
from logstore.audit.directory_audit import audit_directory
from logstore.errors import UsageError
from spark_dumps.source import KafkaSegments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_dumps.planning import SliceTask

PARTITION_COUNT = scaled(20, 20_000, 1)
SEGMENT_COUNT, OFFSETS_A_SEGMENT = scaled(20, 1_000_000, 1), 1000
SHAPES = {  # partitions and the bytes of each
    "small partitions": (PARTITION_COUNT, 32 * KIB),
    "large partitions": (8, scaled(32 * KIB, 512 * MIB, 1)),
}
AUDIT_ROUND_COUNT = 2  # of up to two minutes
IN_JVM = pytest.mark.long  # when all is tiny they say what tests/spark says


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("many")
    yield copies(root, 32 * KIB, PARTITION_COUNT)
    shutil.rmtree(root)


@pytest.mark.parametrize("table", ["records", "topics", "findings"])
def test_planning(table: str, many: Path, measured: Measured) -> None:
    source = KafkaSegments({"path": str(many), "table": table})
    reader = source.reader(source.schema())
    found = measured(
        lambda: len(reader.partitions()) > 0,
        title=f"planning of table `{table}`, {PARTITION_COUNT:,} partitions",
        count=PARTITION_COUNT,
        unit="partitions",
        floor="none: the time is that of listing directories",
    )
    assert found


def test_planning_of_segments(measured: Measured, tmp_path: Path) -> None:
    write_partition(tmp_path / "one" / "orders-0", 32 * KIB)
    per_partition = min(SEGMENT_COUNT, 1000)
    for number in range(SEGMENT_COUNT // per_partition):
        directory = tmp_path / "data" / f"orders-{number}"
        directory.mkdir(parents=True)
        for segment in range(per_partition):
            for suffix in (".log", ".index", ".timeindex"):
                source = (tmp_path / "one" / "orders-0" / SEGMENT).with_suffix(suffix)
                os.link(source, directory / f"{segment * OFFSETS_A_SEGMENT:020d}{suffix}")
    source = KafkaSegments({"path": str(tmp_path / "data")})
    reader = source.reader(source.schema())
    found = measured(
        lambda: sum(len(run.names) for task in reader.partitions() for run in cast("SliceTask", task).runs),
        title=f"planning of table `records`, {SEGMENT_COUNT:,} segments",
        count=SEGMENT_COUNT,
        unit="segments",
        floor="none: the time is that of listing directories",
    )
    assert found == SEGMENT_COUNT


def test_idle_trigger(many: Path, measured: Measured) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    from spark_dumps.stream import RecordsStream

    source = KafkaSegments({"path": str(many)})
    stream = cast("RecordsStream", source.streamReader(source.schema()))
    start = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    end = measured(
        lambda: stream.latestOffset(start, ReadAllAvailable()),
        title=f"trigger of a stream with nothing new, {PARTITION_COUNT:,} partitions",
        count=PARTITION_COUNT,
        unit="partitions",
        floor="none: the time is that of a look at each directory",
        hashed=lambda _: PARTITION_COUNT,
    )
    assert end == start


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    try:
        found = spark_dumps.session("local[2]", SETTINGS)
    except UsageError as unavailable:
        pytest.skip(f"no Spark: {unavailable}")
    found.sparkContext.setLogLevel("OFF")
    return found


@IN_JVM
@pytest.mark.parametrize("way", ["audit --spark", "table findings"])
@pytest.mark.parametrize("shape", SHAPES)
def test_audit_on_two_workers(way: str, shape: str, spark: SparkSession, tmp_path: Path, measured: Measured) -> None:
    from spark_dumps.session import audit_with_spark

    (count, size), path = SHAPES[shape], ""

    def audit() -> int:
        if way == "audit --spark":
            return len(audit_with_spark("local[2]", path, NOW_MS).findings)
        reader = spark.read.format("kafka_segments").options(table="findings", now=NOW_MS)
        return len(reader.load(path).collect())

    path = str(copies(tmp_path / "few", 32 * KIB, 8))
    audit()  # starts workers, and what the JVM compiles: a cluster's are there
    path = str(copies(tmp_path / "all", size, count))
    found = measured(
        audit,
        title=f"`{way}` on two workers, {count:,} {shape} of {size / MIB:.4g} MiB",
        rounds=AUDIT_ROUND_COUNT,
        size=count * size,
        count=count,
        unit="partitions",
        peers={
            "one process": lambda: on_one_processor(lambda: audit_directory(path, NOW_MS)),
            "two processes": lambda: seconds_of(1, lambda: audit_directory(path, NOW_MS)),
        },
        floor="two processes without Spark",
    )
    assert found == 0
