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

import numpy as np
from cramjam import DecompressionError as CramjamError
from cramjam import lz4
from xxhash import xxh32_intdigest

from logstore.codec.outcome import ByteArray, over_cap
from logstore.errors import DecompressionError
from logstore.model import LEVELS, Codec

MAGIC = b"\x04\x22\x4d\x18"
FLG_PLAIN = 0x60
FLG_BLOCK_CHECKSUM, FLG_CONTENT_SIZE, FLG_CONTENT_CHECKSUM = 0x10, 0x08, 0x04
HEADER_SIZE = 7
STORED = 0x80000000
# a byte of a block lengthens a match by at most 255; `_decode_block` needs capacities that are multiples of 256
EXPANSION_MAX = 256

CHUNK_SIZE = 2048

WRITTEN_HEADER = MAGIC + b"\x60\x40\x82"
WRITTEN_BLOCK_SIZE = 64 * 1024
END_MARK = bytes(4)
CHECKSUM_SIZE = 4
HC_LEVEL_MIN = 3  # below, cramjam makes frames with the fast compressor


def decode_one(payload: memoryview, size_max: int, magic: int = 2) -> ByteArray | None:
    """Decompress a frame without options, as Kafka writes it; return None for any other payload.

    Raises DecompressionError above `size_max`.
    """
    if len(payload) < HEADER_SIZE or payload[:4] != MAGIC or payload[4] != FLG_PLAIN:
        return None
    if payload[5] not in (0x40, 0x50, 0x60, 0x70):
        return None
    if magic > 0 and payload[6] != (xxh32_intdigest(payload[4:6]) >> 8) & 0xFF:
        return None
    block_size_max = 1 << (2 * (payload[5] >> 4) + 8)
    blocks = []
    size_bound = 0
    position = HEADER_SIZE
    while True:
        start = position + 4
        if start > len(payload):
            return None
        word = int.from_bytes(payload[position:start], "little")
        if word & ~STORED == 0:
            break
        position = start + (word & ~STORED)
        if position > len(payload) or position - start > block_size_max:
            return None
        is_stored = word >= STORED
        capacity = position - start if is_stored else min(block_size_max, EXPANSION_MAX * (position - start))
        blocks.append((payload[start:position], is_stored, capacity))
        size_bound += capacity
    data = np.empty(min(size_bound, size_max), np.uint8)
    view = data.data
    size = 0
    try:
        for block, is_stored, capacity in blocks:
            if is_stored:
                view[size : size + capacity] = block
                size += capacity
            else:
                block_size = _decode_block(block, view[size : size + capacity], capacity)
                if block_size == 0:
                    return None
                size += block_size
    except (CramjamError, ValueError):
        if size + capacity > size_max:
            raise over_cap(size_max) from None
        return None
    return data[:size]


def _decode_block(block: memoryview, place: memoryview, capacity: int) -> int:
    """Decode a raw block into `place`; return how many bytes it has.

    cramjam takes a block with or without its size before it, and if one reading fails it tries the other. The capacity
    is put before the block as its size: read as part of a block, these four bytes begin with a match before the start,
    so the second reading always fails.
    """
    return lz4.decompress_block_into(capacity.to_bytes(4, "little") + block, place)


def _error(message: str | None, java_class: str = "java.io.IOException") -> DecompressionError:
    return DecompressionError(message, java_class=java_class)


def _premature_end() -> DecompressionError:
    return _error("Stream ended prematurely")


def _underflow() -> DecompressionError:
    return _error(None, "java.nio.BufferUnderflowException")


