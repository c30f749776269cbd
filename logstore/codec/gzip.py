"""gzip as `java.util.zip.GZIPInputStream` (JDK 17) reads it."""

from __future__ import annotations

import numpy as np

from logstore.codec.outcome import ByteArray

# Kafka's own header: deflate, no flags; mtime, extra flags and operating system are not looked at.
PLAIN_HEADER = b"\x1f\x8b\x08\x00"
HEADER_SIZE = 10
TRAILER_SIZE = 8


def inflate_one_member(payload: memoryview, size_max: int) -> ByteArray | None:
    """The bytes of a stream that is one plain member and nothing else; None if it is anything but."""
    from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor, IsalError
    from isal.isal_zlib import crc32

    if payload[:4] != PLAIN_HEADER or len(payload) < HEADER_SIZE + TRAILER_SIZE:
        return None
    member = IgzipDecompressor(DECOMP_DEFLATE)
    try:
        data = member.decompress(payload[HEADER_SIZE:], size_max)
    except IsalError:
        return None
    trailer = member.unused_data
    if not member.eof or len(trailer) != TRAILER_SIZE:
        return None
    if int.from_bytes(trailer[:4], "little") != crc32(data):
        return None
    if int.from_bytes(trailer[4:], "little") != len(data) & 0xFFFFFFFF:
        return None
    return np.frombuffer(data, np.uint8)
