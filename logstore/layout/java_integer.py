"""Decimal integers as Java reads them (`Integer.parseInt`, `Long.parseLong`).

File names, checkpoints and properties hold integers as text. Java takes one optional sign and then Unicode decimal
digits of the basic plane; no spaces, no underscores, nothing out of range. Python's `int()` takes more.

>>> parse_long("00000000000000000320"), parse_long("+7"), parse_long("-0")
(320, 7, 0)
>>> parse_long(" 7"), parse_long("1_000"), parse_long(""), parse_long("9223372036854775808")
(None, None, None, None)
>>> number_format_text("x1")
'For input string: "x1"'
"""

from __future__ import annotations

_LONGEST_TEXT = 4096  # Python's `int` fails at 4300 digits
_LAST_OF_BASIC_PLANE = "\uffff"


def parse_int(text: str) -> int | None:
    """Return the 32-bit value of `text`, or None where Java throws NumberFormatException."""
    if text.isdecimal() and text.isascii() and len(text) < 10:  # most numbers of partitions
        return int(text)
    return _parse(text, 32)


def parse_long(text: str) -> int | None:
    """Return the 64-bit value of `text`, or None where Java throws NumberFormatException."""
    return _parse(text, 64)


def number_format_text(text: str) -> str:
    """Return the message of Java's NumberFormatException."""
    return f'For input string: "{text}"'


def _parse(text: str, bit_count: int) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or len(digits) > _LONGEST_TEXT or max(digits) > _LAST_OF_BASIC_PLANE:
        return None
    value = int(digits)
    if text[0] == "-":
        value = -value
    limit = 1 << (bit_count - 1)
    return value if -limit <= value < limit else None
