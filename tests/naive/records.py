"""Records of magic 2 as a stream holds them: only their framing matters here."""

from __future__ import annotations


def framed(body: bytes) -> bytes:
    """A record of these bytes: zigzag varint of the size, then the bytes."""
    number = len(body) << 1
    size = bytearray()
    while number >= 128:
        size.append(number & 127 | 128)
        number >>= 7
    size.append(number)
    return bytes(size) + body


def stream(bodies: list[bytes]) -> bytes:
    """Records one after the other."""
    return b"".join(map(framed, bodies))
