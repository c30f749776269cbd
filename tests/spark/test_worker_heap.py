"""What Spark's workers import is as little as can be, and not looked through for garbage after each task."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.segment_files import write_partition

READS = """
import gc, sys
from tests.spark.planned import Planned
rows = Planned(sys.argv[1]).rows()
print(len(rows), gc.get_freeze_count() > 10_000)
"""


LOADS = """
import gc, sys
from spark_dumps.source import KafkaSegments
source = KafkaSegments({"path": sys.argv[1]})
print(len(source.schema()), gc.get_freeze_count() > 10_000)
"""
MORE = """
import gc, sys
from tests.spark.planned import Planned
planned = Planned(sys.argv[1])
planned.rows()
import numba
planned.rows()
asked = []
gc.get_freeze_count = lambda: asked.append(True)
planned.rows()
print(len(gc.get_objects()) < 10_000, len(asked))
"""
MODULES = """
import sys
from tests.spark.planned import Planned
planned = Planned(sys.argv[1], "value binary, offset long")
print(len(planned.rows()), *({"pyarrow.compute", "spark_dumps.sink", "spark_dumps.stream"} & sys.modules.keys()))
"""


def printed(program: str, path: Path, environment: dict[str, str] | None = None) -> list[str]:
    argv = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(("program", "count"), [(READS, 20), (LOADS, 7)], ids=["planned and read", "loaded"])
@pytest.mark.parametrize("is_worker", [True, False])
def test_only_a_worker_of_spark_leaves_out_what_is_imported(
    is_worker: bool, program: str, count: int, tmp_path: Path
) -> None:
    write_partition(tmp_path, "orders-0", [2])
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REUSE_WORKER"}
    if is_worker:
        environment["SPARK_REUSE_WORKER"] = "1"
    assert printed(program, tmp_path, environment) == [str(count), str(is_worker)]


def test_a_worker_leaves_out_what_its_first_task_imported(tmp_path: Path) -> None:
    write_partition(tmp_path, "orders-0", [2])
    assert printed(MORE, tmp_path, {**os.environ, "SPARK_REUSE_WORKER": "1"}) == ["True", "0"]


def test_a_worker_imports_only_what_reading_needs(tmp_path: Path) -> None:
    write_partition(tmp_path, "orders-0", [2])
    assert printed(MODULES, tmp_path) == ["20"]


WORK = {
    "reads": "from tests.spark.planned import Planned; next(Planned(sys.argv[1]).batches())",
    "looks for sources": "import pyspark_kafka_segments",
    "audits": "from spark_dumps.spread import _answers; _answers((), None)",
}
PIPES = """
for error in (BrokenPipeError("gone"), ValueError("wrong")):
    try:
        raise error
    except Exception:
        traceback.print_exc()  # as PySpark's daemon
print("fine", file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("work", "is_worker"), [*((work, True) for work in WORK), ("reads", False)])
def test_a_worker_says_nothing_of_a_pipe_that_spark_closed(work: str, is_worker: bool, tmp_path: Path) -> None:
    write_partition(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_REUSE_WORKER"}
    environment |= {"SPARK_REUSE_WORKER": "1"} if is_worker else {}
    argv = [sys.executable, "-c", f"import sys, traceback; {WORK[work]}{PIPES}", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr.count("BrokenPipeError: gone") == (not is_worker)
    assert done.stderr.count("Traceback") == 2 - is_worker
    assert "ValueError: wrong" in done.stderr
    assert "fine" in done.stderr
