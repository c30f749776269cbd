"""Headers as the end of a record has them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.naive.varint import EndOfBytesError, TooLongError, read_varint
from tests.support.encoder import varint

Header = tuple[bytes, bytes | None]


def encode(headers: Sequence[Header]) -> bytes:
    """Count, then key and value of each."""
    parts = [varint(len(headers))]
    for key, value in headers:
        parts += [varint(len(key)), key, varint(-1) if value is None else varint(len(value)), value or b""]
    return b"".join(parts)


def decode(data: bytes, position: int, count: int) -> list[Header] | None:
    """`count` headers from `position` on; None if they are not there."""
    found: list[Header] = []
    try:
        for _ in range(count):
            key, position = _field(data, position)
            value, position = _field(data, position)
            if key is None:
                return None
            found.append((key, value))
    except (EndOfBytesError, TooLongError):
        return None
    return found


def _field(data: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size < 0:
        return None, position
    if size > len(data) - position:
        raise EndOfBytesError
    return data[position : position + size], position + size
