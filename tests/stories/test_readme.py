"""Every command and every program of the README does what the README shows."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logstore.errors import UsageError
from spark_dumps.session import check_java, check_pyspark
from tests.stories.pages import pattern
from tests.support.judges import skip_without_judge

ROOT = Path(__file__).parents[2]
LOGSTORE = Path(sys.executable).with_name("logstore")
README = (ROOT / "README.md").read_text()
CONSOLE_BLOCKS = re.findall(r"```console\n\$ (.*?)\n(.*?)```", README, re.DOTALL)
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def skip_without_spark(text: str) -> None:
    """Skip what names Spark where it cannot run, with what is missing."""
    if "spark" in text:
        try:
            check_pyspark()
            check_java()
        except UsageError as unavailable:
            skip_without_judge(f"no Spark: {unavailable}")


@pytest.fixture
def ends_spark() -> Iterator[None]:
    """No session outlives the program that started it."""
    yield
    if "pyspark" in sys.modules:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()


@pytest.mark.parametrize(("command", "shown"), CONSOLE_BLOCKS, ids=[command for command, _ in CONSOLE_BLOCKS])
def test_commands_print_what_is_shown(command: str, shown: str, golden: Callable[[str], Path], tmp_path: Path) -> None:
    skip_without_spark(command)
    place = shutil.copytree(golden("demo"), tmp_path / "demo")
    words = shlex.split(command)
    assert words[0] == "logstore"
    done = subprocess.run([LOGSTORE, *words[1:]], cwd=place, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0
    assert re.fullmatch(pattern(shown), done.stdout), done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.usefixtures("ends_spark")
def test_programs_run(
    program: str, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_spark(program)
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