class Lz4Input:
    """Model of `Lz4BlockInputStream` over the payload."""

    def __init__(self, payload: memoryview, magic: int, payload_offset: int) -> None:
        self.payload = payload
        self.payload_offset = payload_offset
        self.block = b""
        self.block_position = 0
        self.ended = False
        if len(payload) < HEADER_SIZE - 1:
            raise _premature_end()
        if payload[:4] != MAGIC:
            raise _error("Stream unsupported (invalid magic bytes)")
        self.flags = _checked_flags(payload[4])
        self.block_size_max = _block_size_max(payload[5])
        self.position = 6
        if self.flags & FLG_CONTENT_SIZE:
            if len(payload) < self.position + 8:
                raise _premature_end()
            self.position += 8
        self._check_header(magic)

    def _check_header(self, magic: int) -> None:
        end = self.position
        self.position += 1
        if magic == 0:
            if end == len(self.payload):
                raise _error(f"newPosition > limit: ({end + 1} > {end})", "java.lang.IllegalArgumentException")
            return
        if end == len(self.payload):
            raise _underflow()
        if self.payload[end] != (xxh32_intdigest(self.payload[4:end]) >> 8) & 0xFF:
            raise _error("Stream frame descriptor corrupted")

    def read(self, size: int) -> bytes | None:
        if not self.ended and self.available() == 0:
            self._read_block()
        if self.ended:
            return None
        piece = self.block[self.block_position : self.block_position + size]
        self.block_position += len(piece)
        return piece

    def available(self) -> int:
        return len(self.block) - self.block_position

    def _read_block(self) -> None:
        word = self._uint32()
        if word is None:
            raise _premature_end()
        size = word & ~STORED
        if size == 0:
            self.ended = True
            if self.flags & FLG_CONTENT_CHECKSUM and self._uint32() is None:
                raise _underflow()
            return
        if size > self.block_size_max:
            raise _error(f"Block size {size} exceeded max: {self.block_size_max}")
        compressed = self.payload[self.position : self.position + size]
        if len(compressed) < size:
            raise _premature_end()
        self.block_position = 0
        self.block = bytes(compressed) if word >= STORED else self._decode(compressed)
        self.position += size
        if self.flags & FLG_BLOCK_CHECKSUM:
            self._check_block(compressed)

    def _check_block(self, compressed: memoryview) -> None:
        checksum = self._uint32()
        if checksum is None:
            raise _underflow()
        if checksum != xxh32_intdigest(compressed):
            raise _error("Block checksum mismatch")

    def _decode(self, compressed: memoryview) -> bytes:
        capacity = min(self.block_size_max, EXPANSION_MAX * len(compressed))
        data = np.empty(capacity, np.uint8)
        try:
            size = _decode_block(compressed, data.data, capacity)
        except CramjamError:
            raise self._refused_block(compressed) from None
        return data[:size].tobytes()

    def _refused_block(self, compressed: memoryview) -> DecompressionError:
        from logstore.codec.lz4_block import refused_position

        position = self.payload_offset + self.position + refused_position(compressed, self.block_size_max) + 1
        return _error(f"net.jpountz.lz4.LZ4Exception: Error decoding offset {position} of input buffer")

    def _uint32(self) -> int | None:
        if self.position + 4 > len(self.payload):
            return None
        self.position += 4
        return int.from_bytes(self.payload[self.position - 4 : self.position], "little")


def _checked_flags(flags: int) -> int:
    if flags & 3:
        raise _error("Reserved bits must be 0", "java.lang.RuntimeException")
    if not flags & 0x20:
        raise _error("Dependent block stream is unsupported", "java.lang.RuntimeException")
    if flags >> 6 != 1:
        raise _error(f"Version {flags >> 6} is unsupported", "java.lang.RuntimeException")
    return flags


def _block_size_max(descriptor: int) -> int:
    if descriptor & 0x0F:
        raise _error("Reserved2 field must be 0", "java.lang.RuntimeException")
    exponent = descriptor >> 4 & 7
    if exponent < 4:
        raise _error("Block size value must be between 4 and 7", "java.lang.RuntimeException")
    if descriptor & 0x80:
        raise _error("Reserved3 field must be 0", "java.lang.RuntimeException")
    return int(1 << (2 * exponent + 8))


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
