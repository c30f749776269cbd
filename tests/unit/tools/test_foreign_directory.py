"""Verbs on a directory of the system: one line that says so, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore_tools.commands import logstore as command

FILES = (
    "fstab",
    "hosts",
    "apt/sources.list",
    "dbus-1/system.conf",
    "dbus-1/session.d/one.conf",
    "python-3/debian_config",
)
VERBS = ("verify", "audit", "topics", "groups", "segments", "producers", "txns list", "report -o page.html", "promote")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory such as `/etc`: files, links that lead out, and directories, of which some end in a number."""
    root = tmp_path / "etc"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (tmp_path / "zone").write_text("x")
    (root / "localtime").symlink_to(tmp_path / "zone")
    (root / "gtk-2").mkdir()
    return root


@pytest.mark.parametrize("verb", VERBS)
def test_a_directory_of_the_system_is_refused_in_one_line(
    verb: str, foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    told = CliRunner().invoke(command, [*verb.split(), str(foreign)], catch_exceptions=False)
    _, _, error = told.stderr.partition("Error: ")
    expected = f"This is not a Kafka data directory: no meta.properties, no partition; at {foreign}\n"
    assert (told.exit_code, told.stdout, error) == (2, "", expected)
    assert sorted(tmp_path.rglob("*")) == before


def test_one_file_of_kafkas_makes_it_a_data_directory(foreign: Path) -> None:
    """What is not Kafka's in it is found then."""
    (foreign / "dbus-1" / f"{0:020d}.log").touch()
    told = CliRunner().invoke(command, ["verify", str(foreign)], catch_exceptions=False)
    assert (told.exit_code, "directory-entry" in told.stdout) == (1, True), told.output
