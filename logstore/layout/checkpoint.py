r"""Text format of Kafka's checkpoint files (`org.apache.kafka.server.common.CheckpointFile`).

    line 1    version, 0
    line 2    number of entries
    then one entry a line, fields separated by whitespace

UTF-8; every line ends with \n. An empty file, or one with only the version, has no entries. Kafka writes `<name>.tmp`,
syncs it and renames it. In hex, one entry of an offset checkpoint:

    30 0a  31 0a  6f 72 64 65 72 73 20 30 20 34 32 0a

>>> data = bytes.fromhex("300a 310a 6f726465727320302034320a")
>>> parse_checkpoint(data, version=0, path="/d/x", parse_entry=lambda fields: fields)
[['orders', '0', '42']]
>>> parse_checkpoint(b"0\n2\na\n", version=0, path="/d/x", parse_entry=lambda fields: fields)
Traceback (most recent call last):
logstore.errors.CheckpointFormatError: Expected [2] entries in checkpoint file [/d/x], but found only [1]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ..errors import CheckpointFormatError
from .java_integer import number_format_text, parse_int, parse_long

T = TypeVar("T")

_LINE_END = re.compile("\r\n|\n|\r")
_WHITESPACE = re.compile("[ \t\n\x0b\f\r]+")


def parse_checkpoint(data: bytes, *, version: int, path: str, parse_entry: Callable[[list[str]], T | None]) -> list[T]:
    """Return the entries of a checkpoint, in file order.

    Args:
        data: the whole file.
        version: the only accepted version.
        path: absolute path, for messages.
        parse_entry: makes an entry from the fields of a line; returns None if their number is wrong.

    Raises:
        CheckpointFormatError: with Kafka's message; `java_class` tells IOException from Java's own exceptions.
    """
    lines = text_lines(data, path=path)
    if not lines:
        return []
    found_version = _header_number(lines[0], path)
    if found_version != version:
        raise CheckpointFormatError(
            f"Unrecognised version:{found_version}, expected version: {version} in checkpoint file at: {path}"
        )
    if len(lines) == 1:
        return []
    entry_count = _header_number(lines[1], path)
    if entry_count < 0:  # Kafka allocates an ArrayList of this capacity
        raise CheckpointFormatError(f"Illegal Capacity: {entry_count}", java_class="java.lang.IllegalArgumentException")
    entries = []
    for line in lines[2:]:
        entry = parse_entry(split_fields(line))
        if entry is None:
            raise _malformed_line(line, path)
        entries.append(entry)
    if len(entries) != entry_count:
        raise CheckpointFormatError(
            f"Expected [{entry_count}] entries in checkpoint file [{path}], but found only [{len(entries)}]"
        )
    return entries


def text_lines(data: bytes, *, path: str) -> list[str]:
    r"""Return the lines of UTF-8 text, ended by \n, \r or \r\n as in Java's BufferedReader; the last end is optional.

    Raises:
        CheckpointFormatError: not UTF-8 (`MalformedInputException`).
    """
    try:
        lines = _LINE_END.split(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CheckpointFormatError(
            f"Input length = {error.end - error.start}",
            path=path,
            position=error.start,
            java_class="java.nio.charset.MalformedInputException",
        ) from None
    if not lines[-1]:
        lines.pop()
    return lines


def split_fields(line: str) -> list[str]:
    """Split `line` at whitespace as Java does: leading blanks make an empty first field, trailing ones make none.

    >>> split_fields(" a  b ")
    ['', 'a', 'b']
    """
    fields = _WHITESPACE.split(line)
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def int_field(text: str) -> int:
    """Return the 32-bit value of a field; raise CheckpointFormatError for a NumberFormatException."""
    return _checked(parse_int(text), text)


def long_field(text: str) -> int:
    """Return the 64-bit value of a field; raises as `int_field`."""
    return _checked(parse_long(text), text)


def _checked(value: int | None, text: str) -> int:
    if value is None:
        raise CheckpointFormatError(number_format_text(text), java_class="java.lang.NumberFormatException")
    return value


def _header_number(line: str, path: str) -> int:
    number = parse_int(line)
    if number is None:
        raise _malformed_line(line, path)
    return number


def _malformed_line(line: str, path: str) -> CheckpointFormatError:
    return CheckpointFormatError(f"Malformed line in checkpoint file [{path}]: {line}")
