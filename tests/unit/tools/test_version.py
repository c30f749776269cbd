"""The version is said without asking the installed package, so it has to be held to it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

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
