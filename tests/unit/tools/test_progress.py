"""Progress is one line on a terminal, from the second second on, and gone at the end."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import logstore
from logstore.audit.directory_audit import audit_directory, follow_all
from logstore.audit.directory_verify import verify_directory
from logstore.audit.verify import verify_partition_directory
from logstore.disk.directory import list_data_directory
from logstore_tools import progress
from logstore_tools.dump import command, run
from logstore_tools.progress import ERASE, Progress, log_size
from logstore_tools.salvage.salvage import plan_salvage
from tests.support.audit_story_faults import clean
from tests.support.encoder import Batch, Rec
from tests.support.golden import Golden

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
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.usefixtures("at_once")
def test_bytes_are_told_as_a_share_with_their_rate() -> None:
    terminal = Terminal()
    with Progress("dump", lambda: 2**30, terminal) as shown:
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
        shown.advance(1)
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


@pytest.mark.parametrize("place", [None, 70, -1])
def test_readers_of_logs_tell_all_their_bytes(place: int | None, tmp_path: Path) -> None:
    root = str(clean().write(tmp_path / "data"))
    log = tmp_path / "data" / "orders-0" / LOG
    if place is not None:  # in the first batch, or in the last
        content = bytearray(log.read_bytes())
        content[place] ^= 1
        log.write_bytes(content)
        for path in tmp_path.rglob("*"):
            os.utime(path, (0, 0))  # what has just been written is read again
    told = Counter[str]()

    def advance_of(reader: str) -> Callable[[int], None]:
        return lambda size: told.update({reader: size})

    audit_directory(root, 0, partial(follow_all, advance=advance_of("audit")))
    verify_directory(root, advance=advance_of("verify"))
    for one in list_data_directory(root).partitions:
        verify_partition_directory(one.path, advance=advance_of("partitions"))
        plan_salvage(one.path, advance_of("salvage"))
    size = log_size(root)
    assert size == sum(log_size(one.path, is_partition=True) for one in list_data_directory(root).partitions) > 0
    assert told == dict.fromkeys(("audit", "verify", "partitions", "salvage"), size)


def test_what_a_tail_leaves_out_is_done_too(golden: Golden) -> None:
    told, root = Counter[str](), str(golden("demo"))
    logstore.segments(root, advance=lambda size: told.update({"segments": size}))
    logstore.segments(root, contents=True, advance=lambda size: told.update({"contents": size}))
    logstore.groups(root, advance=lambda size: told.update({"groups": size}))
    logstore.transactions(root, now_ms=0, advance=lambda size: told.update({"transactions": size}))
    logstore.producers(root, advance=lambda size: told.update({"producers": size}))
    assert told["segments"] == told["contents"] == log_size(root)
    assert told["transactions"] >= log_size(root) - log_size(f"{root}/__cluster_metadata-0", is_partition=True)
    assert min(told["groups"], told["producers"]) > 0


PATCHED = "from logstore_tools import progress; progress.DELAY_S = 0.0; "
MAIN = "from logstore_tools.main import main; main()"


@pytest.mark.slow
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
        ["import", "{demo}", "--dry-run", "--format", "jsonl"],
        ["promote", "{root}", "--dry-run", "--format", "jsonl"],
    ],
    ids=lambda words: words[0],
)
def test_a_verb_shows_it_on_a_terminal_and_its_output_stays(words: list[str], tmp_path: Path, golden: Golden) -> None:
    root, demo = clean().write(tmp_path / "data"), golden("demo")
    argv = [sys.executable, "-c", PATCHED + MAIN, *(word.format(root=root, demo=demo) for word in words)]
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
