"""Fills a template row by row, as lines of JSON have one: literals, numbers, and bytes that differ from row to row."""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ...jit.kernel import kernel
from .text import put_bytes, put_decimal

# Kinds of parts. Of a literal the next two slots are its position and its size, of others the first the column.
LITERAL = 0
NUMBER = 1
TEXT = 2  # of the pool: the column of positions, and behind it that of sizes
FIELD = 3  # the same of the data
PART_SLOT_COUNT = 3
NUMBER_SIZE_MAX = 20  # bytes, with a sign
# Forms of a field in JSON.
PLAIN, NULL, ENCODED = range(3)


@device
def is_within(position: int, size: int, end: int) -> int:
    """Return 1 if the bytes end before `end`; none are."""
    return 1 if size == 0 or (size > 0 and position >= 0 and size <= end and position <= end - size) else 0


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
            if size > out_capacity - o:
                return row
            if kind == NUMBER:
                o = put_decimal(out, o, literals, position)
                continue
            if is_within(position, size, data_size if kind == FIELD else pool_size) == 0:
                return row
            if kind == FIELD:
                put_bytes(out, o, data, position, size)
            else:
                put_bytes(out, o, pool, position, size)
            o += size
        out_ends[row] = o
    return row_count


@kernel("u8*, i64*, i64*, i64, i64*")
def note_forms(data: Any, positions: Any, sizes: Any, row_count: int, forms: Any) -> int:
    """Note of each field what a JSON string makes of it: PLAIN, which is ASCII without escapes, NULL or ENCODED.

    data: uint8; positions, sizes: int64[row_count], within the data, a size below 0 is null; forms: int64[row_count],
    out. Returns how many are ENCODED.
    """
    encoded_count = 0
    for row in range(row_count):
        start = positions[row]
        is_encoded = 0
        for at in range(start, start + sizes[row]):
            byte = data[at]
            is_encoded |= 1 if byte < 32 or byte > 127 or byte == 34 or byte == 92 else 0
        forms[row] = NULL if sizes[row] < 0 else ENCODED if is_encoded == 1 else PLAIN
        encoded_count += is_encoded
    return encoded_count
