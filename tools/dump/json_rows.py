"""`--format json`: one object a line, for programs, as the types in `logstore.rows.dumped` say.

Keys and values are strings when they are UTF-8, else `keyBase64` and `valueBase64`; null is null. That holds for
headers too, which are a list, because a key may come twice. What a decoder of an internal topic makes of a key or value
stands there as an object. What the text tells at the top of a file is in its name. Findings and errors are those of the
text, on stderr.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from logstore.columns.batch_table import ByteArray, Int64Array
from logstore.columns.window_memory import new_buffer
from logstore.kernels.dump.fill import (
    COPIED,
    ENCODED,
    FIELD,
    LITERAL,
    NULL,
    NUMBER,
    NUMBER_SIZE_MAX,
    QUOTED,
    TEXT,
    fill_lines,
    note_forms,
)
from logstore.kernels.dump.lines import LITERALS
from logstore.kernels.dump.text import SLACK_SIZE
from logstore.messages.json_form import JsonText
from logstore.rows.dumped import DUMPED
from logstore.rows.schema import Kind, fields_of, iso_text, json_name

from .columns import ABSENT, Column, ColumnWriter, RowsOfType, Slices
from .options import DumpOptions
from .output import Output, Row

_TIMES = frozenset(
    json_name(field.name) for row_type in DUMPED.values() for field in fields_of(row_type) if field.kind is Kind.TIME
)
_TIME_MIN_MS, _TIME_MAX_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class JsonWriter(ColumnWriter):
    """Writes the rows of one file as lines."""

    def __init__(self, path: str, options: DumpOptions, out: Output) -> None:
        super().__init__(path, options, out)
        self._place_members = "".join(f',"{name}":{_encode(value)}' for name, value in self._place.items())

    def write_rows(self, rows: list[Row]) -> None:
        for row in rows:
            self._out.write(self._line(row))

    def write_interleaved(self, batches: RowsOfType, records: RowsOfType, starts: list[int]) -> None:
        batch_lines, batch_bounds = self._lines(batches)
        if not records.size:
            self._out.write(batch_lines[: batch_bounds[-1]])
            return
        record_lines, record_bounds = self._lines(records)
        at, batch_at = 0, 0
        for start, batch_end in zip(record_bounds[starts].tolist(), batch_bounds[1:].tolist(), strict=True):
            self._out.write(record_lines[at:start])
            self._out.write(batch_lines[batch_at:batch_end])
            at, batch_at = start, batch_end
        self._out.write(record_lines[at : record_bounds[-1]])

    def _line(self, row: Row) -> bytes:
        members = "".join(_member(name, value) for name, value in row.items() if name != "type")
        return _bytes(f'{{"type":"{row["type"]}"{self._place_members}{members}}}\n')

    def _lines(self, rows: RowsOfType) -> tuple[memoryview, Int64Array]:
        """Return a line for each row, one after another, and where each begins and the last one ends."""
        if not rows.size:
            return memoryview(b""), np.zeros(1, np.int64)
        data = next((column.data for column in rows.columns.values() if isinstance(column, Slices)), _NO_DATA)
        template = LineTemplate(rows.size, data)
        template.literal(_bytes(f'{{"type":"{rows.type}"{self._place_members}'))
        for name, column in rows.columns.items():
            _add_member(template, name, column)
        template.literal(b"}\n")
        return template.lines()


_NO_DATA = np.empty(0, np.uint8)


def _bytes(text: str) -> bytes:
    """Encode text; a path that is no UTF-8 keeps its bytes, as the escapes that `os.fsencode` understands."""
    return text.encode("utf-8", "backslashreplace")


def _add_member(template: LineTemplate, name: str, column: Column) -> None:
    if isinstance(column, Slices):
        _add_contents(template, name, column)
    elif isinstance(column, list):
        distinct = column[:1] if column.count(column[0]) == len(column) else column
        _add_values(template, name, distinct, np.arange(len(distinct)))
    elif column.texts is not None:
        _add_values(template, name, column.texts, column.values)
    elif column.is_null is not None and column.is_null.any():
        _add_member(template, name, column.to_list())
    elif column.values.dtype.kind == "b":
        _add_values(template, name, (False, True), column.values.astype(np.int64))
    elif name in _TIMES:
        _add_times(template, name, column.values)
    else:
        template.literal(f',"{name}":'.encode())
        template.numbers(column.values)


def _add_values(template: LineTemplate, name: str, values: Sequence[Any], indices: Int64Array) -> None:
    """Add for each row a member with the value of its index."""
    template.texts([_bytes(_member(name, value)) for value in values], indices)


def _add_times(template: LineTemplate, name: str, column: Int64Array) -> None:
    """Add times in ms: those of a second have its text in common."""
    if column.min() < _TIME_MIN_MS or column.max() > _TIME_MAX_MS:
        _add_values(template, name, column.tolist(), np.arange(column.size))
        return
    seconds, milliseconds = np.divmod(column, 1000)
    distinct, indices = np.unique(seconds, return_inverse=True)
    template.literal(f',"{name}":"'.encode())
    template.texts(np.datetime_as_string(distinct.astype("M8[s]")).astype("S").tolist(), indices)
    template.texts(_MILLISECONDS, milliseconds)


_MILLISECONDS = [f'.{number:03d}Z"'.encode() for number in range(1000)]


def _add_contents(template: LineTemplate, name: str, column: Slices) -> None:
    """Add keys or values: UTF-8 without control characters by the kernel, others as they are encoded here."""
    data, positions, sizes = column
    forms = np.empty(sizes.size, np.int64)
    has_quotes = note_forms(data, positions, sizes, sizes.size, forms) == 1
    others = np.flatnonzero(forms == ENCODED)
    forms[others] += np.arange(others.size)  # each has a text of its own
    encoded = ["," + _content(name, content) for content in Slices(data, positions[others], sizes[others]).values()]
    template.texts([_bytes(text) for text in (f',"{name}":"', f',"{name}":null', *encoded)], forms)
    template.fields(positions, np.where(forms == COPIED, sizes, 0), has_quotes=has_quotes)
    template.texts([b'"', b""], np.minimum(forms, NULL))


def _member(name: str, value: Any) -> str:
    if value is ABSENT:
        return ""
    if name in _TIMES:
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


class LineTemplate:
    """Lines of many rows at once: a template of literals, numbers, and bytes that differ from row to row.

    Parts are added from left to right, for `row_count` rows, at least one. A kernel fills it, five times as fast as
    Python fills a format string.

    Args:
        data: uint8, what fields are of.
    """

    def __init__(self, row_count: int, data: ByteArray) -> None:
        self._row_count = row_count
        self._data = data
        self._parts: list[tuple[int, int, int]] = []
        self._columns: list[Int64Array] = []
        self._pool = bytearray()
        self._size_max = 0  # bytes of all lines

    def literal(self, text: bytes) -> None:
        """Add what is the same in all rows."""
        position = len(self._pool)
        self._pool += text
        if self._parts and self._parts[-1][0] == LITERAL:  # which ends where this one begins
            position = self._parts.pop()[1]
        self._parts.append((LITERAL, position, len(self._pool) - position))
        self._size_max += len(text) * self._row_count

    def numbers(self, values: Int64Array) -> None:
        """Add a decimal for each row."""
        if (values == values[0]).all():
            self.literal(b"%d" % values[0])
            return
        self._parts.append((NUMBER, len(self._columns), 0))
        self._columns.append(values)
        self._size_max += NUMBER_SIZE_MAX * self._row_count

    def texts(self, texts: Sequence[bytes], indices: Int64Array) -> None:
        """Add for each row the text of its index."""
        if (indices == indices[0]).all():
            self.literal(texts[indices[0]])
            return
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        positions = len(self._pool) + np.cumsum(sizes) - sizes
        self._pool += b"".join(texts)
        self._slices(TEXT, positions[indices], sizes[indices])

    def fields(self, positions: Int64Array, sizes: Int64Array, *, has_quotes: bool) -> None:
        """Add for each row some bytes of the data, with backslashes if there are quotes; no size is below 0."""
        self._slices(QUOTED if has_quotes else FIELD, positions, sizes)

    def _slices(self, kind: int, positions: Int64Array, sizes: Int64Array) -> None:
        self._parts.append((kind, len(self._columns), 0))
        self._columns += [positions, sizes]
        self._size_max += int(sizes.sum()) * (2 if kind == QUOTED else 1)

    def lines(self) -> tuple[memoryview, Int64Array]:
        """Return the lines, one after another, and where each begins and the last one ends."""
        out = new_buffer(self._size_max + SLACK_SIZE)
        bounds = np.zeros(self._row_count + 1, np.int64)
        ends = bounds[1:]
        parts, pool = np.array(self._parts, np.int64), np.frombuffer(self._pool, np.uint8)
        columns = np.concatenate(self._columns) if self._columns else ends
        filled_count = fill_lines(
            *(self._data, self._data.size, pool, pool.size, parts, len(parts), columns, self._row_count),
            *(out, self._size_max, LITERALS, ends),
        )
        assert filled_count == self._row_count
        return out.data, bounds
