"""A command that is interrupted or terminated says so in a line, with the exit code that a shell gives."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docs.generators.rows import verbs
from tests.support.encoder import Batch, Rec
from tests.support.golden import Golden

MAIN = "from logstore_tools.main import main; main()"
SIGNALS = pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGTERM, 143, "logstore: terminated\n"), (signal.SIGINT, 130, "logstore: interrupted\n")],
    ids=["SIGTERM", "SIGINT"],
)
#: Python that forks for each call it is told of, which sends itself a signal when it opens a file of a directory, or
#: the one of a number that it opens to write
FORKING = """
import json, os, signal, sys
import logstore.audit.directory_audit, logstore.log.salvage.sample, logstore.store.opening.adoption
from logstore_tools import commands
from logstore_tools.main import main

for name in commands.COMMANDS:
    commands.logstore.get_command(None, name)  # imported once

def call(number, directory, writes, words):
    opened = []

    def look(event, arguments):
        nonlocal number
        if number is None or event != "open" or not isinstance(arguments[0], str):
            return
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        if os.path.abspath(arguments[0]).startswith(directory) and (not writes or flags & os.O_ACCMODE):
            opened.append(arguments[0])
            if len(opened) >= writes:
                to_send, number = number, None
                signal.raise_signal(to_send)

    os.chdir(directory)
    sys.argv = ["logstore", *words]
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"../{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.addaudithook(look)
    main()

for line in sys.stdin:
    if os.fork() == 0:
        call(*json.loads(line))
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
ABOUT_NO_DATA = [("formats",), ("doctor",)]
VERBS = {words: verb for words, verb in verbs() if words not in ABOUT_NO_DATA}
WRITING = [
    *((words, writes) for words in (("salvage",), ("repair",), ("sample",)) for writes in (1, 2, 4)),
    *((words, 1) for words in (("report",), ("recover",), ("import",), ("promote",))),
]


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


Call = Callable[[tuple[str, ...], int, int], tuple[int, str, str]]


@pytest.fixture(scope="module")
def forking() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.fixture
def directory(golden: Golden, tmp_path: Path) -> Path:
    shutil.copytree(golden("demo"), tmp_path / "all" / "data")
    for name in ("rescued", "repaired", "shown"):
        (tmp_path / "all" / name).mkdir()
    return tmp_path / "all"


@pytest.fixture
def signalled(forking: subprocess.Popen[str], directory: Path) -> Call:
    """Exit code and output of the example of a verb, which gets a signal when it opens a file."""

    def call(words: tuple[str, ...], number: int, writes: int) -> tuple[int, str, str]:
        text = VERBS[words].example.replace("/var/lib/kafka/data", str(directory / "data")).replace(" --dry-run", "")
        text = text.replace("/mnt/other/data", str(directory / "data")).replace("/mnt", str(directory))
        more = ["--out", "server.properties"] if words == ("promote",) else []
        assert forking.stdin is not None
        assert forking.stdout is not None
        forking.stdin.write(json.dumps([number, str(directory), writes, shlex.split(text)[1:] + more]) + "\n")
        forking.stdin.flush()
        code = int(forking.stdout.readline())
        return code, *((directory.parent / name).read_text() for name in ("stdout", "stderr"))

    return call


@SIGNALS
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_that_is_ended_says_so_and_leaves_nothing(
    words: tuple[str, ...], number: int, code: int, line: str, directory: Path, signalled: Call
) -> None:
    before = contents(directory)
    assert signalled(words, number, 0) == (code, "", line)
    assert contents(directory) == before


@SIGNALS
@pytest.mark.parametrize(("words", "writes"), WRITING, ids=str)
def test_a_verb_that_is_ended_where_it_writes_leaves_nothing_half_written(
    words: tuple[str, ...], writes: int, number: int, code: int, line: str, directory: Path, signalled: Call
) -> None:
    before = contents(directory)
    assert signalled(words, number, writes) == (code, "", line)
    assert contents(directory) == before


@SIGNALS
def test_a_dump_that_is_ended_says_so(number: int, code: int, line: str, tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(Batch(0, [Rec()]).to_bytes())
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "dump", "--follow", str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Dumping ")
        process.send_signal(number)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (code, line)
