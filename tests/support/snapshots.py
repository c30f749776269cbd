"""Producer snapshots as tests compare them: a broker's has its entries in the order of Java's HashMap, ours by id."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.naive.checksum import crc32c

HEADER = struct.Struct(">hIi")  # version, CRC-32C of all from the count on, count
CHECKED_AT = 6
ENTRY_SIZE = 46  # begins with the producer id, which is not negative


def comparable(path: Path) -> bytes:
    """Return the bytes of a file; the entries of a sound snapshot sorted by producer id."""
    return comparable_content(path.name, path.read_bytes())


def comparable_content(name: str, content: bytes) -> bytes:
    """Return the same of a file that was read already."""
    return sorted_snapshot(content) if name.endswith(".snapshot") else content


def sorted_snapshot(content: bytes) -> bytes:
    """Return the snapshot with its entries sorted by producer id; damaged bytes as they are.

    >>> two = bytes([0] * 7 + [9]) + bytes(38) + bytes(46)
    >>> content = HEADER.pack(1, crc32c(bytes([0, 0, 0, 2]) + two), 2) + two
    >>> sorted_snapshot(content)[10:] == two[46:] + two[:46], sorted_snapshot(content[:-1]) == content[:-1]
    (True, True)
    """
    if len(content) < HEADER.size:
        return content
    version, crc, count = HEADER.unpack_from(content)
    is_sound = version == 1 and len(content) == HEADER.size + ENTRY_SIZE * count
    if not is_sound or crc32c(content[CHECKED_AT:]) != crc:
        return content
    starts = range(HEADER.size, len(content), ENTRY_SIZE)
    checked = struct.pack(">i", count) + b"".join(sorted(content[start : start + ENTRY_SIZE] for start in starts))
    return struct.pack(">hI", version, crc32c(checked)) + checked
