"""gzip as `java.util.zip.GZIPInputStream` of JDK 17 reads it.

Members may follow one another. Up to 18 bytes behind the last one are ignored; so are more, unless they start like the
header of a member. Name, comment and extra field are skipped.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from functools import partial

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor, IsalError
from isal.isal_zlib import crc32

from logstore.codec.outcome import damaged, feed
from logstore.errors import DecompressionError
from logstore.model import Codec

# deflate, no flags; readers ignore the bytes behind: mtime, extra flags, operating system
PLAIN_HEADER = b"\x1f\x8b\x08\x00"
HEADER_SIZE = 10
TRAILER_SIZE = 8
FLAG_HEADER_CRC, FLAG_EXTRA, FLAG_NAME, FLAG_COMMENT = 2, 4, 8, 16
# Java looks for another member only behind more bytes than a header and a trailer have
IGNORED_TAIL_SIZE = HEADER_SIZE + TRAILER_SIZE
_STEP_SIZE = 256  # bytes
# `java.util.zip.GZIPOutputStream` since JDK 16: no time, no extra flags, unknown operating system
JAVA_HEADER = PLAIN_HEADER + b"\x00\x00\x00\x00\x00\xff"


def decode_one(payload: memoryview, size_max: int) -> bytes | None:
    """Decompress a payload that is one plain member, as Kafka writes it.

    Returns None for any other payload: more members, damage, more than `size_max` (>= 0) bytes.
    """
    if payload[:4] != PLAIN_HEADER or len(payload) < HEADER_SIZE + TRAILER_SIZE:
        return None
    claimed_size = int.from_bytes(payload[-4:], "little")
    if claimed_size > size_max:
        return None
    member = IgzipDecompressor(DECOMP_DEFLATE)
    try:
        data = member.decompress(payload[HEADER_SIZE:], claimed_size + 1)  # a byte more, to find the end of the member
    except IsalError:  # type: ignore[misc]  # its stubs call the class an instance
        return None
    if not member.eof or len(data) != claimed_size:
        return None
    trailer = member.unused_data
    if len(trailer) != TRAILER_SIZE or int.from_bytes(trailer[:4], "little") != crc32(data):
        return None
    return data


def pieces(payload: memoryview, size_max: int, magic: int) -> Iterator[bytes]:
    """Yield the content of all members, as `GZIPInputStream` takes them; raises DecompressionError at damage."""
    position = _header_end(payload, 0)
    while True:
        position = yield from _member(payload, position)
        if len(payload) - position <= IGNORED_TAIL_SIZE:
            return
        try:
            position = _header_end(payload, position)
        except DecompressionError:  # bytes behind a member that start no other one are ignored
            return


def compress(payload: memoryview, level: int) -> bytes:
    """Return one member, as Kafka's `GzipOutputStream` writes it; level -1 is zlib's 6."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = _trailer(zlib.crc32(payload), len(payload))
    return b"".join((JAVA_HEADER, deflate.compress(payload), deflate.flush(), trailer))


def _member(payload: memoryview, start: int) -> Generator[bytes, None, int]:
    """Yield the content of the member whose deflate stream starts at `start`, and check it; return the member's end."""
    crc = size = 0
    inflated = feed(Codec.GZIP, partial(zlib.decompressobj, -zlib.MAX_WBITS), zlib.error, payload, start)
    while True:
        try:
            piece = next(inflated)
        except StopIteration as end:
            position: int = end.value
            break
        crc, size = zlib.crc32(piece, crc), size + len(piece)
        yield piece
    trailer = bytes(payload[position : position + TRAILER_SIZE])
    if len(trailer) < TRAILER_SIZE:
        raise damaged(Codec.GZIP, position, "its trailer is cut off")
    if trailer != _trailer(crc, size):
        raise damaged(Codec.GZIP, position, "its trailer has another checksum or size than its content")
    return position + TRAILER_SIZE


def _trailer(crc: int, size: int) -> bytes:
    return crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def _header_end(payload: memoryview, start: int) -> int:
    """Return the position behind the member header at `start`."""
    header = bytes(payload[start : start + HEADER_SIZE])
    if len(header) < HEADER_SIZE:
        raise damaged(Codec.GZIP, start, "its header is cut off")
    if header[:3] != PLAIN_HEADER[:3]:
        raise damaged(Codec.GZIP, start, "this is no header of gzip with deflate")
    flags, position = header[3], start + HEADER_SIZE
    if flags & FLAG_EXTRA:
        position += 2 + int.from_bytes(payload[position : position + 2], "little")
    for flag in FLAG_NAME, FLAG_COMMENT:
        if flags & flag:
            position = _text_end(payload, position)
    if flags & FLAG_HEADER_CRC:
        checksum = zlib.crc32(payload[start:position]) & 0xFFFF
        if int.from_bytes(payload[position : position + 2], "little") != checksum:
            raise damaged(Codec.GZIP, start, "its header has another checksum")
        position += 2
    if position > len(payload):
        raise damaged(Codec.GZIP, start, "its header is cut off")
    return position


def _text_end(payload: memoryview, start: int) -> int:
    """Return the position behind a text that a zero ends, or one behind the payload; few bytes are copied at once."""
    for position in range(start, len(payload), _STEP_SIZE):
        length = bytes(payload[position : position + _STEP_SIZE]).find(0)
        if length >= 0:
            return position + length + 1
    return len(payload) + 1
