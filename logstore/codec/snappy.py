"""snappy as snappy-java's `SnappyInputStream` reads it.

A stream is a 16-byte header (magic, version, oldest compatible version), then blocks: int32 big-endian compressed
size, raw snappy. There is no end mark. The header may come again before any block (concatenated streams). Anything
that does not start with the magic is one raw snappy block.
"""

from __future__ import annotations

import numpy as np

from logstore.codec.outcome import ByteArray

MAGIC = b"\x82SNAPPY\x00"
HEADER_SIZE = 16
# The densest element is a 3-byte copy of 64 bytes, so a block that declares more than this cannot be right.
EXPANSION_MAX = 22


def decode_blocks(payload: memoryview, size_max: int) -> ByteArray | None:
    """The bytes of one framed stream; None if it has a second header or a block that is not right."""
    from cramjam import DecompressionError, snappy

    if len(payload) < HEADER_SIZE or payload[:8] != MAGIC:
        return None
    blocks = []
    size = 0
    position = HEADER_SIZE
    while position < len(payload):
        start = position + 4
        position = start + int.from_bytes(payload[start - 4 : start], "big")
        if position > len(payload) or start >= position:
            return None
        block = payload[start:position]
        try:
            block_size = snappy.decompress_raw_len(block)
        except DecompressionError:
            return None
        if block_size > EXPANSION_MAX * len(block):
            return None
        blocks.append((block, size, size + block_size))
        size += block_size
    if size > size_max:
        return None
    data = np.empty(size, np.uint8)
    try:
        for block, start, end in blocks:
            snappy.decompress_raw_into(block, data[start:end])
    except DecompressionError:
        return None
    return data
