"""HTML made of values. Names and ids from disk may be anything: they are escaped, made visible and cut here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from logstore.rows.schema import iso_text

TEXT_LENGTH_MAX = 300
PROSE_LENGTH_MAX = 2000  # room for a whole command with the name of a topic in it
NAME_LENGTH_MAX = 60
_NAME_END = 20  # characters kept at the end of a longer name: the number of a partition, the name of a file


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object, length_max: int = TEXT_LENGTH_MAX) -> Markup:
    """Return `value` as text of a page or an attribute, cut behind `length_max` characters.

    >>> text("<b>&" + chr(0x202E) + "x")
    '&lt;b&gt;&amp;\\\\u202ex'
    >>> text(None), text(1234567)
    ('-', '1,234,567')
    """
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("-")
    if isinstance(value, int):
        return Markup(f"{value:,}")
    words = str(value)
    if len(words) > length_max:
        words = f"{words[:length_max]}… ({len(words)} characters)"
    return Markup(escape(_visible(words)))


def _visible(words: str) -> str:
    """Return `words` with escapes for invisible characters: controls, marks of direction, joiners."""
    if words.isprintable():
        return words
    return "".join([one if one.isprintable() else f"\\u{ord(one):04x}" for one in words])


def prose(words: str) -> Markup:
    """Return a sentence of logstore's own, with code for what stands between backquotes.

    >>> prose("`logstore repair` & wait")
    '<code>logstore repair</code> &amp; wait'
    """
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", text(words, PROSE_LENGTH_MAX)))


def name_text(name: str) -> Markup:
    """Return a name, cut in the middle if it is long; pointing at it shows the whole.

    >>> name_text("orders-0"), len(name_text("o" * 249 + "-17")) > 249, name_text("o" * 249 + "-17")[-18:]
    ('<bdi>orders-0</bdi>', True, 'oo-17</bdi></span>')
    """
    if len(name) <= NAME_LENGTH_MAX:
        return Markup(f"<bdi>{text(name)}</bdi>")
    short = f"{name[: NAME_LENGTH_MAX - _NAME_END]}…{name[-_NAME_END:]}"
    return Markup(f'<span title="{text(name)}"><bdi>{text(short)}</bdi></span>')


def time_text(timestamp_ms: int) -> str:
    """Return the time in UTC, with a blank before the time of day.

    >>> time_text(1700000000020), time_text(-1), time_text(2**62)
    ('2023-11-14 22:13:20.020Z', '-', '4611686018427387904')
    """
    return (iso_text(timestamp_ms) or "-").replace("T", " ")


def byte_text(size: int) -> str:
    """Return a size in a unit that suits it.

    >>> byte_text(999), byte_text(10_485_760), byte_text(1536)
    ('999 B', '10.0 MiB', '1.5 KiB')
    """
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"


def size_text(size: int) -> Markup:
    """Return a size that stands at the right of its column; pointing at it shows the bytes."""
    return Markup(f'<span class="number" title="{size:,} bytes" data-key="{size}">{byte_text(size)}</span>')


def swatches(names: Iterable[str]) -> str:
    """Return the names with spots in their colours, for a legend."""
    return "".join(f'<span><i class="swatch {name}"></i>{name}</span>' for name in names)


def section(name: str, title: str, inside: str) -> str:
    """Return a section that links reach by its name."""
    return f'<section id="{name}"><h2>{title}</h2>{inside}</section>'


def stack(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of words; a narrow window shows its cells one below the other."""
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join(
        f"<tr>{''.join(_stack_cell(name, value) for name, value in zip(heads, row, strict=True))}</tr>" for row in rows
    )
    return f'<table class="stack"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _stack_cell(head: str, value: object) -> str:
    kind = ' class="none"' if value is None else ' class="number"' if isinstance(value, int) else ""
    return f'<td{kind} data-head="{text(head)}">{text(value)}</td>'


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, minor: Sequence[int] = ()) -> str:
    """Return a table that scrolls where the window is narrow, without `minor` columns; numbers stand at the right."""
    classes = []
    for index in range(len(heads)):
        names = ["number"] if rows and all(_is_number(row[index]) for row in rows) else []
        names += ["minor"] if index in minor else []
        classes.append(f' class="{" ".join(names)}"' if names else "")

    def row_of(tag: str, values: Sequence[object]) -> str:
        pairs = zip(classes, values, strict=True)
        return "".join(f"<{tag}{attribute}>{text(value)}</{tag}>" for attribute, value in pairs)

    body = "".join(f"<tr>{row_of('td', row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{row_of("th", heads)}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, int) or (isinstance(value, Markup) and 'class="number' in value)


def folded(summary: str, inside: str, *, kind: str = "folded") -> str:
    """Return `inside` folded behind `summary`, which is text; the script joins "more" with the table before it."""
    return f'<details class="{kind}"><summary>{text(summary)}</summary>{inside}</details>'


def first_and_more(
    rows: Sequence[Sequence[object]], count: int, draw: Callable[[Sequence[Sequence[object]]], str], summary: str
) -> str:
    """Draw a table of the first `count` rows, and one of the others, folded behind a summary with their number."""
    rest = rows[count:]
    return draw(rows[:count]) + (folded(summary.format(len(rest)), draw(rest), kind="more") if rest else "")
