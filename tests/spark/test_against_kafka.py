"""Spark's own Kafka source and sink beside ours: the same rows, the same records, and the same refusals.

The source reads from a real broker that is running on the directory. The sink writes into one that runs on the
directory that our job wrote, and Spark's Kafka source, which is the Java consumer, reads both topics from there.
"""

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
from tests.spark.written import make_topics
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
READING = """
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

WRITING = """
import json, sys
import spark_dumps

directory, settings = sys.argv[1:]
spark = spark_dumps.session("local[2]", json.loads(settings))
spark.sparkContext.setLogLevel("OFF")
key = "if(id % 7 = 0, null, repeat(cast(id as string), cast(id % 9 as int))) key"
headers = "if(id % 3 = 0, null, transform(sequence(0, id % 3), x -> struct(concat('h', x) as key, "
headers += "if(x = 1, null, cast(cast(x as string) as binary)) as value))) headers"
value = "if(id % 55 = 0, null, concat('value ', id)) value"
partition = "if(id % 5 = 0, cast(id % 3 as int), null) partition"
frame = spark.range(0, 2000, 1, 4).selectExpr("id", key, value, headers, partition)
wrong = [
    frame.selectExpr("key"),
    frame.selectExpr("id value"),
    frame.selectExpr("value", "id key"),
    frame.selectExpr("value", "id partition"),
    frame.selectExpr("value", "array('a') headers"),
    frame.selectExpr("value", "map('a', value) headers"),
]
without_topic = [frame.selectExpr("value"), frame.selectExpr("value", "id topic")]

def sink(name, frame, **options):
    writer = frame.write.format(name).mode("append")
    for option, value in options.items():
        if value is not None:
            writer = writer.option(option.replace("_", "."), value)
    return writer

def refusals(name, **options):
    found = []
    for each, topic in [*((each, "ours") for each in wrong), *((each, None) for each in [*wrong, *without_topic])]:
        try:
            sink(name, each, topic=topic, **options).save()
            found.append("no error")
        except Exception as error:
            found.append(str(error))
    return found

def lines(text):
    print(json.dumps(text), flush=True)

sink("kafka_segments", frame, topic="ours").save(directory)
lines(refusals("kafka_segments", path=directory))
bootstrap = json.loads(sys.stdin.readline())
sink("kafka", frame, topic="theirs", kafka_bootstrap_servers=bootstrap).save()
lines(refusals("kafka", kafka_bootstrap_servers=bootstrap))
for level in ("read_committed", "read_uncommitted"):
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("includeHeaders", "true")
    reader = reader.option("kafka.isolation.level", level)
    ours, theirs = (
        reader.option("subscribe", topic).load()
        # where the partition is not by chance it is the same
        .selectExpr("key", "value", "headers", "if(key is null and value not rlike '[05]$', -1, partition) partition")
        .cache()
        for topic in ("ours", "theirs")
    )
    lines([ours.count(), theirs.count(), ours.exceptAll(theirs).count(), theirs.exceptAll(ours).count()])
spark.stop()
"""

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.fixture
def oracle() -> Oracle:
    try:
        kafka_source_jars()
        return Oracle()
    except OracleUnavailableError as unavailable:
        skip_without_judge(f"no Kafka source and sink: {unavailable}")


def settings() -> str:
    return json.dumps({**SETTINGS, "spark.driver.memory": "1g", "spark.jars": kafka_source_jars()})


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
        argv = [sys.executable, "-c", READING, bootstrap, str(directory), PATTERN, settings()]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    uncommitted, committed = json.loads(done.stdout.splitlines()[-1])
    assert uncommitted[0] > committed[0] > 900
    assert (uncommitted[1:], committed[1:]) == ([0, 0], [0, 0])


def test_the_same_records_and_refusals_as_sparks_kafka_sink(oracle: Oracle, tmp_path: Path) -> None:
    directory = make_topics(tmp_path / "data", ours=3, theirs=3)
    argv = [sys.executable, "-c", WRITING, str(directory), settings()]
    with (tmp_path / "errors").open("w+") as errors:
        spark = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert spark.stdin is not None
        assert spark.stdout is not None
        with spark:
            ours = answer(spark, errors.name)
            with Broker(oracle, directory, {}, [], is_formatted=True).running(signal.SIGTERM) as bootstrap:
                spark.stdin.write(json.dumps(bootstrap) + "\n")
                spark.stdin.flush()
                theirs = answer(spark, errors.name)
                committed, uncommitted = answer(spark, errors.name), answer(spark, errors.name)
    assert committed == uncommitted == [2000, 2000, 0, 0]
    assert len(ours) == len(theirs) == 14
    for one, other in zip(ours, theirs, strict=True):
        text = other.partition(" SQLSTATE")[0].strip()
        assert "attribute" in text  # of all of them
        assert text in one


def answer(spark: subprocess.Popen[str], errors: str) -> list[str]:
    """The next line that the program prints for us."""
    assert spark.stdout is not None
    for line in spark.stdout:
        if line.startswith("["):
            found: list[str] = json.loads(line)
            return found
    raise AssertionError(Path(errors).read_text()[-3000:])
