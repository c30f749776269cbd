"""LZ4 frames as Kafka's `Lz4BlockInputStream` reads them, and as its `Lz4BlockOutputStream` writes them.

A frame is: magic 0x184D2204 little-endian, FLG (version 01, blocks independent, options), BD (largest block: 64 KiB to
4 MiB), content size if FLG has it, header checksum; then blocks: uint32 little-endian size (bit 31: stored), data,
checksum if FLG has it. A size of 0 ends the frame. A content checksum must be there if FLG has it, but is not compared.
Bytes behind the frame are ignored. In batches of magic 0 the header checksum is not compared: old clients computed it
wrongly.

The writer makes independent blocks of 64 KiB without checksums. Level 9, the default, is LZ4's fast compressor; every
other level is that level of LZ4 HC. cramjam offers HC only for frames, and adds a checksum to each of their blocks,
which the writer removes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cramjam import DecompressionError as CramjamError
from cramjam import lz4
from xxhash import xxh32_intdigest

from logstore.codec.outcome import damaged
from logstore.errors import DecompressionError
from logstore.model import LEVELS, Codec

MAGIC = b"\x04\x22\x4d\x18"
FLG_INDEPENDENT, FLG_BLOCK_CHECKSUM, FLG_CONTENT_SIZE, FLG_CONTENT_CHECKSUM = 0x20, 0x10, 0x08, 0x04
HEADER_SIZE = 7
STORED = 0x80000000
# a byte of a block lengthens a match by at most 255; `_decode` needs capacities that are multiples of 256
EXPANSION_MAX = 256

WRITTEN_HEADER = MAGIC + b"\x60\x40\x82"
WRITTEN_BLOCK_SIZE = 64 * 1024
END_MARK = bytes(4)
CHECKSUM_SIZE = 4
HC_LEVEL_MIN = 3  # below, cramjam makes frames with the fast compressor


def pieces(payload: memoryview, size_max: int, magic: int) -> Iterator[bytes]:
    """Yield the content block by block, as `Lz4BlockInputStream` takes them; raises DecompressionError at damage."""
    flags, block_size_max, position = _read_header(payload, magic)
    while True:
        start = position + 4
        word = int.from_bytes(payload[position:start], "little")
        end = start + (word & ~STORED)
        if start > len(payload) or end > len(payload):
            raise _damaged(position, "a block is cut off")
        if end == start:
            if flags & FLG_CONTENT_CHECKSUM and end + CHECKSUM_SIZE > len(payload):
                raise _damaged(end, "the checksum of the content is cut off")
            return
        if end - start > block_size_max:
            raise _damaged(position, f"a block of {end - start} bytes, of {block_size_max} at most")
        block = payload[start:end]
        position = end
        if flags & FLG_BLOCK_CHECKSUM:
            position += CHECKSUM_SIZE
            if payload[end:position] != xxh32_intdigest(block).to_bytes(CHECKSUM_SIZE, "little"):
                raise _damaged(start, "a block has another checksum")
        yield bytes(block) if word >= STORED else _decode(block, start, block_size_max)


def _damaged(position: int, reason: str) -> DecompressionError:
    return damaged(Codec.LZ4, position, reason)


def _read_header(payload: memoryview, magic: int) -> tuple[int, int, int]:
    """Return a frame's flags, the size of its largest block in bytes, and the position of its first block."""
    if len(payload) < HEADER_SIZE or payload[:4] != MAGIC:
        raise _damaged(0, "this is no frame of lz4")
    flags, descriptor = payload[4], payload[5]
    end = HEADER_SIZE + 8 * bool(flags & FLG_CONTENT_SIZE)
    if flags >> 6 != 1 or flags & 3 or not flags & FLG_INDEPENDENT:
        raise _damaged(4, f"flags {flags:#04x}; Kafka takes independent blocks of version 1")
    exponent = descriptor >> 4
    if descriptor & 0x0F or not 4 <= exponent <= 7:
        raise _damaged(5, f"the size of blocks is {descriptor:#04x}")
    if end > len(payload) or (magic > 0 and payload[end - 1] != (xxh32_intdigest(payload[4 : end - 1]) >> 8) & 0xFF):
        raise _damaged(end - 1, "the header is cut off, or has another checksum")
    return flags, 1 << (2 * exponent + 8), end


def _decode(block: memoryview, start: int, block_size_max: int) -> bytes:
    """Decode a raw block.

    cramjam takes a block with or without its size before it, and if one reading fails it tries the other. The capacity
    is put before the block as its size: read as part of a block, these four bytes begin with a match before the start,
    so the second reading always fails.
    """
    capacity = min(block_size_max, EXPANSION_MAX * len(block))
    data = np.empty(capacity, np.uint8)
    try:
        size = lz4.decompress_block_into(capacity.to_bytes(4, "little") + block, data.data)
        return data[:size].tobytes()
    except CramjamError as error:
        raise _damaged(start, f"this is no block of lz4 ({error})") from None


def compress(payload: memoryview, level: int) -> bytes:
    """Return the payload as a frame, as `Lz4BlockOutputStream` writes it."""
    if level == LEVELS[Codec.LZ4].default:
        parts = _fast_blocks(payload)
    else:
        parts = _slow_blocks(payload, max(level, HC_LEVEL_MIN))
    return b"".join((WRITTEN_HEADER, *parts, END_MARK))


def _fast_blocks(payload: memoryview) -> list[bytes | memoryview]:
    parts: list[bytes | memoryview] = []
    for start in range(0, len(payload), WRITTEN_BLOCK_SIZE):
        source = payload[start : start + WRITTEN_BLOCK_SIZE]
        block = bytes(lz4.compress_block(source, store_size=False))
        if len(block) < len(source):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(source) | STORED).to_bytes(4, "little"), source)
    return parts


def _slow_blocks(payload: memoryview, level: int) -> list[bytes | memoryview]:
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
