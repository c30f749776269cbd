"""How far a dump is: on a terminal, for large input, and gone at the end."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from logstore_tools.dump import command, jobs, run
from logstore_tools.dump.jobs import SIZE_MIN, Progress
from tests.support.encoder import Batch, Rec

LOG = "00000000000000000000.log"
REMOVED = "\r\033[K"


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class BinaryTerminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, to be set."""
    now = [100.0]
    monkeypatch.setattr(jobs, "monotonic_s", lambda: now[0])
    return now


def test_the_line_is_written_again_in_place(clock: list[float]) -> None:
    terminal = Terminal()
    shown = Progress(terminal, io.BytesIO(), 2**30)
    for percent in (25, 25, 49):
        shown.advance(2**30 * percent // 100)
        clock[0] += 1
    assert terminal.getvalue() == "".join(f"\rlogstore: {n:3} % of 1.00 GiB dumped" for n in (25, 50, 98))
    shown.clear()
    assert terminal.getvalue().endswith("98 % of 1.00 GiB dumped" + REMOVED)
    shown.clear()
    assert terminal.getvalue().count(REMOVED) == 1


def test_it_is_not_written_all_the_time(clock: list[float]) -> None:
    terminal = Terminal()
    shown = Progress(terminal, io.BytesIO(), SIZE_MIN)
    for _ in range(1000):
        shown.advance(1)
        clock[0] += jobs.INTERVAL_S / 100
    assert terminal.getvalue().count("\r") == 10


def test_more_than_all_is_all(clock: list[float]) -> None:
    terminal = Terminal()
    Progress(terminal, io.BytesIO(), SIZE_MIN).advance(3 * SIZE_MIN)
    assert terminal.getvalue().startswith("\rlogstore: 100 % ")


@pytest.mark.parametrize(
    ("stderr", "stdout", "size"),
    [
        (io.StringIO(), io.BytesIO(), 2**40),
        (Terminal(), BinaryTerminal(), 2**40),
        (Terminal(), io.BytesIO(), SIZE_MIN - 1),
    ],
    ids=["no terminal", "text goes to a terminal too", "small input"],
)
def test_nothing_is_shown(stderr: io.StringIO, stdout: io.BytesIO, size: int) -> None:
    shown = Progress(stderr, stdout, size)
    shown.advance(size)
    shown.clear()
    assert (stderr.getvalue(), stdout.getvalue()) == ("", b"")


def test_many_threads_may_tell_of_progress(clock: list[float]) -> None:
    terminal = Terminal()
    shown = Progress(terminal, io.BytesIO(), 4 * SIZE_MIN)
    threads = [
        threading.Thread(target=lambda: [shown.advance(SIZE_MIN // 1024) for _ in range(1024)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clock[0] += 1
    shown.advance(0)
    assert terminal.getvalue().endswith("\rlogstore: 100 % of 0.12 GiB dumped")


@pytest.fixture
def always_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "SIZE_MIN", 1)
    monkeypatch.setattr(jobs, "INTERVAL_S", 0.0)
    monkeypatch.setattr(command, "PARALLEL_SIZE_MIN", 0)


@pytest.mark.usefixtures("always_shown")
def test_a_dump_shows_it_beside_its_output_and_removes_it(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(Batch(5, [Rec()]).to_bytes())
    stdout, terminal = io.BytesIO(), Terminal()
    assert run(["--files", f"{tmp_path / LOG},x,{tmp_path / LOG}", "--deep-iteration"], stdout, terminal) == 0
    text = terminal.getvalue()
    shown, _, rest = text.rpartition(REMOVED)
    assert b"\r" not in stdout.getvalue()
    assert "dumped" in shown
    # lines stand where no progress is before them
    assert "dumpedIgnoring" not in text
    assert f"{REMOVED}Ignoring unknown file x\n" in text or text.startswith("Ignoring unknown file x\n")
    assert rest.endswith(f"Non-consecutive offsets in {tmp_path / LOG}\n  -1 is followed by 5\n")


@pytest.mark.usefixtures("always_shown")
def test_the_error_of_a_dump_stands_alone_behind_the_progress(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(Batch(0, [Rec()]).to_bytes())
    terminal = Terminal()
    assert run(["--files", f"{tmp_path / LOG},missing/0.log"], io.BytesIO(), terminal) == 1
    last = terminal.getvalue().rpartition(REMOVED)[2]
    assert last == 'Exception in thread "main" java.nio.file.NoSuchFileException: missing/0.log\n'
