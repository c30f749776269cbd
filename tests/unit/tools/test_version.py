"""The version is said without asking the installed package, so it has to be held to it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore import __version__
from logstore.config.kafka_version import NEWEST, V4_3, V4_4
from logstore_tools.commands import logstore

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
