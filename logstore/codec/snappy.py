"""snappy as snappy-java's `SnappyInputStream` reads it.

A stream is a 16-byte header (magic, version, oldest compatible version), then blocks: int32 big-endian size, raw
snappy. There is no end mark, and up to 3 bytes behind the last block are ignored. Another header may stand before any
block (concatenated streams). A payload that does not start with the magic is one raw snappy block.
"""

from __future__ import annotations

from collections.abc import Iterator

from cramjam import DecompressionError as CramjamError
from cramjam import snappy

from logstore.codec.outcome import damaged, over_cap
from logstore.model import Codec

MAGIC = b"\x82SNAPPY\x00"
HEADER_SIZE = 16
# the densest element is a copy of 64 bytes in 3, so a block that declares more than this is broken
EXPANSION_MAX = 22
HEADER = MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
WRITTEN_BLOCK_SIZE = 32 * 1024  # uncompressed


def compress(payload: memoryview, level: int = 0) -> bytes:
    """Return a framed stream of blocks of 32 KiB, as `SnappyOutputStream` writes it; snappy has one level."""
    parts = [HEADER]
    for start in range(0, len(payload), WRITTEN_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(payload[start : start + WRITTEN_BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def pieces(payload: memoryview, size_max: int, magic: int) -> Iterator[bytes]:
    """Yield the content block by block, as `SnappyInputStream` takes them; raises DecompressionError at damage."""
    if len(payload) < HEADER_SIZE or payload[:8] != MAGIC:
        yield _block(payload, 0, len(payload), size_max)
        return
    position = HEADER_SIZE
    while len(payload) - position >= 4:
        start = position + 4
        if payload[position:start] == MAGIC[:4]:
            if payload[position : position + 8] != MAGIC:  # Java takes a wrong magic for the end
                return
            position = _header_end(payload, position)
            continue
        position = start + int.from_bytes(payload[position:start], "big")
        if position > len(payload):
            raise damaged(Codec.SNAPPY, start, f"a block of {position - start} bytes is cut off")
        yield _block(payload, start, position, size_max)


def _header_end(payload: memoryview, start: int) -> int:
    """Return the position behind a header within the stream, as streams that are joined have it."""
    end = start + HEADER_SIZE
    version = int.from_bytes(payload[start + 8 : start + 12], "big", signed=True)
    if end > len(payload) or version < 1:
        raise damaged(Codec.SNAPPY, start, "a header is cut off, or of an unknown version")
    return end


def _block(payload: memoryview, start: int, end: int, size_max: int) -> bytes:
    """Decode the raw block at `payload[start:end]`; its size is bounded before it is allocated."""
    block = payload[start:end]
    try:
        size = snappy.decompress_raw_len(block) if len(block) > 0 else None
        if size is None or size > EXPANSION_MAX * len(block):
            raise damaged(Codec.SNAPPY, start, "this is no block of snappy")
        if size > size_max:
            raise over_cap(size_max)
        return bytes(snappy.decompress_raw(block))
    except CramjamError as error:
        raise damaged(Codec.SNAPPY, start, f"this is no block of snappy ({error})") from None
