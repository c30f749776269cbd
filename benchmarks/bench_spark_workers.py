"""Two Spark workers beside one, each on a processor of its own with everything that it starts.

In one process a task already keeps two processors busy: Python reads ahead while the JVM takes what was read. So the
workers are pinned, on standalone clusters of what PySpark ships. The driver is not: beside one worker it has the other
processor, beside two it shares theirs. The floor is what that leaves to win: all processor time of a query with one
worker, the driver's included, spread evenly over two processors.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.measured import Floor, Measured
from benchmarks.segments import write_segment
from benchmarks.sizes import MIB, SCALE, scaled
from logstore.errors import UsageError
from logstore.log.config import parse_config
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import recover_partition
from spark_dumps.session import check_java
from tests.spark.standalone import QUICK_START, cluster

VALUE_SIZE = 100
SIZE = scaled(MIB, 1024 * MIB, min(SCALE, 1))
PARTITION_COUNT, TASK_COUNT_MIN = 2, 4
WARM_UP_COUNT = 5  # queries over next to nothing, while the driver's JVM loads and compiles
EXECUTOR_WARM_UP_COUNT = 4  # over all, for each of two compiles by itself, what half of the records give it to do
ROUND_COUNT = 3
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
SETTINGS = LoadSettings(False, 0, 0, 1_700_000_000_000, parse_config({}))
PROGRAM = """
import sys
import spark_dumps

master, task_count_min, core_count, java_options = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.locality.wait": "0",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    "spark.driver.extraJavaOptions": java_options,
}
spark = spark_dumps.session(master, {**settings, "spark.cores.max": core_count})
spark.sparkContext.setLogLevel("OFF")
for path in map(str.strip, sys.stdin):
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
    """A Spark driver, which answers the query as often as it is asked, of any directory."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def sum(self, data: Path) -> int:
        """Bytes of all values."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{data}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def driver(place: Path, worker_count: int) -> Iterator[Driver]:
    """Of a cluster of its own; it starts beside what its caller does next."""
    place.mkdir()
    with cluster(place, worker_count, is_pinned=True) as master:
        argv = [sys.executable, "-c", PROGRAM, master, str(TASK_COUNT_MIN), str(worker_count), QUICK_START]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Driver(process)
            finally:
                assert process.stdin is not None
                process.stdin.close()


class OneWorker:
    """The peer, and what no two processors can be faster than with the processor time that it takes."""

    def __init__(self, driver: Driver, data: Path) -> None:
        self._driver = driver
        self._data = data
        self._shared_s = 0.0

    def seconds(self) -> float:
        """Of a query."""
        start, start_s = time.perf_counter(), processor_seconds()
        self._driver.sum(self._data)
        self._shared_s = (processor_seconds() - start_s) / 2
        return time.perf_counter() - start

    def shared_seconds(self) -> float:
        """Half of the processor time of that query."""
        return self._shared_s


def processor_seconds() -> float:
    """That all processes have taken which this one has started, and those that they have started."""
    parents, taken = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number], taken[number] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = set[int]()
    reached = {os.getpid()}
    while reached:
        reached = {number for number, parent in parents.items() if parent in reached}
        ours |= reached
    return sum(taken[number] for number in ours) / TICKS_A_SECOND


def write_topic(data: Path, size: int) -> int:
    """Write a topic of about `size` bytes, with the indexes that tasks are cut at; returns the number of records."""
    record_count = 0
    for number in range(PARTITION_COUNT):
        (data / f"bench-{number}").mkdir(parents=True)
        path = data / f"bench-{number}" / f"{0:020d}.log"
        record_count += write_segment(path, size // PARTITION_COUNT, value_size=VALUE_SIZE)
        recover_partition(str(path.parent), SETTINGS)
    return record_count


def test_two_workers(measured: Measured, tmp_path: Path) -> None:
    try:
        check_java()
    except UsageError as unavailable:
        pytest.skip(f"no Spark: {unavailable}")
    data, little = tmp_path / "data", tmp_path / "little"
    record_count = write_topic(data, SIZE)
    write_topic(little, MIB)
    with driver(tmp_path / "one", 1) as one, driver(tmp_path / "two", 2) as two:
        for each, all_count in ((one, EXECUTOR_WARM_UP_COUNT // 2), (two, EXECUTOR_WARM_UP_COUNT)):
            for topic in [little] * WARM_UP_COUNT + [data] * all_count:
                each.sum(topic)
        alone = OneWorker(one, data)
        found = measured(
            two.sum,
            data,
            title=f"`sum(length(value))` of {SIZE / MIB:.4g} MiB, two workers of one processor",
            size=SIZE,
            count=record_count,
            peers={"one worker": alone.seconds},
            floor=Floor("its processor time, halved", alone.shared_seconds),
            rounds=ROUND_COUNT,
            reads=data.glob("*/*.log"),
        )
    assert found == record_count * VALUE_SIZE
