"""LZ4 frames as Kafka's `Lz4BlockInputStream` reads them."""

from __future__ import annotations

import numpy as np

from logstore.codec.outcome import ByteArray

MAGIC = b"\x04\x22\x4d\x18"
FLG_BLOCK_CHECKSUM = 0x10
FLG_CONTENT_SIZE = 0x08
FLG_CONTENT_CHECKSUM = 0x04
BLOCK_STORED = 0x80000000
# One byte of a block lengthens a match by at most 255, after the token's own share.
EXPANSION_MAX = 255


def decode_plain_frame(payload: memoryview, magic: int, size_max: int) -> ByteArray | None:
    """The bytes of a frame without any option, as Kafka writes it; None if it is anything but."""
    from cramjam import DecompressionError, lz4
    from xxhash import xxh32_intdigest

    if len(payload) < 7 or payload[:5] != MAGIC + b"\x60" or payload[5] not in (0x40, 0x50, 0x60, 0x70):
        return None
    if magic > 0 and payload[6] != (xxh32_intdigest(payload[4:6]) >> 8) & 0xFF:
        return None
    block_size_max = 1 << (2 * (payload[5] >> 4) + 8)
    blocks = []
    size_bound = 0
    position = 7
    while True:
        start = position + 4
        if start > len(payload):
            return None
        word = int.from_bytes(payload[position:start], "little")
        if word & ~BLOCK_STORED == 0:
            break
        position = start + (word & ~BLOCK_STORED)
        if position > len(payload) or position - start > block_size_max:
            return None
        stored = word >= BLOCK_STORED
        blocks.append((payload[start:position], stored))
        size_bound += position - start if stored else min(block_size_max, EXPANSION_MAX * (position - start))
    data = np.empty(min(size_bound, size_max), np.uint8)
    size = 0
    try:
        for block, stored in blocks:
            if stored:
                data[size : size + len(block)] = block
                size += len(block)
            else:
                block_size = lz4.decompress_block_into(block, data[size : size + block_size_max])
                if block_size == 0:
                    return None
                size += block_size
    except (DecompressionError, ValueError):
        return None
    return data[:size]
