"""Markdown of docstrings and tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

_SECTIONS = {"Args:": "Arguments", "Attributes:": "Attributes", "Raises:": "Raises", "Returns:": "Returns"}
_NAMED = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*): (.*)")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars within its cells are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown: its sections are lists, its examples (`>>>`) are left out."""
    text = re.sub(r"^>>> .*", "", inspect.cleandoc(docstring or ""), flags=re.MULTILINE | re.DOTALL)
    blocks = [block for block in re.split(r"\n{2,}", text.strip()) if block]
    return "".join(_block(block) + "\n" for block in blocks).rstrip("\n") + "\n" if blocks else ""


def _block(block: str) -> str:
    first, *lines = block.splitlines()
    if first not in _SECTIONS:
        return block + "\n"
    items: list[str] = []
    for line in lines:
        is_new = not line.startswith("        ") and not (items and ": " not in items[-1] and items[-1].endswith(","))
        if is_new or not items:
            items.append(line.strip())
        else:
            items[-1] += f" {line.strip()}"
    return f"{_SECTIONS[first]}:\n\n" + "".join(f"- {_item(item)}\n" for item in items)


def _item(text: str) -> str:
    named = _NAMED.fullmatch(text)
    if named is None:
        return text
    return ", ".join(f"`{name}`" for name in named[1].split(", ")) + f": {named[2]}"
