"""`dump --follow` prints what is added to logs, segments that are rolled and partitions that are new."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.errors import DataDirectoryError
from logstore_tools.dump import command, run
from logstore_tools.dump.findings import Findings
from logstore_tools.dump.options import DumpOptions
from logstore_tools.dump.output import Output
from tests.support.encoder import Batch, Rec

LOGSTORE = Path(sys.executable).with_name("logstore")
FIRST, SECOND = (f"{offset:020}.log" for offset in (0, 2))


def batch(offset: int) -> bytes:
    return Batch(offset, [Rec(b"key-%d" % offset)]).to_bytes()


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / FIRST).write_bytes(batch(0))
    process = subprocess.Popen(
        [LOGSTORE, "dump", "--follow", "--print-data-log", "."],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


def lines_to(process: subprocess.Popen[str], key: str) -> list[str]:
    """What is printed up to the record with this key."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or f"key: {key}" not in lines[-1]:
        lines.append(process.stdout.readline().rstrip("\n"))
        assert lines[-1], process.stderr.read() if process.stderr else ""
    return lines


def test_batches_segments_and_partitions_are_printed_as_they_come(
    followed: subprocess.Popen[str], tmp_path: Path
) -> None:
    first = lines_to(followed, "key-0")
    assert first[:2] == [f"Dumping ./orders-0/{FIRST}", "Log starting offset: 0"]
    with (tmp_path / "orders-0" / FIRST).open("ab", buffering=0) as log:
        content = batch(1)
        log.write(content[:50])  # nothing is said of half a batch
        log.write(content[50:])
    assert [line.split(" ")[0] for line in lines_to(followed, "key-1")] == ["baseOffset:", "|"]
    (tmp_path / "orders-0" / SECOND).write_bytes(batch(2))
    assert lines_to(followed, "key-2")[:2] == [f"Dumping ./orders-0/{SECOND}", "Log starting offset: 2"]
    (tmp_path / "orders-1").mkdir()
    (tmp_path / "orders-1" / FIRST).write_bytes(batch(7))
    assert lines_to(followed, "key-7")[0] == f"Dumping ./orders-1/{FIRST}"
    (tmp_path / "orders-0" / FIRST).unlink()
    with (tmp_path / "orders-0" / SECOND).open("ab") as log:
        log.write(batch(3))
    assert lines_to(followed, "key-3")[0] == f"Dumping ./orders-0/{SECOND}"
    followed.send_signal(signal.SIGINT)
    _, told = followed.communicate(timeout=20)
    assert (followed.returncode, told) == (130, "logstore: interrupted\n")


def test_a_log_that_is_cut_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FIRST
    path.write_bytes(batch(0) + batch(1))
    looks = []

    def list_paths() -> list[str]:
        looks.append(path)
        if len(looks) == 2:
            os.truncate(path, len(batch(0)))
        return [str(path)]

    stdout = io.BytesIO()
    options = DumpOptions(["--follow", "--deep-iteration"])
    with pytest.raises(DataDirectoryError, match="was cut while it was followed"):
        command.follow(list_paths, options, Output.to_stream(stdout), stdout, Findings(print))
    assert stdout.getvalue().count(b"| offset") == 2


def test_a_log_that_was_deleted_and_comes_back_is_dumped_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    path.write_bytes(batch(0) + batch(1))
    steps = iter([lambda: None, path.unlink, lambda: path.write_bytes(batch(7))])

    def list_paths() -> list[str]:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()
        return [str(path)]

    stdout = io.BytesIO()
    options = DumpOptions(["--follow"])
    with pytest.raises(KeyboardInterrupt):
        command.follow(list_paths, options, Output.to_stream(stdout), stdout, Findings(print))
    lines = stdout.getvalue().decode().splitlines()
    assert [line.split(" ")[1] for line in lines if line.startswith("baseOffset: ")] == ["0", "1", "7"]
    assert lines[-2] == "Log starting offset: 0"


def test_a_parquet_file_has_an_end() -> None:
    stderr = io.StringIO()
    assert run(["--follow", "--format", "parquet", "x.log"], io.BytesIO(), stderr) == 2
    assert stderr.getvalue() == "logstore: --follow has no end, which a Parquet file needs; --format arrow\n"
