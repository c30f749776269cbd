"""Tables that are not for a terminal are the same with rich and without it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from logstore_tools import tables
from tests.naive.dice import Dice


def printed(columns: tuple[str, ...], rows: list[list[Any]], capsys: pytest.CaptureFixture[str]) -> str:
    tables.print_table(columns, rows)
    return capsys.readouterr().out


@pytest.mark.parametrize("seed", range(30))
def test_a_table_is_as_rich_prints_it(
    seed: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = Dice(seed)
    columns = tuple(dice.choose(["a", "partition", "log end offset"]) for _ in range(dice.between(1, 5)))
    values = [None, 0, -7, 123456789, "", "t-0", " two  words ", "a" * 70, True, 1.5, "[red]x[/]", ":smile:"]
    rows = [[dice.choose(values) for _ in columns] for _ in range(dice.between(0, 6))]
    plain = printed(columns, rows, capsys)
    monkeypatch.setattr(tables, "_is_plain", lambda columns, rows: False)
    assert plain == printed(columns, rows, capsys)
    assert plain.count("\n") == 1 + len(rows)


@pytest.mark.parametrize(
    ("value", "is_plain"), [("t-0", True), (None, True), ("\u4e16", False), ("a\nb", False), ("\t", False)]
)
def test_what_takes_other_room_is_left_to_rich(value: str | None, is_plain: bool) -> None:
    assert tables._is_plain(["a"], [[value]]) is is_plain


def test_rich_is_not_imported_for_a_pipe() -> None:
    script = "from logstore_tools.tables import print_table; print_table('ab', [(1, 'x')])"
    script = f"import sys; {script}; print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout == "a  b\n1  x\nFalse\n"
