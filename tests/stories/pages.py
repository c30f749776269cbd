"""Pages of documentation that are run: programs and commands in their order, in one directory, with what they print."""

from __future__ import annotations

import linecache
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def pattern(shown: str) -> str:
    """What is shown, with `...` for anything: any lines when it stands alone, else the rest of a line."""
    lines = shown.rstrip("\n").split("\n")
    parts = [r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in lines]
    return "".join(parts)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """The code blocks of a page: language, title, text; those of language `text` are for the eye alone."""
    return [block for block in _BLOCK.findall(page.read_text()) if block[0] != "text"]


def run_page(page: Path, place: Path, *, is_wanted: Callable[[str], bool] = lambda text: True) -> int:
    """Do what `page` does, in `place`, which is the working directory; how many programs and commands that were.

    Programs share their names; one with a title is a file, for the commands below it. Commands are a shell's, with this
    Python's `logstore` and `python` on the path; each exits with 0 unless `echo $?` comes next.

    Args:
        is_wanted: whether to do a block, by its text.
    """
    names: dict[str, object] = {}
    count = 0
    for kind, title, text in blocks(page):
        if not is_wanted(text):
            continue
        if title:
            (place / title).write_text(text)
        elif kind == "python":
            name = f"{page.name}, program {count}"
            linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # for failures to quote
            exec(compile(text, name, "exec"), names)
            count += 1
        else:
            assert kind == "console", kind
            count += sum(1 for _ in _run_commands(text, place))
    return count


def _run_commands(text: str, place: Path) -> Iterator[str]:
    assert text.startswith("$ ")
    found = _COMMAND.findall(text)
    followers = [command for command, _ in found[1:]] + [""]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    status = 0
    for (command, shown), next_command in zip(found, followers, strict=True):
        done = subprocess.run(
            ["bash", "-c", f"(exit {status})\n{command}"],
            cwd=place,
            env={**os.environ, "PATH": path},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        status = done.returncode
        assert next_command == "echo $?" or status == 0, (command, done.stdout, done.stderr)
        assert re.fullmatch(pattern(shown) if shown.strip() else "", done.stdout), (command, done.stdout, done.stderr)
        yield command
