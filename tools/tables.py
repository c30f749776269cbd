"""Tables for people, by rich: as wide as the terminal; as wide as they need to be where there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

_PIPED_WIDTH = 1_000_000  # columns; a line of a pipe is never broken


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """One line a row on standard output; None is a dash, and numbers stand at the right.

    Args:
        columns: names, over the columns.
        rows: values, as many as there are columns.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    found = [list(row) for row in rows]
    is_terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if is_terminal else _PIPED_WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD if is_terminal else None, title=title, title_justify="left", pad_edge=False)
    for index, name in enumerate(columns):
        is_number = bool(found) and all(isinstance(row[index], int | None) for row in found)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold", no_wrap=not is_terminal)
    for row in found:
        table.add_row(*(Text("-" if value is None else str(value)) for value in row))
    with console.capture() as capture:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))
