"""Progress is one line on a terminal, from the second second on, and gone at the end."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore_tools import progress
from logstore_tools.dump import command, run
from logstore_tools.progress import ERASE, Progress
from tests.support.audit_story_faults import clean
from tests.support.encoder import Batch, Rec

LOG = "00000000000000000000.log"


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second is waited for."""
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    monkeypatch.setattr(progress, "INTERVAL_S", 0.001)


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.usefixtures("at_once")
def test_partitions_are_counted_in_a_line_that_goes() -> None:
    terminal = Terminal()
    with Progress("audit", stream=terminal) as shown:
        partitions = shown.each(["orders-0", "orders-1"])
        next(partitions)
        wait_for(lambda: f"{ERASE}logstore audit: 0 of 2 partitions, 0 s" in terminal.getvalue())
        next(partitions)
        wait_for(lambda: f"{ERASE}logstore audit: 1 of 2 partitions, 0 s" in terminal.getvalue())
        assert list(partitions) == []
        for _ in shown.each(["orders-0"]):  # read again
            wait_for(lambda: "logstore audit: 2 of 3 partitions, 0 s" in terminal.getvalue())
    assert terminal.getvalue().endswith(f"s{ERASE}")
    assert "\n" not in terminal.getvalue()


@pytest.mark.usefixtures("at_once")
def test_bytes_are_told_as_a_share_with_their_rate() -> None:
    terminal = Terminal()
    with Progress("dump", 2**30, terminal) as shown:
        threads = [threading.Thread(target=lambda: [shown.advance(2**15) for _ in range(2**12)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_for(lambda: "logstore dump: 50 % of 1.00 GiB, " in terminal.getvalue())
        shown.advance(2**40)
        wait_for(lambda: "logstore dump: 100 % of 1.00 GiB, " in terminal.getvalue())
    assert terminal.getvalue().endswith(f" MiB/s{ERASE}")


@pytest.mark.usefixtures("at_once")
def test_without_counts_the_time_is_a_sign_of_life_and_never_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "12")
    with Progress("salvage", stream=terminal):
        wait_for(lambda: "logstore sa" in terminal.getvalue())
    assert "logstore sal" not in terminal.getvalue()


def test_what_takes_less_than_a_second_shows_nothing() -> None:
    terminal = Terminal()
    with Progress("audit", stream=terminal) as shown:
        assert list(shown.each([1, 2])) == [1, 2]
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("at_once")
def test_nothing_is_shown_where_standard_error_is_no_terminal() -> None:
    stream, count = io.StringIO(), threading.active_count()
    with Progress("audit", stream=stream):
        assert threading.active_count() == count
        time.sleep(0.01)
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("at_once")
def test_the_line_is_gone_when_an_error_is_told() -> None:
    terminal = Terminal()

    def fail() -> None:
        with Progress("recover", stream=terminal):
            wait_for(lambda: "recover" in terminal.getvalue())
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert terminal.getvalue().endswith(ERASE)


PATCHED = "from logstore_tools import progress; progress.DELAY_S = 0.0; "
MAIN = "from logstore_tools.main import main; main()"


@pytest.mark.parametrize(
    "words",
    [
        ["audit", "{root}", "--format", "jsonl"],
        ["verify", "{root}", "--format", "jsonl"],
        ["verify", "{root}/orders-0", "{root}/orders-1", "--format", "jsonl"],
        ["report", "{root}", "-o", "{root}.html"],
        ["salvage", "{root}/orders-0", "--format", "jsonl"],
        ["repair", "{root}/orders-0", "--format", "jsonl"],
        ["recover", "{root}/orders-0", "--dry-run", "--format", "jsonl"],
    ],
    ids=lambda words: words[0],
)
def test_a_verb_shows_it_on_a_terminal_and_its_output_stays(words: list[str], tmp_path: Path) -> None:
    root = clean().write(tmp_path / "data")
    argv = [sys.executable, "-c", PATCHED + MAIN, *(word.format(root=root) for word in words)]
    piped = subprocess.run(argv, capture_output=True, check=False)
    terminal, end = pty.openpty()
    shown = subprocess.run(argv, stdout=subprocess.PIPE, stderr=end, check=False)
    os.close(end)
    text = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert (shown.returncode, shown.stdout) == (piped.returncode, piped.stdout)
    assert piped.stderr == b""
    assert f"logstore {words[0]}: " in text
    assert text.endswith(ERASE)


@pytest.fixture
def in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PARALLEL_SIZE_MIN", 0)


@pytest.mark.usefixtures("at_once", "in_workers")
def test_a_dump_into_a_file_shows_it_and_removes_it_before_each_line(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(Batch(5, [Rec()]).to_bytes())
    terminal = Terminal()
    with open(tmp_path / "out", "wb") as stdout:
        assert run(["--files", f"{tmp_path / LOG},x,{tmp_path / LOG}", "--deep-iteration"], stdout, terminal) == 0
    *_, rest = terminal.getvalue().rpartition(ERASE)
    assert b"\r" not in (tmp_path / "out").read_bytes()
    assert "sIgnoring" not in terminal.getvalue()
    assert "Ignoring unknown file x\n" in terminal.getvalue()
    assert rest.endswith(f"Non-consecutive offsets in {tmp_path / LOG}\n  -1 is followed by 5\n")


@pytest.mark.usefixtures("at_once", "in_workers")
def test_the_error_of_a_dump_stands_alone_behind_the_progress(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(Batch(0, [Rec()]).to_bytes())
    terminal = Terminal()
    with open(tmp_path / "out", "wb") as stdout:
        assert run(["--files", f"{tmp_path / LOG},missing/0.log"], stdout, terminal) == 1
    last = terminal.getvalue().rpartition(ERASE)[2]
    assert last == 'Exception in thread "main" java.nio.file.NoSuchFileException: missing/0.log\n'


@pytest.mark.usefixtures("at_once", "in_workers")
def test_a_dump_into_a_pipe_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LOG).write_bytes(Batch(0, [Rec()]).to_bytes())
    terminal, (reading, writing) = Terminal(), os.pipe()
    threads: list[object] = []
    monkeypatch.setattr(progress.Progress, "_run", lambda one: threads.append(one))
    with open(writing, "wb") as stdout:
        assert run(["--files", str(tmp_path / LOG)], stdout, terminal) == 0
    os.close(reading)
    assert run(["--files", str(tmp_path / LOG)], io.BytesIO(), terminal) == 0
    assert (terminal.getvalue(), threads) == ("", [])
