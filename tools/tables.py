"""Tables and counts for people. A table has an unbroken line for each row.

A terminal that is too narrow gets no minor columns; one that is still too narrow gets a line for each cell.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

_GAP = "  "


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], minor: Collection[str | None] = ()) -> None:
    """Print the rows on standard output, below the names of the columns.

    None is a dash, and numbers stand at the right. Control characters are escaped, because a terminal would obey them.

    Args:
        columns: names.
        rows: values, one for each column.
        minor: names of columns that a narrow terminal leaves out, from the last one on.
    """
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    texts = [_texts([name, *column]) for name, column in zip(columns, values, strict=True)]
    widths = [max(_widths(column)) for column in texts]
    shown = list(range(len(columns)))
    room = shutil.get_terminal_size().columns
    if sys.stdout.isatty():
        shown = _that_fit(widths, [number for number in shown if columns[number] in minor], room)
        if not shown:
            _print_cells(texts, max(_widths(columns)))
            return
    cells = [_justified(texts[number], widths[number], is_right=_are_numbers(values[number])) for number in shown]
    sys.stdout.write("".join([f"{_GAP.join(row).rstrip()}\n" for row in zip(*cells, strict=True)]))
    left_out = [name for number, name in enumerate(columns) if number not in shown]
    if left_out:
        note = f"no room for {', '.join(left_out)}: make the terminal wider, or take --format csv"
        sys.stdout.write(f"\n{textwrap.fill(note, room)}\n")


def _that_fit(widths: Sequence[int], minor: list[int], room: int) -> list[int]:
    """Return the numbers of the columns that fit, leaving out minor ones from the last one on; [] if none do."""
    shown = list(range(len(widths)))
    left_out = list(minor)
    while sum(widths[number] for number in shown) + len(_GAP) * (len(shown) - 1) > room:
        if not left_out:
            return []
        shown.remove(left_out.pop())
    return shown


def _are_numbers(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, int | None) for value in values)


def _print_cells(texts: list[list[str]], name_width: int) -> None:
    """Print a block for each row: a line for each cell, behind the name of its column."""
    (*names,), *rows = zip(*texts, strict=True)
    names = _justified(names, name_width, is_right=False)
    for row in rows:
        lines = [f"{name}{_GAP}{text}\n" for name, text in zip(names, row, strict=True)]
        sys.stdout.write("".join(lines) + "\n")


def _texts(values: Iterable[Any]) -> list[str]:
    """Return the texts of the values."""
    texts = ["-" if value is None else str(value) for value in values]
    # one question for all, because mostly all are printable
    return texts if "".join(texts).isprintable() else list(map(visible, texts))


def print_lines(*lines: str) -> None:
    """Print lines on standard output, with escapes for control characters and line ends in them."""
    sys.stdout.writelines([f"{visible(line)}\n" for line in lines])


def visible(text: str) -> str:
    """Return the text with escapes for control characters, which a terminal would obey."""
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode() for one in text])


def _widths(texts: Sequence[str]) -> list[int]:
    """Return the width of each text in columns of a terminal."""
    return list(map(len if "".join(texts).isascii() else _width, texts))


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in ("W", "F") else 1 for one in text
    )


def _justified(texts: list[str], width: int, *, is_right: bool) -> list[str]:
    blanks = [" " * (width - taken) for taken in _widths(texts)]
    pairs = zip(texts, blanks, strict=True)
    return [blank + text for text, blank in pairs] if is_right else [text + blank for text, blank in pairs]


def count_of(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_of(1, "batch"), count_of(2000, "batch"), count_of(0, "partition")
    ('1 batch', '2,000 batches', '0 partitions')
    """
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{count:,} {noun if count == 1 else plural}"
