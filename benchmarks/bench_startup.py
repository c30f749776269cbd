"""From start to exit: the library imported, the command asked for its version, 10 KB dumped beside the real tool."""

from __future__ import annotations

import filecmp
import sys
from pathlib import Path

import pytest

from benchmarks.floors import Floor
from benchmarks.measured import Measured
from benchmarks.peers.kafka_dump_log import kafka_dump_log
from benchmarks.peers.processes import LOGSTORE, run
from benchmarks.segments import write_segment

SEGMENT = "00000000000000000000.log"
SMALL_SIZE = 10_000


def bare_python(tmp_path: Path) -> Floor:
    """Python that starts and ends."""
    return Floor("bare Python", lambda: run([sys.executable, "-c", "pass"], tmp_path / "python.txt", tmp_path).wall_s)


@pytest.mark.parametrize("module", ["logstore", "logstore_tools.main"])
def test_import(measured: Measured, tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", f"import {module}; print({module}.__name__)"]

    def start() -> bytes:
        run(command, tmp_path / "ours.txt", tmp_path)
        return (tmp_path / "ours.txt").read_bytes()

    said = measured(start, title=f"start with `import {module}`", floor=bare_python(tmp_path), rounds=7)
    assert said == f"{module}\n".encode()


def test_version(measured: Measured, tmp_path: Path) -> None:
    def start() -> bytes:
        run([*LOGSTORE, "--version"], tmp_path / "ours.txt", tmp_path)
        return (tmp_path / "ours.txt").read_bytes()

    assert measured(start, title="`logstore --version`", floor=bare_python(tmp_path), rounds=7).startswith(b"logstore")


def test_dump_of_a_small_file(measured: Measured, tmp_path: Path) -> None:
    write_segment(tmp_path / SEGMENT, SMALL_SIZE, batch_size=SMALL_SIZE // 3)
    argv = ["--files", SEGMENT, "--print-data-log"]
    ours, kafkas = tmp_path / "logstore.txt", tmp_path / "kafka.txt"

    def start() -> bytes:
        run([*LOGSTORE, "dump", *argv], ours, tmp_path)
        return ours.read_bytes()

    text = measured(
        start,
        title="`logstore dump`, 10 KB, --print-data-log, start to exit",
        size=SMALL_SIZE,
        peers={"kafka-dump-log": kafka_dump_log(argv, kafkas, tmp_path)},
        floor=bare_python(tmp_path),
        rounds=7,
    )
    assert len(text) > SMALL_SIZE
    assert not kafkas.exists() or filecmp.cmp(ours, kafkas, shallow=False)
