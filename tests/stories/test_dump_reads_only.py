"""The dump looks only: it makes, changes and removes nothing. The real tool trims indexes and makes missing ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.dumping import answer
from tests.golden.archive import NAMES, answers, read_rows
from tests.support.golden import Golden
from tests.support.sampling import sampled

ROWS_OF_A_DIRECTORY = 150
DEAD_ENDS = ("", "--verify-index-only", "--index-sanity-check")

# Says what a program does to files, however it is privileged: every call of Python's that opens or changes one.
PROGRAM = """
import os, sys
from logstore_tools.dump import run

place = os.getcwd()
changes = []

def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        is_change = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    else:
        path = arguments[0] if arguments else None
        is_change = event in {"os.mkdir", "os.remove", "os.rename", "os.truncate", "os.utime", "os.chmod", "os.link"}
    if is_change and isinstance(path, str) and os.path.abspath(path).startswith(place):
        changes.append((event, path))

sys.addaudithook(watch)
with open(os.devnull, "wb") as stdout, open(os.devnull, "w") as stderr:
    for argv in (["."], [".", "--print-data-log", "--format", "json"], [".", "--verify-index-only", "--offset", "3"]):
        assert run(argv, stdout, stderr) == 0
open("control", "w").close()
print(changes)
"""


def state(directory: Path) -> dict[str, tuple[bytes | None, int, int]]:
    """Content, modification time and mode of everything below `directory`, by name."""
    return {
        str(path.relative_to(directory)): (
            path.read_bytes() if path.is_file() else None,
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in [directory, *directory.rglob("*")]
    }


@pytest.mark.parametrize("name", sampled(NAMES, NAMES[::3], pytest.mark.slow))
def test_all_calls_leave_a_golden_directory_as_it_was(
    name: str, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(shutil.copytree(golden(name), tmp_path / name))
    before = state(place)
    monkeypatch.chdir(place)
    rows = read_rows(answers(name))
    for number, row in enumerate(rows[:: len(rows) // ROWS_OF_A_DIRECTORY + 1]):
        answer([*([] if number % 3 else ["--format", "json"]), *row["argv"]])
    assert answer(["**/*"])[1].startswith("Dumping ")
    assert state(place) == before


@pytest.mark.parametrize("option", DEAD_ENDS)
@pytest.mark.parametrize("missing", [".index", ".timeindex", ".log"])
def test_the_dump_makes_no_missing_file(
    option: str, missing: str, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(shutil.copytree(golden("demo") / "orders-0", tmp_path / "orders-0"))
    stem = "00000000000000000000"
    (place / f"{stem}{missing}").unlink()
    before = state(place)
    monkeypatch.chdir(place)
    for suffix in (".timeindex", ".index"):
        rc, _, stderr = answer(["--files", f"{stem}{suffix}", *([option] if option else [])])
        assert rc == (1 if missing in (".log", suffix) or suffix == ".timeindex" else 0)
        assert stderr.count("\n") == rc
    assert state(place) == before


def test_an_index_of_odd_size_is_not_trimmed(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(shutil.copytree(golden("transactions"), tmp_path / "transactions"))
    indexes = [path for path in sorted(place.rglob("*index")) if path.stat().st_size > 12]
    for path in indexes:
        os.truncate(path, path.stat().st_size - 5)
    before = state(place)
    monkeypatch.chdir(place)
    for path in indexes:
        answer(["--files", str(path)])
    assert len(indexes) > 5
    assert state(place) == before


def test_no_file_is_opened_for_writing(golden: Golden, tmp_path: Path) -> None:
    """So a directory that may only be read is enough."""
    place = Path(shutil.copytree(golden("demo"), tmp_path / "demo"))
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=place, capture_output=True, text=True, check=True)
    assert done.stdout == "[('open', 'control')]\n"
    assert done.stderr == ""
