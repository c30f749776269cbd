"""Tables for people: by rich and as wide as the terminal; as wide as they need to be where there is none.

Most of what is not for a terminal is printed here, as rich prints it: importing rich takes longer than a small answer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

_PIPED_WIDTH = 1_000_000  # columns; a line of a pipe is never broken


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """One line a row on standard output; None is a dash, and numbers stand at the right.

    Args:
        columns: names, over the columns.
        rows: values, as many as there are columns.
    """
    found = [list(row) for row in rows]
    is_terminal = sys.stdout.isatty()
    if is_terminal or not _is_plain(columns, found):
        _print_by_rich(columns, found, is_terminal)
        return
    texts = [list(columns), *([_text(value) for value in row] for row in found)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = zip(row, widths, range(len(row)), strict=True)
        padded = (text.rjust(width) if _is_number(found, index) else text.ljust(width) for text, width, index in cells)
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def _is_plain(columns: Sequence[str], rows: list[list[Any]]) -> bool:
    """Whether every character takes one place, so that `len` says how wide a text is."""
    texts = [*columns, *(_text(value) for row in rows for value in row)]
    return all(text.isascii() and text.isprintable() for text in texts) and not any("[" in name for name in columns)


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _is_number(rows: list[list[Any]], index: int) -> bool:
    return bool(rows) and all(isinstance(row[index], int | None) for row in rows)


def _print_by_rich(columns: Sequence[str], found: list[list[Any]], is_terminal: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if is_terminal else _PIPED_WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD if is_terminal else None, pad_edge=False)
    for index, name in enumerate(columns):
        justify: Literal["left", "right"] = "right" if _is_number(found, index) else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not is_terminal)
    for row in found:
        table.add_row(*(Text(_text(value)) for value in row))
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
