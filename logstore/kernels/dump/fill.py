"""Fills a template row by row, as lines of JSON have one: literals, numbers, and bytes that differ from row to row."""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ...native.kernel import kernel
from .text import put_bytes, put_decimal, sequence_size

# Kinds of parts. Of a literal the next two slots are its position and its size, of others the first the column.
LITERAL = 0
NUMBER = 1
TEXT = 2  # of the pool: the column of positions, and behind it that of sizes
FIELD = 3  # the same of the data
QUOTED = 4  # a field with a backslash before each quote and backslash
PART_SLOT_COUNT = 3
NUMBER_SIZE_MAX = 20  # bytes, with a sign
# What a string of JSON makes of a field: the same but for quotes and backslashes, null, or anything else.
COPIED, NULL, ENCODED = range(3)
_QUOTE, _CONTROL, _HIGH = 1, 2, 128  # bits for the bytes of a field


@device
def is_within(position: int, size: int, end: int) -> int:
    """Return 1 if the bytes end before `end`; none are."""
    return 1 if size == 0 or (size > 0 and position >= 0 and size <= end and position <= end - size) else 0


@device
def put_quoted(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Copy bytes with a backslash before each quote and backslash."""
    for at in range(start, start + size):
        byte = data[at]
        if byte == 34 or byte == 92:
            out[o] = 92
            o += 1
        out[o] = byte
        o += 1
    return o


@kernel("u8*, i64, u8*, i64, i64*, i64, i64*, i64, u8*, i64, u8*, i64*")
def fill_lines(
    data: Any,
    data_size: int,
    pool: Any,
    pool_size: int,
    parts: Any,
    part_count: int,
    columns: Any,
    row_count: int,
    out: Any,
    out_capacity: int,
    literals: Any,
    out_ends: Any,
) -> int:
    """Write the parts of each row one after another; returns how many rows, up to one without room or bytes.

    data: uint8[data_size], where fields are; pool: uint8[pool_size], where literals and texts are; parts:
    int64[part_count, PART_SLOT_COUNT]; columns: int64[columns, row_count]; out: uint8[out_capacity + SLACK_SIZE];
    literals: those of `text`; out_ends: int64[row_count], out: where each row ends.
    """
    o = 0
    for row in range(row_count):
        for part in range(part_count):
            kind = parts[part * PART_SLOT_COUNT]
            position = parts[part * PART_SLOT_COUNT + 1]
            size = parts[part * PART_SLOT_COUNT + 2]
            if kind != LITERAL:
                at = position * row_count + row
                position = columns[at]
                size = NUMBER_SIZE_MAX if kind == NUMBER else columns[at + row_count]
            if kind != NUMBER and is_within(position, size, data_size if kind >= FIELD else pool_size) == 0:
                return row
            if (2 * size if kind == QUOTED else size) > out_capacity - o:
                return row
            if kind == NUMBER:
                o = put_decimal(out, o, literals, position)
            elif kind == QUOTED:
                o = put_quoted(out, o, data, position, size)
            else:
                put_bytes(out, o, data if kind == FIELD else pool, position, size)
                o += size
        out_ends[row] = o
    return row_count


@device
def is_utf8(data: Any, at: int, end: int) -> int:
    """Return 1 if the bytes are well-formed UTF-8."""
    while at < end:
        size = sequence_size(data, at, end)
        if size < 0:
            return 0
        at += size
    return 1


@kernel("u8*, i64*, i64*, i64, i64*")
def note_forms(data: Any, positions: Any, sizes: Any, row_count: int, forms: Any) -> int:
    """Note of each field whether it is COPIED, being UTF-8 without control characters, NULL, or ENCODED.

    data: uint8; positions, sizes: int64[row_count], within the data, a size below 0 is null; forms: int64[row_count],
    out. Returns 1 if any has a quote or a backslash.
    """
    has_quotes = 0
    for row in range(row_count):
        start = positions[row]
        end = start + sizes[row]
        found = 0
        for at in range(start, end):
            byte = data[at]
            found |= byte & _HIGH
            found |= _CONTROL if byte < 32 else 0
            found |= _QUOTE if byte == 34 or byte == 92 else 0
        has_quotes |= found & _QUOTE
        forms[row] = COPIED
        if sizes[row] < 0:
            forms[row] = NULL
        elif found & _CONTROL != 0 or (found & _HIGH != 0 and is_utf8(data, start, end) == 0):
            forms[row] = ENCODED
    return has_quotes
