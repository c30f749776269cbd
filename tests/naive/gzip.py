"""One plain member of gzip, opened by zlib."""

from __future__ import annotations

import zlib

WrongStreamError = zlib.error


def decode_member(stream: bytes) -> bytes:
    """Its content; ValueError or WrongStreamError if it is anything but one member with a header of ten bytes."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    if stream[:4] != b"\x1f\x8b\x08\x00" or len(stream) < 18:
        raise ValueError("no plain header")
    data = inflate.decompress(stream[10:])
    trailer = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    if not inflate.eof or inflate.unused_data != trailer:
        raise ValueError("no end, or another trailer")
    return data
