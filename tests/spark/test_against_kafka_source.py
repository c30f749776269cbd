"""Row for row the same as Spark's own Kafka source, over a real broker that is running on the directory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.peers.spark_kafka_source import kafka_source_jars
from tests.spark.standalone import SETTINGS
from tests.support.broker import Broker
from tests.support.judges import skip_without_judge
from tests.support.oracle import Oracle, OracleUnavailableError

PATTERN = "^(?!timestamps$)"  # Spark's source fails at a time that has no microseconds
# A log start that DeleteRecords moved stands on disk only when the broker has written its checkpoint.
CHECKPOINT_AT_ONCE = {
    "log.initial.task.delay.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
}
CHECKPOINT_SECONDS = 60
PROGRAM = """
import json, sys
import spark_dumps

bootstrap, directory, pattern, settings = sys.argv[1:]
spark = spark_dumps.session("local[2]", json.loads(settings))

def frame(source, level, path=None):
    reader = spark.read.format(source).option("subscribePattern", pattern).option("includeHeaders", "true")
    if source == "kafka":
        reader = reader.option("kafka.bootstrap.servers", bootstrap)
    return reader.option("kafka.isolation.level", level).load(path)

found = []
for level in ("read_uncommitted", "read_committed"):
    theirs, ours = frame("kafka", level).cache(), frame("kafka_segments", level, directory).cache()
    assert theirs.dtypes == ours.dtypes, (theirs.dtypes, ours.dtypes)
    found.append([theirs.count(), theirs.exceptAll(ours).count(), ours.exceptAll(theirs).count()])
print(json.dumps(found))
spark.stop()
"""

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.fixture
def oracle() -> Oracle:
    try:
        kafka_source_jars()
        return Oracle()
    except OracleUnavailableError as unavailable:
        skip_without_judge(f"no Kafka source: {unavailable}")


def wait_for_line(path: Path, line: str) -> None:
    """Until the broker has written it."""
    deadline_s = time.monotonic() + CHECKPOINT_SECONDS
    while not path.exists() or line not in path.read_text().splitlines():
        assert time.monotonic() < deadline_s, f"{path.name} never said {line!r}"
        time.sleep(0.1)


def test_the_same_rows_as_sparks_kafka_source(oracle: Oracle, tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with Broker(oracle, directory, CHECKPOINT_AT_ONCE, []).running(signal.SIGTERM) as bootstrap:
        oracle.run("GoldenTransactions", bootstrap, cwd=tmp_path)
        oracle.run("GoldenRecords", bootstrap, cwd=tmp_path)
        wait_for_line(directory / "log-start-offset-checkpoint", "deleted 0 17")
        settings = json.dumps({**SETTINGS, "spark.driver.memory": "1g", "spark.jars": kafka_source_jars()})
        argv = [sys.executable, "-c", PROGRAM, bootstrap, str(directory), PATTERN, settings]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    uncommitted, committed = json.loads(done.stdout.splitlines()[-1])
    assert uncommitted[0] > committed[0] > 900
    assert (uncommitted[1:], committed[1:]) == ([0, 0], [0, 0])
