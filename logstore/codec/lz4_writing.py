"""LZ4 frames as Kafka's `Lz4BlockOutputStream` writes them: independent blocks of 64 KiB without checksums.

Level 9, the default, is LZ4's fast compressor; every other level is that level of the slow one (LZ4 HC). cramjam has
the fast one for blocks and the slow one only for frames, whose blocks it gives a checksum each: they are taken out.
"""

from __future__ import annotations

from logstore.codec.levels import LEVELS
from logstore.codec.lz4 import HEADER_SIZE, MAGIC, STORED
from logstore.model import Codec

HEADER = MAGIC + b"\x60\x40\x82"
END_MARK = bytes(4)
BLOCK_SIZE = 64 * 1024
CHECKSUM_SIZE = 4
HC_LEVEL_MIN = 3  # below, cramjam's frames are made by the fast compressor


def compress(payload: memoryview, level: int) -> bytes:
    """A frame of the payload."""
    if level == LEVELS[Codec.LZ4].default:
        parts = _fast_blocks(payload)
    else:
        parts = _slow_blocks(payload, max(level, HC_LEVEL_MIN))
    return b"".join((HEADER, *parts, END_MARK))


def _fast_blocks(payload: memoryview) -> list[bytes | memoryview]:
    from cramjam import lz4

    parts: list[bytes | memoryview] = []
    for start in range(0, len(payload), BLOCK_SIZE):
        source = payload[start : start + BLOCK_SIZE]
        block = bytes(lz4.compress_block(source, store_size=False))
        if len(block) < len(source):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(source) | STORED).to_bytes(4, "little"), source)
    return parts


def _slow_blocks(payload: memoryview, level: int) -> list[bytes | memoryview]:
    from cramjam import lz4

    stream = lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    stream.compress(bytes(payload))
    frame = memoryview(bytes(stream.finish()))
    parts: list[bytes | memoryview] = []
    position = HEADER_SIZE
    while frame[position : position + 4] != END_MARK:
        size = int.from_bytes(frame[position : position + 4], "little") & ~STORED
        end = position + 4 + size
        parts.append(frame[position:end])
        position = end + CHECKSUM_SIZE
    return parts
