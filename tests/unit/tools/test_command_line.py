"""The command line as a whole: its help, its version, and what it says of words that it does not know."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore import __version__
from logstore.config.kafka_version import NEWEST, V4_3, V4_4
from logstore_tools.commands import COMMANDS, logstore
from tests.support.golden import Golden

LOGSTORE = Path(sys.executable).with_name("logstore")


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"]])
def test_help_has_every_command_in_its_group(words: list[str]) -> None:
    result = CliRunner().invoke(logstore, words)
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        if heading := re.fullmatch(r"(\w+):", line):
            names = found.setdefault(heading[1], [])
        elif entry := re.match(r"  ([a-z]+)  ", line):
            names.append(entry[1])
    groups = list(dict.fromkeys(group for group, _, _ in COMMANDS.values()))
    assert found == {"Options": []} | {
        group: [name for name in COMMANDS if COMMANDS[name][0] == group] for group in groups
    }


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verfy"], "There is no command 'verfy'. Did you mean verify?"),
        (["xyz"], "There is no command 'xyz'. There are dump, segments, "),
        (["--vers"], "Did you mean '--version'?"),
        (["groups", "--fromat", "csv", "."], "Did you mean '--format'?"),
        (["txns", "lst", "."], "Did you mean 'list'?"),
        (["formats", "time_idx"], "Did you mean time_index?"),
    ],
)
def test_a_misspelled_word_gets_a_suggestion(words: list[str], told: str) -> None:
    result = CliRunner().invoke(logstore, words)
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_the_version_has_a_short_option() -> None:
    assert CliRunner().invoke(logstore, ["-V"]).stdout == f"logstore, version {__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("logstore se", {"segments"}),
        ("logstore groups --for", {"--format"}),
        ("logstore groups --format js", {"jsonl"}),
        ("logstore dump --pri", {"--print-data-log"}),
    ],
)
def test_the_shell_completes_words(words: str, expected: set[str]) -> None:
    count = words.count(" ")
    environment = {"_LOGSTORE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(count)}
    result = CliRunner().invoke(logstore, [], env=environment, prog_name="logstore")
    assert {line.partition(",")[2] for line in result.stdout.splitlines()} == expected


@pytest.mark.parametrize(
    "words",
    [["segments", "."], ["topics", ".", "--format", "csv"], ["formats", "batch"], ["--help"], ["audit", "--help"]],
    ids=" ".join,
)
def test_a_full_disk_is_told(words: list[str], golden: Golden) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [LOGSTORE, *words], cwd=golden("demo"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (
        1,
        "logstore: cannot write to standard output: No space left on device\n",
    )


def refused(code: str, stdout: Path | str = "/dev/null") -> tuple[int, str]:
    """Run `main` where the import of the commands does `code`; return the exit code and standard error."""
    program = (
        "import os, sys, types\n"
        "from logstore_tools import main\n"
        "module = types.ModuleType('logstore_tools.commands')\n"
        f"def logstore(prog_name):\n    {code}\n"
        "module.logstore = logstore\n"
        "sys.modules['logstore_tools.commands'] = module\n"
        "sys.argv = ['logstore']\n"
        "main.main()\n"
    )
    with Path(stdout).open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=out, stderr=subprocess.PIPE, text=True, check=False
        )
    return done.returncode, done.stderr


def test_only_an_error_of_standard_output_is_told_as_one() -> None:
    assert refused("os.pread(os.open('/proc/self/mem', os.O_RDONLY), 1, 0)") == (
        1,
        "logstore: Input/output error\n",
    )
    assert refused("open('nowhere')") == (1, "logstore: nowhere: No such file or directory\n")
    assert refused("raise OSError('no number')") == (1, "logstore: no number\n")
    full = (1, "logstore: cannot write to standard output: No space left on device\n")
    assert refused("print('x' * 1000); sys.stdout.flush()", "/dev/full") == full
    assert refused("sys.stdout.buffer.write(bytes(10**6))", "/dev/full") == full


@pytest.mark.parametrize("words", ["verify demo", "topics demo", "txns list demo --now 0", "dump demo/orders-0"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_changes_no_answer(words: str, closed: str, golden: Golden) -> None:
    """And no file that is read takes its number, so that what is written goes into no file of Kafka's."""
    argv = [LOGSTORE, *words.split()]
    cwd = golden("demo").parent
    whole, cut = (
        subprocess.run(["sh", "-c", f'"$@" {streams}', "sh", *argv], cwd=cwd, capture_output=True, check=False)
        for streams in ("", closed)
    )
    assert cut.returncode == whole.returncode
    assert cut.stdout == (b"" if " >" in f" {closed}" else whole.stdout)
    assert cut.stderr == (b"" if "2>" in closed else whole.stderr)
    assert whole.stdout != b""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("audit --explain transaction-hanging", b"\\u2026"),
        ("producers .", b"\\xfc"),
        ("producers . --format csv", b"\\xfc"),
    ],
)
def test_letters_that_the_encoding_lacks_are_escaped(words: str, shown: bytes, golden: Golden) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    argv = [LOGSTORE, *words.split()]
    assert shown in subprocess.run(argv, cwd=golden("demo"), env=environment, capture_output=True, check=True).stdout


MAIN = "from logstore_tools.main import main; main()"


def test_it_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__


def test_it_is_said() -> None:
    said = subprocess.run([sys.executable, "-c", MAIN, "--version"], capture_output=True, check=True, text=True).stdout
    assert said == f"logstore, version {__version__}\n"


def test_a_dump_behind_click_is_the_dump() -> None:
    for words, kafka in ([], NEWEST), (["--kafka-version", "4.3"], V4_3), (["--kafka-version", "4.4"], V4_4):
        result = CliRunner().invoke(logstore, ["dump", "--version", *words])
        assert (result.exit_code, result.output) == (0, f"{kafka.release}\n")


def test_doctor_says_what_each_package_of_an_extra_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel needs none of them, so none is missing."""

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    lines = CliRunner().invoke(logstore, ["doctor", "--format", "jsonl"]).stdout.splitlines()
    notes = {row["what"]: row["note"] for row in map(json.loads, lines)}
    assert notes["numpy"] == "missing: pip install numpy"
    for name in ("numba", "llvmlite", "pyspark", "pyarrow", "obstore"):
        assert notes[name].startswith("needed ")
