"""Headers of the entries of a `.log`, one after the other, with `struct`."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tests.naive.checksum import crc32c

MORE, END, LENGTH_TOO_SMALL, HEADER_BEYOND_FILE = "more", "end", "length too small", "header beyond file"
V2_HEADER = struct.Struct(">qiibIhiqqqhii")


class Row(NamedTuple):
    """An entry of any magic; v0 and v1 have -1 for what they do not know."""

    position: int
    size: int
    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    is_valid: int = -1


class Scan(NamedTuple):
    """The entries, why there are no more of them, and where that is."""

    rows: list[Row]
    stop: str
    position: int
    bad_length: int | None = None


def scan(data: bytes, position: int, end: int) -> Scan:
    """All entries from `position` that end at or before `end`."""
    rows: list[Row] = []
    while position < end and end - position > 17:
        (length,) = struct.unpack_from(">i", data, position + 8)
        if length < 14:
            return Scan(rows, LENGTH_TOO_SMALL, position, length)
        if position + 12 + length > end:
            return Scan(rows, END, position)
        (magic,) = struct.unpack_from(">b", data, position + 16)
        if magic >= 2 and position + 61 > len(data):
            return Scan(rows, HEADER_BEYOND_FILE, position)
        row = _row_of_v2(data, position) if magic >= 2 else _row_of_legacy(data, position, magic)
        rows.append(row)
        position += row.size
    return Scan(rows, END, position)


def scan_part(data: bytes, position: int, window_end: int, end: int, row_count_max: int) -> Scan:
    """The first of the entries, those that start before `window_end`, at most `row_count_max`."""
    whole = scan(data, position, end)
    rows = [row for row in whole.rows if row.position < window_end][:row_count_max]
    if len(rows) < len(whole.rows):
        next_position = rows[-1].position + rows[-1].size if rows else position
        return Scan(rows, MORE, next_position)
    is_stopped_early = len(rows) == row_count_max or whole.position >= window_end
    if is_stopped_early and whole.position < end:
        return Scan(rows, MORE, whole.position)
    return whole


def checked(data: bytes, row: Row) -> Row:
    """The row with the truth about its checksum."""
    if row.magic < 2:
        return row
    content = data[row.position : row.position + row.size]
    return row._replace(is_valid=int(row.size >= 61 and crc32c(content[21:]) == row.crc))


def _row_of_v2(data: bytes, position: int) -> Row:
    base_offset, length, *others = V2_HEADER.unpack_from(data, position)
    return Row._make([position, length + 12, base_offset, *others, Row._field_defaults["is_valid"]])


def _row_of_legacy(data: bytes, position: int, magic: int) -> Row:
    offset, length, crc, _, attributes = struct.unpack_from(">qiIbB", data, position)
    timestamp = -1
    if magic == 1:
        (timestamp,) = struct.unpack_from(">q", data, position + 18)
    return Row(position, length + 12, offset, -1, magic, crc, attributes, 0, -1, timestamp, -1, -1, -1, -1)
