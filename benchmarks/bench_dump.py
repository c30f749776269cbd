"""The dump of one segment at three depths: as a command beside the real tool, and in this process to text in memory.

The command's output goes to a file and is compared with the real tool's byte for byte.
"""

from __future__ import annotations

import filecmp
import io
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.commands import LOGSTORE, bare_python, kafka_dump_log, printed, run
from benchmarks.support.data import BATCH_SIZE, KIB, MIB, SEGMENT, scaled, steps, write_segment
from benchmarks.support.floors import copying, writing_in_parts
from benchmarks.support.measure import Growth, Measured
from logstore_tools.dump import run as dump_run

SIZE, SIZE_IN_PROCESS = scaled(256 * KIB, 256 * MIB), scaled(256 * KIB, 32 * MIB)
DEPTHS = {"batch level": (), "--deep-iteration": ("--deep-iteration",), "--print-data-log": ("--print-data-log",)}
IN_PROCESS = DEPTHS | {"--format json": ("--format", "json", "--print-data-log")}
ROUND_COUNTS = {"batch level": 3, "--deep-iteration": 2, "--print-data-log": 2}  # of those that take Kafka long
SMALL_SIZE = 10_000


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / SEGMENT
    write_segment(path, SIZE)
    return path


@pytest.mark.parametrize("depth", DEPTHS)
def test_dump_command(measured: Measured, segment: Path, depth: str, tmp_path: Path) -> None:
    argv, cwd = ["--files", SEGMENT, *DEPTHS[depth]], segment.parent
    ours, kafkas = tmp_path / "logstore.txt", tmp_path / "kafka.txt"
    run([*LOGSTORE, "dump", *argv], ours, cwd)
    printed_size = ours.stat().st_size
    measured(
        run,
        *([*LOGSTORE, "dump", *argv], ours, cwd),
        title=f"`logstore dump`, {SIZE / MIB:.4g} MiB, {depth}",
        size=SIZE,
        peers={"kafka-dump-log": kafka_dump_log(argv, kafkas, cwd)},
        floor=writing_in_parts(tmp_path / "floor", printed_size),
        reads=[segment],
        written_size=printed_size,
        rounds=ROUND_COUNTS[depth],
        hashed=lambda _: np.memmap(ours, np.uint8, "r"),
    )
    assert not kafkas.exists() or filecmp.cmp(ours, kafkas, shallow=False)


@pytest.mark.parametrize("depth", IN_PROCESS)
def test_dump_in_process(measured: Measured, depth: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_segment(tmp_path / SEGMENT, SIZE_IN_PROCESS)
    text = measured(dump_text, depth, size=SIZE_IN_PROCESS, floor=copying(len(dump_text(depth))))
    assert text.count(b"\n") > SIZE_IN_PROCESS // BATCH_SIZE


def dump_text(depth: str) -> bytes:
    """Return what the dump of the segment in the working directory prints."""
    stdout = io.BytesIO()
    assert dump_run(["--files", SEGMENT, *IN_PROCESS[depth]], stdout, io.StringIO()) == 0
    return stdout.getvalue()


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB))
def test_dump_by_size(measured: Measured, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_segment(tmp_path / SEGMENT, size)
    growth = Growth("bytes of a segment", "dump --print-data-log", size)
    title = f"dump in process, {size / MIB:.4g} MiB, --print-data-log"
    floor = copying(len(dump_text("--print-data-log")))
    assert len(measured(dump_text, "--print-data-log", title=title, size=size, floor=floor, growth=growth)) > size


def test_dump_small_file(measured: Measured, tmp_path: Path) -> None:
    write_segment(tmp_path / SEGMENT, SMALL_SIZE, batch_size=SMALL_SIZE // 3)
    argv = ["--files", SEGMENT, "--print-data-log"]
    kafkas = tmp_path / "kafka.txt"
    text = measured(
        lambda: printed([*LOGSTORE, "dump", *argv], tmp_path),
        title="`logstore dump`, 10 KB, --print-data-log, start to exit",
        size=SMALL_SIZE,
        peers={"kafka-dump-log": kafka_dump_log(argv, kafkas, tmp_path)},
        floor=bare_python(tmp_path),
        rounds=7,
    )
    assert len(text) > SMALL_SIZE
    assert not kafkas.exists() or text == kafkas.read_bytes()
