"""`--format json`: one object a line, for programs.

`file` is the path, `kind` tells what an object is:

    batch     the header of a batch, with the names that the text has
    record    in a deep dump, below its batch: metadata, and with `--print-data-log` or a decoder key and value
    trailer   `invalidBytes` at the end of a log
    entry     a line of an index or snapshot, with the names that the text has
    message   what the text says of an index in a sentence

Keys and values are strings when they are UTF-8, else `keyBase64` and `valueBase64`; null is null. That holds for
headers too, which are a list, because a key may come twice. What a decoder of an internal topic makes of a key or value
stands there as an object. What the text tells at the top of a file is in its name. Findings and errors are those of the
text, on stderr.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from logstore.messages.json_form import JsonText

from .decoders import ControlRecord
from .index_text import Row
from .log_rows import ABSENT, Rows
from .output import Output

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonWriter:
    """Writes the rows of one log as lines."""

    def __init__(self, path: str, out: Output) -> None:
        self._path = path
        self._out = out

    def write(self, rows: Rows) -> None:
        """Write rows, in order."""
        self._write_lines(_lines(self._path, rows))

    def write_batches(self, batches: Rows, records: Rows, starts: list[int]) -> None:
        """Write each batch before its records, which begin at its start; those before are of an earlier one."""
        record_lines = _lines(self._path, records)
        ends = [*starts[1:], len(record_lines)]
        lines = record_lines[: starts[0] if starts else None]
        for line, start, end in zip(_lines(self._path, batches), starts, ends, strict=False):
            lines.append(line)
            lines += record_lines[start:end]
        self._write_lines(lines)

    def _write_lines(self, lines: list[str]) -> None:
        self._out.write(_bytes("".join(lines)))


def side_file_line(path: str) -> Callable[[Row], bytes]:
    """Return what makes lines of the rows of an index or snapshot."""

    def line(row: Row) -> bytes:
        kind = "message" if "message" in row else "entry"
        return _bytes(_encode({"file": path, "kind": kind, **row}) + "\n")

    return line


def _bytes(text: str) -> bytes:
    """Encode lines; a path that is no UTF-8 keeps its bytes, as the escapes that Python's `os.fsencode` understands."""
    return text.encode("utf-8", "backslashreplace")


def _lines(path: str, rows: Rows) -> list[str]:
    """Return a line for each row: a template, filled with numbers and with members whose text depends on the value."""
    head = f'{{"file":{_encode(path)},"kind":"{rows.kind}"'
    template = head.replace("%", "%%")
    values: list[list[Any]] = []
    for name, column in rows.columns.items():
        if isinstance(column, np.ndarray):
            template += f',"{name}":"%s"' if column.dtype.kind == "U" else f',"{name}":%s'
            values.append((np.where(column, "true", "false") if column.dtype.kind == "b" else column).tolist())
        else:
            template += "%s"
            values.append(_members(name, column))
    template += "}\n"
    return [template % row for row in zip(*values, strict=True)] if values else [template % ()] * rows.count


def _members(name: str, column: list[Any]) -> list[str]:
    """Return `,"name":value` for each value, or nothing for an absent one."""
    head, null, empty = f',"{name}":', f',"{name}":null', f',"{name}":[]'
    members = []
    for value in column:
        if value is None:
            members.append(null)
        elif type(value) is bytes:
            members.append("," + _content(name, value))
        elif value == []:
            members.append(empty)
        else:
            members.append("" if value is ABSENT else head + _text(value))
    return members


def _text(value: Any) -> str:
    if isinstance(value, JsonText):
        return value
    if isinstance(value, ControlRecord):
        return f'{{"type":"{value.type.name}","{value.name}":{value.detail}}}'
    if isinstance(value, list):
        headers = [f"{{{_content('key', key)},{_content('value', value)}}}" for key, value in value]
        return f"[{','.join(headers)}]"
    return _encode(value)


def _content(name: str, content: bytes | None) -> str:
    """Return the member of a key or a value."""
    if content is None:
        return f'"{name}":null'
    try:
        return f'"{name}":{_encode(content.decode())}'
    except UnicodeDecodeError:
        return f'"{name}Base64":"{base64.b64encode(content).decode()}"'
