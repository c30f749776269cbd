"""Writes of a standalone cluster whose executors or driver are killed: all rows are there once, or none.

Tasks wait in the middle of their rows for a file that the test makes, so a kill hits a job that is half staged. The end
of a job, one transaction, is killed at moments drawn at random.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logstore.model import FetchIsolation
from tests.spark.standalone import SETTINGS, cluster, java_or_skip
from tests.spark.written import make_topics, values
from tests.support.judges import skip_without_judge
from tests.support.sampling import case_count, seed_of

PROGRAM = """
import json, os, sys, time
import spark_dumps

master, data, shared, staging, job, rows, settings = sys.argv[1:]
row_count = int(rows)

def slowly(rows):
    for number, row in enumerate(rows):
        if number == row_count // 5:  # of four tasks, in which most rows are sent on
            open(f"{shared}/begun-{job}-{os.getpid()}", "w").close()
            while not os.path.exists(f"{shared}/go-{job}"):
                time.sleep(0.05)
        yield (f"{job}/{row.id} {'-' * 10_000}",)

spark = spark_dumps.session(master, json.loads(settings))
frame = spark.createDataFrame(spark.range(0, row_count, 1, 4).rdd.mapPartitions(slowly), "value string")
writer = frame.write.format("kafka_segments").mode("append")
writer.options(topic="orders", stagingPath=staging, transactionalId=job).save(data)
open(f"{shared}/done-{job}", "w").close()
spark.stop()
"""
ROWS, LARGE = 2000, 4000
SECONDS = 600  # only a fault takes longer
PARTITIONS = 4
COMMITS = case_count("LOGSTORE_KILLED_COMMITS", sample=5, whole=5)
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"

pytestmark = pytest.mark.long


class Jobs:
    """Starts jobs that write to one data directory, and kills what belongs to them."""

    def __init__(self, master: str, folder: Path, shared: Path) -> None:
        self.master = master
        self.data = make_topics(folder / "data", orders=PARTITIONS)
        self.shared = shared
        self.staging = self.shared / "staging"
        self.staging.mkdir(parents=True)

    @contextlib.contextmanager
    def started(self, name: str, rows: int = ROWS) -> Iterator[subprocess.Popen[bytes]]:
        """A job in a group of processes of its own, which is killed in the end."""
        settings = json.dumps({**SETTINGS, "spark.sql.execution.arrow.maxRecordsPerBatch": "50"})
        program = [sys.executable, "-c", PROGRAM, self.master]
        words = [*program, self.data, self.shared, self.staging, name, rows, settings]
        with (self.shared / f"{name}.log").open("ab") as log:
            driver = subprocess.Popen([*map(str, words)], start_new_session=True, stdout=log, stderr=log)
        try:
            yield driver
        finally:
            kill_all(driver)

    def go(self, name: str) -> None:
        (self.shared / f"go-{name}").touch()

    def wait_for_tasks(self, name: str, driver: subprocess.Popen[bytes], count: int) -> None:
        """Wait until so many tasks that began since the last call are in the middle of their rows, some staged."""

        def is_half_staged() -> bool:
            staged = [path for path in self.staging.glob("*/*.arrow") if path.stat().st_size > 0]
            return bool(staged) and len(list(self.shared.glob(f"begun-{name}-*"))) >= count

        self.wait(driver, is_half_staged)
        for path in self.shared.glob(f"begun-{name}-*"):
            path.unlink()

    def log_size(self) -> int:
        return sum(path.stat().st_size for path in self.data.glob("orders-*/*.log"))

    def finish(self, name: str, driver: subprocess.Popen[bytes]) -> None:
        self.go(name)
        assert driver.wait(SECONDS) == 0, (self.shared / f"{name}.log").read_text()[-4000:]
        assert (self.shared / f"done-{name}").exists()

    def wait(self, driver: subprocess.Popen[bytes], is_there: Callable[[], bool], pause_s: float = 0.05) -> None:
        def is_over() -> bool:
            assert driver.poll() in (None, 0), [path.read_text()[-3000:] for path in self.shared.glob("*.log")]
            return is_there()

        wait_until(is_over, pause_s)

    def written(self, name: str, isolation: FetchIsolation = FetchIsolation.READ_COMMITTED) -> Counter[bytes]:
        """How often each row of a job is in the directory."""
        found = values(self.data, isolation=isolation).values()
        return Counter(
            value.split()[0]
            for of_partition in found
            for value in of_partition
            if value and value.startswith(name.encode())
        )


def rows_of(name: str, rows: int = ROWS) -> Counter[bytes]:
    return Counter(f"{name}/{number}".encode() for number in range(rows))


def kill_all(driver: subprocess.Popen[bytes]) -> None:
    """Kill a driver, its JVM and their Python workers; return when all are gone."""

    def are_gone() -> bool:
        found = members(driver.pid)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not found

    wait_until(are_gone)
    driver.wait(SECONDS)


def wait_until(is_so: Callable[[], bool], pause_s: float = 0.05) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(pause_s)


def members(session: int) -> list[int]:
    """The live processes of a session; PySpark's daemon, of which the workers are, makes a group of its own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found


