"""Spark's workers collect garbage after each task: what they have imported is not looked through there again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.segment_files import write_partition

PROGRAM = """
import gc, sys
from tests.spark.planned import Planned
rows = Planned(sys.argv[1]).rows()
print(len(rows), gc.get_freeze_count() > 10_000)
"""


@pytest.mark.parametrize("is_worker", [True, False])
def test_only_a_worker_of_spark_leaves_out_what_is_imported(is_worker: bool, tmp_path: Path) -> None:
    write_partition(tmp_path, "orders-0", [2])
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REUSE_WORKER"}
    if is_worker:
        environment["SPARK_REUSE_WORKER"] = "1"
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["20", str(is_worker)]
