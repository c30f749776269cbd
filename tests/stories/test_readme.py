"""The README does what it shows, and is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stories.pages import ROOT, run_page

README = ROOT / "README.md"


def test_the_readme_does_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # the rest: tests/spark/test_docs.py
    assert run_page(README, tmp_path, is_wanted=lambda text: "spark" not in text) == 2


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
