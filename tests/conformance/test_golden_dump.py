"""`logstore dump` prints of every golden directory what the real tool printed, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore_tools.dump.options import OWN_OPTIONS
from tests.conformance.beyond import DIFFERENCES, HELP, PATHS, difference
from tests.conformance.comparison import comparable_stdout, differences
from tests.conformance.dumping import answer, disagreement
from tests.golden.archive import NAMES, answers, read_newest, read_older, read_rows
from tests.support.sampling import sampled

LOGSTORE = Path(sys.executable).with_name("logstore")
ENVIRONMENT = {"PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}
ROWS_OF_THE_EXECUTABLE = 12
LINES_BEFORE_THE_READER_LEAVES = 3


@pytest.mark.parametrize("name", sampled(NAMES, NAMES[::2], pytest.mark.slow))
def test_dump_equals_the_real_tool(name: str, golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden(name))
    rows = [row for row in read_newest(name, answers(name)) if difference(row["argv"]) is None]
    problem = disagreement(rows + read_older(name, answers(name)))
    assert not problem, problem


def test_only_these_calls_differ_on_purpose() -> None:
    differing = [(row["argv"], difference(row["argv"])) for name in NAMES for row in read_rows(answers(name))]
    assert [(argv, found) for argv, found in differing if found is not None] == [
        (["--help"], HELP),
        (["--help", "--version", "--files", "x.log"], HELP),
        (["files", "x.log"], PATHS),
        (["--", "--files", "x.unknown"], PATHS),
        (["-"], PATHS),
    ]
    assert all(each.reason for each in DIFFERENCES)


@pytest.mark.parametrize("argv", [["--help"], ["--help", "--version", "--files", "x.log"]])
def test_help_is_kafkas_and_then_ours(argv: list[str]) -> None:
    row = next(row for row in read_rows(answers("demo")) if row["argv"] == argv)
    rc, stdout, stderr = answer(argv)
    assert (rc, stdout) == (row["rc"], row["stdout"])
    own = stderr.removeprefix(row["stderr"])
    assert own != stderr, "the help does not begin with Kafka's"
    assert all(f"--{option} " in own for option in OWN_OPTIONS)
    assert max(map(len, own.splitlines())) <= 80


@pytest.mark.parametrize("argv", [[], ["--print-data-log"]])
def test_calls_without_files_get_kafkas_answer_to_the_byte(argv: list[str]) -> None:
    row = next(row for row in read_rows(answers("demo")) if row["argv"] == argv)
    assert answer(argv) == (row["rc"], row["stdout"], row["stderr"])


def test_words_that_are_no_options_are_paths_when_files_is_absent(
    golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden("demo") / "orders-0")
    log = "00000000000000000000.log"
    assert answer([log]) == answer(["--files", log])
    assert answer([log, "nosuch"])[:2] == (2, "")  # before anything is written


@pytest.mark.slow
def test_the_executable_answers_as_the_library_does(golden: Callable[[str], Path]) -> None:
    rows = read_newest("demo", answers("demo"))
    for row in rows[:: len(rows) // ROWS_OF_THE_EXECUTABLE]:
        done = subprocess.run(
            [LOGSTORE, "dump", *row["argv"]], cwd=golden("demo"), env=ENVIRONMENT, capture_output=True, check=False
        )
        found = (done.returncode, done.stdout.decode(), done.stderr.decode())
        base = str(golden("demo"))
        masked = (found[0], found[1].replace(base, "@BASE@"), found[2].replace(base, "@BASE@"))
        assert differences(row["argv"], (row["rc"], row["stdout"], row["stderr"]), masked) == []


def test_a_reader_that_leaves_early_ends_it_quietly(golden: Callable[[str], Path]) -> None:
    log = "cluster-metadata-decoder/00000000000000000000.log"
    argv = ["--cluster-metadata-decoder", "--files", ",".join([log] * 20)]
    process = subprocess.Popen(
        [LOGSTORE, "dump", *argv],
        cwd=golden("schemas"),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    head = [process.stdout.readline().decode() for _ in range(LINES_BEFORE_THE_READER_LEAVES)]
    process.stdout.close()
    complaints = process.stderr.read().decode()
    process.stderr.close()
    process.wait()
    expected = next(row for row in read_rows(answers("schemas")) if row["argv"] == [argv[0], "--files", log])
    assert comparable_stdout(expected["stdout"]).startswith("".join(head))
    assert complaints == ""
