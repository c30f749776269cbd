"""The README does what it shows, and is short."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stories.pages import ROOT, run_page
from tests.support.golden import Golden

README = ROOT / "README.md"


def test_the_readme_does_what_it_shows(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = shutil.copytree(golden("demo"), tmp_path / "demo")
    monkeypatch.chdir(place)
    assert (
        run_page(README, place, is_wanted=lambda text: "spark" not in text) == 2
    )  # the rest: tests/spark/test_docs.py


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 110


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    commands = re.findall(r"^    make (\S+)", README.read_text(), re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert commands == ["demo", "test"]
    assert set(commands) <= set(targets)


def test_the_demo_shows_a_real_directory() -> None:
    done = subprocess.run(
        [sys.executable, "tests/stories/demo.py"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    assert "endTxnMarker: ABORT" in done.stdout
    assert "Try next" in done.stdout
