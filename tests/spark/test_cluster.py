"""The data source on a standalone cluster of two workers, as on a machine of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.segment_files import write_partition
from tests.spark.standalone import SETTINGS, cluster, java_or_skip
from tests.support.judges import skip_without_judge

PROGRAM = """
import json, os, sys
import spark_dumps

master, path, settings = sys.argv[1:]
spark = spark_dumps.session(master, json.loads(settings))
frame = spark.read.format("kafka_segments").option("minPartitions", 8).load(path)
row = frame.selectExpr("count(*)", "sum(offset)", "sum(length(value))").first()
parents = frame.rdd.mapPartitions(lambda rows: [os.getppid()]).collect()
writer = frame.select("key", "value").write.format("kafka_segments").mode("append")
writer.option("topic", "copy").option("partitions", 2).save(path + "-copy")
copied = spark.read.format("kafka_segments").option("isolation_level", "read_committed").load(path + "-copy").count()
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print(json.dumps([list(row), len(set(parents)), executors, copied]))
spark.stop()
"""

BOTH_WORKERS = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}

pytestmark = pytest.mark.long


@pytest.fixture
def master(tmp_path: Path) -> object:
    java_or_skip()
    return cluster(tmp_path, 2)


def test_two_workers_share_the_work(master: object, tmp_path: Path) -> None:
    write_partition(tmp_path / "data", "orders-0", [200])
    with master as address:  # type: ignore[attr-defined]
        settings = json.dumps({**SETTINGS, **BOTH_WORKERS})
        argv = [sys.executable, "-c", PROGRAM, address, str(tmp_path / "data"), settings]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    row, parent_count, executor_count, copied_count = json.loads(done.stdout.splitlines()[-1])
    assert row == [2000, 2000 * 1999 // 2, 2000 * 48]
    assert parent_count == 2
    assert executor_count == 2
    assert copied_count == 2000


READS = """
import json, sys
import spark_dumps

master, path, settings = sys.argv[1:]
spark = spark_dumps.session(master, json.loads(settings))
for table in ("records", "findings", "topics"):
    try:
        print(table, spark.read.format("kafka_segments").option("table", table).load(path).count())
    except Exception as error:
        print(table, next(line for line in str(error).splitlines() if "does not see" in line))
try:
    spark_dumps.session(master)
    from spark_dumps.session import audit_with_spark
    print("audit", audit_with_spark(master, path, 0).findings)
except Exception as error:
    print("audit", error)
spark.stop()
"""


def test_workers_that_do_not_see_the_directory_fail_every_query(tmp_path: Path) -> None:
    java_or_skip()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        skip_without_judge("no mounts of one's own: needs the rights of root")
    path = tmp_path / "data"
    write_partition(path, "orders-0")
    with cluster(tmp_path, 1, hidden=path) as address:
        argv = [sys.executable, "-c", READS, address, str(path), json.dumps(SETTINGS)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert set(told) >= {"records", "findings", "topics", "audit"}
    for table in ("records", "findings", "topics", "audit"):
        assert f"does not see {path}/orders-0" in told[table]
        assert "(driver listed " in told[table]
