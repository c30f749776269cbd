"""A task needs little memory, whatever the size of its segment: one segment read whole, in one task.

`LOGSTORE_LARGE=1` reads a larger one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.support.data import write_segment
from tests.support.sampling import sampled

MIB = 2**20
IS_LARGE = os.environ.get("LOGSTORE_LARGE", "0") not in ("", "0")
SEGMENT_SIZE = (2000 if IS_LARGE else 300) * MIB
PROGRAM = """
import sys
from tests.spark.planned import Planned
planned = Planned(sys.argv[1], sys.argv[2] or None)
(segment,) = {one.path for task in planned.tasks for one in task.slices}
count = sum(batch.num_rows for batch in planned.batches())
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(count, int(peak.split()[1]) * 1024)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


@pytest.mark.parametrize("schema", sampled(("", "value binary"), ("value binary",)))
def test_a_large_segment_takes_no_memory_of_its_own(schema: str, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    count = write_segment(tmp_path / "orders-0" / "00000000000000000000.log", SEGMENT_SIZE, value_size=1000)
    argv = [sys.executable, "-c", PROGRAM, str(tmp_path), schema]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found, peak = map(int, done.stdout.split())
    assert found == count > 100_000
    assert peak < 256 * MIB
