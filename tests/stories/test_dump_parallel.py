"""Many files at once print what they print one by one; a writer that fails, or a reader that leaves, ends it all."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore_tools.dump import command, output, run
from logstore_tools.endings import dump_program
from tests.conformance.beyond import difference
from tests.conformance.dumping import answer, disagreement
from tests.golden.archive import NAMES, answers, read_newest
from tests.support.dice import Dice
from tests.support.golden import Golden
from tests.support.sampling import sampled

LOGSTORE = Path(sys.executable).with_name("logstore")
ENVIRONMENT = {"PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}
SMALL_BUFFER_SIZE = 1000
ROWS_OF_A_DIRECTORY = 60
LISTS_OF_FILES = 6
FILES_MOST = 30


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.fixture
def in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the input; through buffers that are full all the time."""
    monkeypatch.setattr(command, "PARALLEL_SIZE_MIN", 0)
    monkeypatch.setattr(output, "BUFFER_SIZE", SMALL_BUFFER_SIZE)


@pytest.mark.usefixtures("in_workers")
@pytest.mark.parametrize("name", sampled(NAMES, NAMES[::3], pytest.mark.slow))
def test_it_is_still_what_the_real_tool_prints(name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden(name))
    rows = [row for row in read_newest(name, answers(name)) if difference(row["argv"]) is None]
    problem = disagreement(rows[:: len(rows) // ROWS_OF_A_DIRECTORY + 1])
    assert not problem, problem


@pytest.mark.parametrize("name", sampled([name for name in NAMES if name != "random"], NAMES[::3], pytest.mark.slow))
def test_files_in_any_order_print_as_one_by_one(name: str, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden(name))
    files = [str(path.relative_to(golden(name))) for path in sorted(golden(name).rglob("*")) if path.is_file()]
    dice = Dice(name)
    for turn in range(LISTS_OF_FILES):
        chosen = [dice.choose(files) for _ in range(dice.between(2, FILES_MOST))]
        argv = [*dice.choose(([], ["--print-data-log"], ["--format", "json", "--deep-iteration"])), *chosen]
        one_by_one = answer(argv)
        with monkeypatch.context() as patched:
            patched.setattr(command, "PARALLEL_SIZE_MIN", 0)
            patched.setattr(output, "BUFFER_SIZE", SMALL_BUFFER_SIZE * (1 + turn))
            assert answer(argv) == one_by_one, argv


@pytest.mark.usefixtures("in_workers")
def test_an_error_in_one_file_drops_the_files_behind_it_and_all_findings(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden("demo") / "orders-0")
    log = "00000000000000000000.log"
    rc, stdout, stderr = answer(["--files", f"meta,{log},x,missing/0.log,{log},y"])
    assert rc == 1
    assert stdout.endswith("Dumping x\nDumping missing/0.log\nLog starting offset: 0\n")
    assert stdout.count(f"Dumping {log}\n") == 1
    assert stderr == (
        "Ignoring unknown file meta\nIgnoring unknown file x\n"
        'Exception in thread "main" java.nio.file.NoSuchFileException: missing/0.log\n'
    )


class FailingStream(io.BytesIO):
    """Takes some writes, then none."""

    def __init__(self, error_number: int, write_count: int) -> None:
        super().__init__()
        self._error_number = error_number
        self._left_count = write_count

    def write(self, data: object) -> int:
        if self._left_count == 0:
            raise OSError(self._error_number, os.strerror(self._error_number))
        self._left_count -= 1
        return super().write(data)  # type: ignore[arg-type]


@pytest.mark.usefixtures("in_workers")
@pytest.mark.parametrize("write_count", [0, 1, 7])
@pytest.mark.parametrize(
    ("error_number", "kind"), [(errno.EPIPE, BrokenPipeError), (errno.ENOSPC, OSError), (errno.EIO, OSError)]
)
def test_a_write_that_fails_ends_all_workers(
    error_number: int, kind: type[OSError], write_count: int, golden: Golden
) -> None:
    stdout, stderr = FailingStream(error_number, write_count), io.StringIO()
    with pytest.raises(kind) as raised:
        run([str(golden("transactions")), "--print-data-log"], stdout, stderr)
    assert raised.value.errno == error_number
    assert len(stdout.getvalue()) <= write_count * SMALL_BUFFER_SIZE
    assert stderr.getvalue() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("argv", [["--version"], ["."], ["--print-data-log", *["."] * 40]])
def test_a_full_disk_is_one_clear_line(argv: list[str], golden: Golden) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [LOGSTORE, "dump", *argv],
            cwd=golden("demo"),
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode() == "logstore: cannot write to standard output: No space left on device\n"


def test_a_file_that_fails_is_not_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(argv: list[str], stdout: object, stderr: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "0.log")

    monkeypatch.setattr("logstore_tools.dump.run", fail)
    assert dump_program(["0.log"]) == 1
    assert capsys.readouterr().err == "logstore: 0.log: Input/output error\n"


@pytest.mark.parametrize("line_count", [1, 100])
def test_a_reader_that_leaves_in_the_middle_of_many_files_ends_it_quietly(line_count: int, golden: Golden) -> None:
    process = subprocess.Popen(
        [LOGSTORE, "dump", "--print-data-log", *["."] * 200],
        cwd=golden("transactions"),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    head = [process.stdout.readline() for _ in range(line_count)]
    process.stdout.close()
    complaints = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert complaints == b""
    assert head[0].startswith(b"Dumping ./")
