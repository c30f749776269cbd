"""Two Spark workers beside one, each on a processor of its own with everything that it starts.

In one process a task already keeps two processors busy: Python reads ahead while the JVM takes what was read. So the
workers are pinned, on standalone clusters of what PySpark ships.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.measured import Measured, timed
from benchmarks.segments import write_segment
from benchmarks.sizes import MIB, SCALE, scaled
from logstore.errors import UsageError
from logstore.log.config import parse_config
from logstore.log.loader import LoadSettings
from logstore.log.recover import recover_partition
from spark_dumps.session import check_java
from tests.spark.standalone import cluster

VALUE_SIZE = 1000
SIZE = scaled(MIB, 256 * MIB)
PARTITION_COUNT, TASK_COUNT_MIN = 2, 8
SETTINGS = LoadSettings(False, 0, 0, 1_700_000_000_000, parse_config({}))
PROGRAM = """
import sys
import spark_dumps

settings = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.locality.wait": "0",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}
master, path, task_count_min, core_count = sys.argv[1:]
spark = spark_dumps.session(master, {**settings, "spark.cores.max": core_count})
spark.sparkContext.setLogLevel("OFF")
for _ in sys.stdin:
    reader = spark.read.format("kafka_segments").schema("value binary").option("minPartitions", task_count_min)
    print(reader.load(path).selectExpr("sum(length(value))").first()[0], flush=True)
spark.stop()
"""

pytestmark = [
    pytest.mark.skipif(not SCALE, reason="two clusters are started for figures alone; tests/spark tests one"),
    pytest.mark.skipif(
        not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
        reason="needs two processors, on Linux",
    ),
]


class Driver:
    """A Spark driver, which answers the query as often as it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def sum(self) -> int:
        """Bytes of all values."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def driver(place: Path, worker_count: int, data: Path) -> Iterator[Driver]:
    """Of a cluster of its own."""
    place.mkdir()
    with cluster(place, worker_count, is_pinned=True) as master:
        argv = [sys.executable, "-c", PROGRAM, master, str(data), str(TASK_COUNT_MIN), str(worker_count)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Driver(process)
            finally:
                assert process.stdin is not None
                process.stdin.close()


def test_two_workers(measured: Measured, tmp_path: Path) -> None:
    try:
        check_java()
    except UsageError as unavailable:
        pytest.skip(f"no Spark: {unavailable}")
    data, record_count = tmp_path / "data", 0
    for number in range(PARTITION_COUNT):
        (data / f"bench-{number}").mkdir(parents=True)
        path = data / f"bench-{number}" / f"{0:020d}.log"
        record_count += write_segment(path, SIZE // PARTITION_COUNT, value_size=VALUE_SIZE)
        recover_partition(str(path.parent), SETTINGS)  # which makes the indexes that tasks are cut at
    with driver(tmp_path / "one", 1, data) as one, driver(tmp_path / "two", 2, data) as two:
        found = measured(
            two.sum,
            title=f"`sum(length(value))` of {SIZE / MIB:.4g} MiB, two workers of one processor",
            size=SIZE,
            count=record_count,
            peers={"one worker": timed(one.sum)},
        )
    assert found == record_count * VALUE_SIZE
