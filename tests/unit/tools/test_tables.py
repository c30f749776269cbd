"""Tables for people: lined up, whole, quick, and without what a terminal would obey."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from logstore_tools import tables
from tests.support.dice import Dice

VALUES = [None, 0, -7, 123456789, "", "t-0", " two  words ", "a" * 70, True, 1.5, "[red]x[/]", ":smile:", "世界", "é≥"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(columns: tuple[str, ...], rows: list[list[Any]], capsys: pytest.CaptureFixture[str]) -> str:
    tables.print_table(columns, rows)
    return capsys.readouterr().out


def printed_by_rich(columns: tuple[str, ...], rows: list[list[Any]]) -> str:
    file = io.StringIO()
    table = Table(box=None, pad_edge=False)
    for index, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[index], int | None) for row in rows)
        table.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text("-" if value is None else str(value)) for value in row))
    Console(file=file, width=100_000, highlight=False).print(table)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


@pytest.mark.parametrize("seed", range(30))
def test_a_table_is_as_rich_prints_it(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    dice = Dice(seed)
    columns = tuple(dice.choose(["a", "partition", "log end offset"]) for _ in range(dice.between(1, 5)))
    rows = [[dice.choose(VALUES) for _ in columns] for _ in range(dice.between(0, 6))]
    found = printed(columns, rows, capsys)
    assert found == printed_by_rich(columns, rows)
    assert found.count("\n") == 1 + len(rows)


def test_control_characters_are_escaped_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [["two\nlines", 1], ["\x1b[31mred\x9b", 22], ["\u202eright to left", 3], ["\udcff", 4]]
    escaped = [r"two\nlines", r"\x1b[31mred\x9b", r"\u202eright to left", r"\udcff"]
    expected = [("name", "n"), *((text, row[1]) for text, row in zip(escaped, rows, strict=True))]
    assert printed(("name", "n"), rows, capsys).splitlines() == [
        f"{text:<19}  {number:>2}" for text, number in expected
    ]


def test_a_narrow_terminal_gets_a_line_for_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables.shutil, "get_terminal_size", lambda **_: os.terminal_size((20, 24)))
    rows = [["t-0", "a long sentence, not broken"], ["t-1", None]]
    for columns, expected in [
        (("a", "b"), "a  t-0\nb  a long sentence, not broken\n\na  t-1\nb  -\n\n"),
        (("a", "words"), "a      t-0\nwords  a long sentence, not broken\n\na      t-1\nwords  -\n\n"),
    ]:
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        tables.print_table(columns, rows)
        assert terminal.getvalue() == expected
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    tables.print_table(("a", "b"), [["t-0", 7]])
    assert terminal.getvalue() == "a    b\nt-0  7\n"


class Counted:
    """A value that knows how often its text was asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __str__(self) -> str:
        self.count += 1
        return "text"


def test_each_cell_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of many rows takes their time, and not its square: 100,000 rows of seven cells less than a second."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    rows = [[Counted(), number, "≥ 5"] for number in range(1000)]
    tables.print_table(("topic", "offset", "lag"), rows)
    assert {row[0].count for row in rows if isinstance(row[0], Counted)} == {1}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (16, "topic  n  config\nt-0    7  a=b\n"),
        (15, "topic  n\nt-0    7\n\nno room for\nconfig: make\nthe terminal\nwider, or take\n--format csv\n"),
        (7, "topic   t-0\nn       7\nconfig  a=b\n\n"),
    ],
)
def test_a_narrow_terminal_goes_without_minor_columns(
    room: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables.shutil, "get_terminal_size", lambda **_: os.terminal_size((room, 24)))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    tables.print_table(("topic", "n", "config"), [["t-0", 7, "a=b"]], ("config",))
    assert terminal.getvalue() == expected
