"""Tables for people: a line a row, never broken; on a terminal that is too narrow for that, a line a cell."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_GAP = "  "


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print the rows on standard output, below the names of the columns.

    None is a dash, and numbers stand at the right. What a terminal would obey, as a line end, stands as its escape.

    Args:
        columns: names.
        rows: values, as many as there are columns.
    """
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    texts = [[name, *map(_text, column)] for name, column in zip(columns, values, strict=True)]
    widths = [max(map(_width, column)) for column in texts]
    if sys.stdout.isatty() and sum(widths) + len(_GAP) * (len(widths) - 1) > shutil.get_terminal_size().columns:
        _print_cells(texts, max(map(_width, columns)))
        return
    cells = [
        _justified(column, width, is_right=bool(found) and all(isinstance(value, int | None) for value in found))
        for column, width, found in zip(texts, widths, values, strict=True)
    ]
    sys.stdout.write("".join([f"{_GAP.join(row).rstrip()}\n" for row in zip(*cells, strict=True)]))


def _print_cells(texts: list[list[str]], name_width: int) -> None:
    """Print a block for each row, a line for each of its cells behind the name of the column."""
    (*names,), *rows = zip(*texts, strict=True)
    names = _justified(names, name_width, is_right=False)
    for row in rows:
        lines = [f"{name}{_GAP}{text}\n" for name, text in zip(names, row, strict=True)]
        sys.stdout.write("".join(lines) + "\n")


def _text(value: Any) -> str:
    text = "-" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])


def _width(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in ("W", "F") else 1 for one in text
    )


def _justified(texts: list[str], width: int, *, is_right: bool) -> list[str]:
    blanks = [" " * (width - _width(text)) for text in texts]
    pairs = zip(texts, blanks, strict=True)
    return [blank + text for text, blank in pairs] if is_right else [text + blank for text, blank in pairs]
