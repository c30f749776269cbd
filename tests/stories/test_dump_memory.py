"""A dump of a large log needs little memory: the file's pages stay the page cache's, gaps are kept small.

`LOGSTORE_LARGE=1` measures larger logs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.support.data import write_segment
from tests.support.encoder import Batch, Rec, record_bytes

MIB = 2**20
IS_LARGE = os.environ.get("LOGSTORE_LARGE", "0") not in ("", "0")
SEGMENT_SIZE = (1024 if IS_LARGE else 300) * MIB
GAP_COUNT = 10_000_000 if IS_LARGE else 2_000_000
GAPS_A_BATCH = 5000
PROGRAM = """
import sys
from logstore_tools.dump import run
with open("/dev/null", "wb") as stdout, open("/dev/null", "w") as stderr:
    code = run(sys.argv[1:], stdout, stderr)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(code, int(peak.split()[1]) * 1024)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


def peak_of(*argv: str) -> int:
    """Bytes of memory that the dump needed at most, those of the interpreter and of mapped pages included."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=True)
    code, size = map(int, done.stdout.split())
    assert code == 0
    return size


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "00000000000000000000.log"
    assert write_segment(path, SEGMENT_SIZE, value_size=4000) > 50_000
    return path


@pytest.mark.parametrize("options", [[], ["--print-data-log"], ["--print-data-log", "--offset", "5000:6000"]])
def test_a_large_segment_takes_no_memory_of_its_own(options: list[str], segment: Path) -> None:
    assert peak_of("--files", str(segment), *options) < 250 * MIB


@pytest.mark.long
def test_a_log_with_a_gap_at_every_record(tmp_path: Path) -> None:
    stream = b"".join(record_bytes(Rec(offset_delta=2 * i)) for i in range(GAPS_A_BATCH))
    batch = Batch(0, range(GAPS_A_BATCH), 2 * GAPS_A_BATCH - 2, stream=stream).to_bytes()
    path = tmp_path / "00000000000000000000.log"
    with path.open("wb") as log:
        for number in range(GAP_COUNT // GAPS_A_BATCH):
            log.write((1 + 2 * GAPS_A_BATCH * number).to_bytes(8, "big") + batch[8:])
    assert peak_of("--files", str(path), "--deep-iteration") < 250 * MIB
    few = peak_of("--files", str(path), "--deep-iteration", "--max-bytes", str(len(batch)))
    assert peak_of("--files", str(path), "--deep-iteration") - few < 60 * MIB
