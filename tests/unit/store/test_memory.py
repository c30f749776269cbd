"""What a store with many partitions takes of memory: that of what was written to, not of what may be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOG_COUNT = 100
LOG_SIZE_MAX = 400_000  # bytes; a batch may have 1 MiB
SCRIPT = """
import sys
import logstore

def resident_size():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmRSS:"))

with logstore.open(sys.argv[1]) as store:
    store.create_topic("first")
    store.log("first", 0).append_records([b"value"])
    before = resident_size()
    store.create_topic("t", partitions=int(sys.argv[2]))
    for partition in range(int(sys.argv[2])):
        store.log("t", partition).append_records([b"value"])
    print(resident_size() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the memory of a process")
def test_a_log_that_is_written_to_takes_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "data"), str(LOG_COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < LOG_COUNT * LOG_SIZE_MAX