def executors(folder: Path) -> list[int]:
    """The JVMs of the executors of the cluster in a folder: they run in directories of its workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text().split("\0")
            if EXECUTOR in words and (path.parent / "cwd").resolve().is_relative_to(folder):
                found.append(int(path.parent.name))
    return found


def java_of(session: int) -> int:
    """The JVM of a driver."""
    (found,) = [pid for pid in members(session) if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]
    return found


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    java_or_skip()
    place = tmp_path / "cluster"
    place.mkdir()
    with cluster(place, 2) as master:
        yield Jobs(master, tmp_path, tmp_path / "shared")


def test_killed_executors(jobs: Jobs, tmp_path: Path) -> None:
    with jobs.started("job") as driver:
        jobs.wait_for_tasks("job", driver, 2)
        os.kill(executors(tmp_path / "cluster")[0], signal.SIGKILL)
        jobs.wait_for_tasks("job", driver, 1)
        for pid in executors(tmp_path / "cluster"):
            os.kill(pid, signal.SIGKILL)
        jobs.wait_for_tasks("job", driver, 2)
        jobs.finish("job", driver)
    assert jobs.written("job") == jobs.written("job", FetchIsolation.LOG_END) == rows_of("job")
    assert list(jobs.staging.iterdir()) == []


def test_a_driver_that_is_killed_while_tasks_stage(jobs: Jobs) -> None:
    with jobs.started("job") as driver:
        jobs.wait_for_tasks("job", driver, 2)
    assert jobs.written("job", FetchIsolation.LOG_END) == Counter()
    assert len(list(jobs.staging.iterdir())) == 1
    with jobs.started("job") as driver:
        jobs.finish("job", driver)
    assert jobs.written("job") == jobs.written("job", FetchIsolation.LOG_END) == rows_of("job")
    assert list(jobs.staging.iterdir()) == []


def test_a_driver_that_is_killed_while_it_commits(jobs: Jobs) -> None:
    dice = random.Random(seed_of("KILLED_COMMITS"))
    expected: Counter[bytes] = Counter()
    is_committed = []
    for number in range(COMMITS):
        name = f"job{number:03}"
        size = jobs.log_size()
        with jobs.started(name, LARGE) as driver:
            jobs.go(name)
            jobs.wait(driver, lambda size=size: jobs.log_size() > size, 0.001)  # type: ignore[misc]
            time.sleep(dice.random() * 0.1)  # any moment will do
            if number % 2 and driver.poll() is None:  # the driver's Python workers are left to end by themselves
                os.kill(java_of(driver.pid), signal.SIGKILL)
                driver.wait(SECONDS)
                wait_until(lambda driver=driver: not members(driver.pid))  # type: ignore[misc]
        found = jobs.written(name)
        assert found in (Counter(), rows_of(name, LARGE))
        is_committed.append(bool(found))
        if not found:
            with jobs.started(name, LARGE) as driver:
                jobs.finish(name, driver)
        expected += rows_of(name, LARGE)
        assert jobs.written("job") == expected, is_committed
    # a driver that is killed between its commit and its end leaves a directory, which the next job with its id removes
    assert len(list(jobs.staging.iterdir())) <= sum(is_committed)


def test_only_staging_is_shared_with_executors(tmp_path: Path) -> None:
    """The driver alone sees the data directory; without a shared `stagingPath` a task says what to do."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        skip_without_judge("no mounts of one's own: needs the rights of root")
    java_or_skip()
    place, private = tmp_path / "cluster", tmp_path / "private"
    place.mkdir()
    private.mkdir()
    with cluster(place, 2, hidden=private) as master:
        jobs = Jobs(master, private, tmp_path / "shared")
        with jobs.started("job") as driver:
            jobs.finish("job", driver)
        assert jobs.written("job") == rows_of("job")
        jobs.staging = private / "staging"
        with jobs.started("other") as driver:
            jobs.go("other")
            assert driver.wait(SECONDS) != 0
        told = (jobs.shared / "other.log").read_text()
        assert "staging directory cannot be written by this task" in told
        assert "set stagingPath to a directory that driver and executors share" in told
        assert jobs.written("other", FetchIsolation.LOG_END) == Counter()
