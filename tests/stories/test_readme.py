"""Every command and every program of the README does what the README shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stories.pages import pattern

ROOT = Path(__file__).parents[2]
LOGSTORE = Path(sys.executable).with_name("logstore")
README = (ROOT / "README.md").read_text()
CONSOLE_BLOCKS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", README, re.DOTALL)
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), CONSOLE_BLOCKS, ids=[command for command, _ in CONSOLE_BLOCKS])
def test_commands_print_what_is_shown(command: str, shown: str, golden: Callable[[str], Path], tmp_path: Path) -> None:
    place = shutil.copytree(golden("demo"), tmp_path / "demo")
    words = shlex.split(command)
    assert words[0] == "logstore"
    done = subprocess.run([LOGSTORE, *words[1:]], cwd=place, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    assert re.fullmatch(pattern(shown), done.stdout), done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(
    program: str, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(golden("demo"), tmp_path / "demo"))
    names: dict[str, object] = {}
    exec(program, names)
    assert "\nassert " in program or " assert " in program, "a program that does not say what it comes to"


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    commands = re.findall(r"^    make (\S+)", README, re.MULTILINE)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert commands == ["demo", "test"]
    assert set(commands) <= set(targets)


def test_the_demo_shows_a_real_directory() -> None:
    done = subprocess.run(
        [sys.executable, "tests/stories/demo.py"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    assert "endTxnMarker: ABORT" in done.stdout
    assert "Try next" in done.stdout
