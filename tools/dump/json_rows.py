"""`--format json`: one object a line, for programs, as the types in `row_types` say.

Keys and values are strings when they are UTF-8, else `keyBase64` and `valueBase64`; null is null. That holds for
headers too, which are a list, because a key may come twice. What a decoder of an internal topic makes of a key or value
stands there as an object. What the text tells at the top of a file is in its name. Findings and errors are those of the
text, on stderr.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import Int64Array
from logstore.layout.batch import NO_TIMESTAMP
from logstore.messages.json_form import JsonText

from ..timestamps import iso_text
from .column_rows import ABSENT, Column, ColumnRows, Rows, Slices
from .findings import Findings
from .options import DumpOptions
from .output import Output, Row
from .row_types import DUMP_ROWS

TIMES = frozenset(field.name for of in DUMP_ROWS for field in of.fields if field.type.startswith("time"))
_TIME_MIN_MS, _TIME_MAX_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonRows(ColumnRows):
    """Writes the rows of one file as lines."""

    def __init__(self, path: str, options: DumpOptions, out: Output, findings: Findings | None = None) -> None:
        super().__init__(path, options, out, findings)
        self._path_member = f',"path":{_encode(path)}'

    def write_rows(self, rows: list[Row]) -> None:
        """Write rows that are made one by one."""
        self._write_lines([self._line(row) for row in rows])

    def write_interleaved(self, batches: Rows, records: Rows, starts: list[int]) -> None:
        """Write each batch before its records, which begin at its start; those before are of an earlier one."""
        record_lines = self._lines(records)
        ends = [*starts[1:], len(record_lines)]
        lines = record_lines[: starts[0] if starts else None]
        for line, start, end in zip(self._lines(batches), starts, ends, strict=False):
            lines.append(line)
            lines += record_lines[start:end]
        self._write_lines(lines)

    def _line(self, row: Row) -> str:
        members = "".join(_member(name, value) for name, value in row.items() if name != "type")
        return f'{{"type":"{row["type"]}"{self._path_member}{members}}}\n'

    def _write_lines(self, lines: list[str]) -> None:
        """Write lines; a path that is no UTF-8 keeps its bytes, as the escapes that `os.fsencode` understands."""
        self.out.write("".join(lines).encode("utf-8", "backslashreplace"))

    def _lines(self, rows: Rows) -> list[str]:
        """Return a line for each row: a template, filled with what is not the same in all rows."""
        template = _escaped(f'{{"type":"{rows.type}"{self._path_member}')
        values: list[list[Any]] = []
        for name, column in rows.columns.items() if rows.size else ():
            form, texts = _filled(name, column)
            template += form
            if texts:
                values.append(texts)
        template += "}\n"
        return [template % row for row in zip(*values, strict=True)] if values else [template % ()] * rows.size


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _filled(name: str, column: Column) -> tuple[str, list[Any]]:
    """Return the template of a member, and what goes into it row by row: nothing if it is the same in all rows."""
    if isinstance(column, Slices):
        return _content_members(name, column)
    if name in TIMES and isinstance(column, np.ndarray):
        column = _times(column)
    is_constant = column.count(column[0]) == len(column) if isinstance(column, list) else (column == column[0]).all()
    if isinstance(column, list):
        texts = [_member(name, value) for value in (column[:1] if is_constant else column)]
        return (_escaped(texts[0]), []) if is_constant else ("%s", texts)
    form = f',"{name}":"%s"' if column.dtype.kind == "U" else f',"{name}":%s'
    if column.dtype.kind == "b":
        column = np.where(column, "true", "false")
    return (form % column[0], []) if is_constant else (form, column.tolist())


def _times(column: Int64Array) -> npt.NDArray[np.str_] | list[int]:
    """Return times in ms as texts; as numbers if one of them is none, or of no year that ISO 8601 has."""
    if ((column < _TIME_MIN_MS) | (column > _TIME_MAX_MS) | (column == NO_TIMESTAMP)).any():
        numbers: list[int] = column.tolist()
        return numbers
    return np.char.add(np.datetime_as_string(column.astype("M8[ms]")), "Z")


def _content_members(name: str, column: Slices) -> tuple[str, list[str]]:
    """Return the members of keys or values: what is ASCII without escapes is cut out of one text, not encoded."""
    data, positions, sizes = column
    if (sizes < 0).all():
        return f',"{name}":null', []
    ends = positions + np.maximum(sizes, 0)
    start = int(positions.min(initial=data.size, where=sizes >= 0))
    text = data[start : int(ends.max(initial=start, where=sizes >= 0))].tobytes().decode("latin-1")
    starts, ends = positions - start, ends - start
    contents = [text[first:end] for first, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    if (sizes >= 0).all() and _is_plain("".join(contents).encode("latin-1")):
        return f',"{name}":"%s"', contents
    rows = zip(contents, (sizes < 0).tolist(), strict=True)
    return ",%s", [_content(name, None if is_null else content.encode("latin-1")) for content, is_null in rows]


def _is_plain(content: bytes) -> bool:
    """Return whether a JSON string has these bytes as they are."""
    return not content.translate(None, _PLAIN)


_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')


def _member(name: str, value: Any) -> str:
    if value is ABSENT:
        return ""
    if name in TIMES:
        value = iso_text(value)
    return "," + _content(name, value) if isinstance(value, bytes) else f',"{name}":{_text(value)}'


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, JsonText):
        return value
    if isinstance(value, list):
        if not value:
            return "[]"
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
