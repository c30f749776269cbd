"""A command that is interrupted or terminated says so in a line, with the exit code that a shell gives."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generators.rows import verbs
from tests.support.encoder import Batch, Rec
from tests.support.golden import Golden
from tests.support.signalled_commands import SignalledCommands

MAIN = "from logstore_tools.main import main; main()"
SIGNALS = pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGTERM, 143, "logstore: terminated\n"), (signal.SIGINT, 130, "logstore: interrupted\n")],
    ids=["SIGTERM", "SIGINT"],
)
ABOUT_NO_DATA = [("formats",), ("doctor",)]
VERBS = {words: verb for words, verb in verbs() if words not in ABOUT_NO_DATA}


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


@pytest.fixture(scope="module")
def commands() -> Iterator[SignalledCommands]:
    with SignalledCommands() as commands:
        yield commands


@pytest.fixture
def directory(golden: Golden, tmp_path: Path) -> Path:
    shutil.copytree(golden("demo"), tmp_path / "all" / "data")
    for name in ("rescued", "repaired", "shown"):
        (tmp_path / "all" / name).mkdir()
    return tmp_path / "all"


@SIGNALS
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_command_that_is_ended_where_it_reads_says_so_and_leaves_nothing(
    words: tuple[str, ...], number: int, code: int, line: str, directory: Path, commands: SignalledCommands
) -> None:
    text = VERBS[words].example.replace("/var/lib/kafka/data", str(directory / "data")).replace(" --dry-run", "")
    text = text.replace("/mnt/other/data", str(directory / "data")).replace("/mnt", str(directory))
    before = contents(directory)
    ended = commands.run(shlex.split(text)[1:], directory, number, opened=1)
    assert (ended.code, ended.stdout, ended.stderr) == (code, "", line)
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
        assert process.stdout.readline().startswith("Dumping ")
        process.send_signal(number)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (code, line)
