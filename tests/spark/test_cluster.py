"""The data source on a standalone cluster of two workers, as on a machine of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.errors import UsageError
from spark_dumps.session import check_java
from tests.spark.segment_files import write_partition
from tests.spark.standalone import QUICK_START, cluster
from tests.support.judges import skip_without_judge

PROGRAM = """
import json, os, sys
import spark_dumps

master, path, java_options = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": java_options,
    "spark.executor.extraJavaOptions": java_options,
    "spark.sql.shuffle.partitions": "1",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    "spark.locality.wait": "0",
    "spark.cores.max": "2",
}
spark = spark_dumps.session(master, settings)
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

pytestmark = pytest.mark.long


@pytest.fixture
def master(tmp_path: Path) -> object:
    try:
        check_java()
    except UsageError as unavailable:
        skip_without_judge(f"no Spark: {unavailable}")
    return cluster(tmp_path, 2)


def test_two_workers_share_the_work(master: object, tmp_path: Path) -> None:
    write_partition(tmp_path / "data", "orders-0", [200])
    with master as address:  # type: ignore[attr-defined]
        argv = [sys.executable, "-c", PROGRAM, address, str(tmp_path / "data"), QUICK_START]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    row, parent_count, executor_count, copied_count = json.loads(done.stdout.splitlines()[-1])
    assert row == [2000, 2000 * 1999 // 2, 2000 * 48]
    assert parent_count == 2
    assert executor_count == 2
    assert copied_count == 2000
