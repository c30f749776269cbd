"""Byte fields gathered, and Arrow's views of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Place = tuple[int, int]  # position and size, -1 null


def field(data: bytes, place: Place) -> bytes | None:
    """The bytes of a field, none for null; None if they are not there."""
    position, size = place
    if size <= 0:
        return b""
    return data[position : position + size] if 0 <= position <= len(data) - size else None


def gathered(data: bytes, places: Sequence[Place], capacity: int) -> list[bytes]:
    """The fields up to one that is not there or has no room."""
    found: list[bytes] = []
    for place in places:
        content = field(data, place)
        if content is None or sum(map(len, found)) + len(content) > capacity:
            break
        found.append(content)
    return found


def views(data: bytes, places: Sequence[Place]) -> list[bytes]:
    """Sixteen bytes for each field, up to one that is not there."""
    found: list[bytes] = []
    for place in places:
        content = field(data, place)
        if content is None:
            break
        if len(content) > 12:
            found.append(struct.pack("<i4sii", len(content), content, 0, place[0]))
        else:
            found.append(struct.pack("<i12s", len(content), content))
    return found
