"""snappy as snappy-java's `SnappyInputStream` reads it.

A stream is a 16-byte header (magic, version, oldest compatible version), then blocks: int32 big-endian size, raw
snappy. There is no end mark, and up to 3 bytes behind the last block are ignored. Another header may stand before any
block (concatenated streams). A payload that does not start with the magic is one raw snappy block.
"""

from __future__ import annotations

import numpy as np
from cramjam import DecompressionError as CramjamError
from cramjam import snappy

from logstore.codec.outcome import ByteArray, array_refusal, over_cap
from logstore.errors import DecompressionError

MAGIC = b"\x82SNAPPY\x00"
HEADER_SIZE = 16
# the densest element is a copy of 64 bytes in 3, so a block that declares more than this is broken
EXPANSION_MAX = 22

CHUNK_SIZE = 2048
BLOCK_SIZE_MAX = 0x20000000
HEADER = MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
WRITTEN_BLOCK_SIZE = 32 * 1024  # uncompressed


def decode_one(payload: memoryview, size_max: int, magic: int = 2) -> ByteArray | None:
    """Decompress one framed stream; return None if it has a second header or a broken block.

    Raises DecompressionError above `size_max`.
    """
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
        except CramjamError:
            return None
        if block_size > EXPANSION_MAX * len(block):
            return None
        blocks.append((block, size, size + block_size))
        size += block_size
    if size > size_max:
        raise over_cap(size_max)
    data = np.empty(size, np.uint8)
    view = data.data
    try:
        for block, start, end in blocks:
            snappy.decompress_raw_into(block, view[start:end])
    except CramjamError:
        return None
    return data


def compress(payload: memoryview, level: int = 0) -> bytes:
    """Return a framed stream of blocks of 32 KiB, as `SnappyOutputStream` writes it; snappy has one level."""
    parts = [HEADER]
    for start in range(0, len(payload), WRITTEN_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(payload[start : start + WRITTEN_BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _error(message: str, java_class: str = "java.io.IOException") -> DecompressionError:
    return DecompressionError(message, java_class=java_class)


def _snappy_io_error(code: str, message: str) -> DecompressionError:
    return _error(f"[{code}] {message}", "org.xerial.snappy.SnappyIOException")


def _snappy_error(code: str, message: str) -> DecompressionError:
    """Return a `java.lang.Error`, which passes Kafka's catch blocks."""
    return _error(f"[{code}] {message}", "org.xerial.snappy.SnappyError")


def decode_block(block: memoryview, size_max: int) -> bytes:
    """Decode a raw block; errors are those of `Snappy.uncompressedLength`, `new byte[]` and `Snappy.uncompress`."""
    try:
        size = snappy.decompress_raw_len(block) if len(block) > 0 else None
    except CramjamError:
        size = None
    if size is None:
        raise _error("PARSING_ERROR(2)")
    if size >= 1 << 31:
        raise _error(str(size - (1 << 32)), "java.lang.NegativeArraySizeException")
    refusal = array_refusal(size)
    if refusal is not None:
        raise _error(refusal, "java.lang.OutOfMemoryError")
    if size > EXPANSION_MAX * len(block):
        raise _error("FAILED_TO_UNCOMPRESS(5)")
    if size > size_max:
        raise over_cap(size_max)
    try:
        return bytes(snappy.decompress_raw(block))
    except CramjamError:
        raise _error("FAILED_TO_UNCOMPRESS(5)") from None


class SnappyInput:
    """Model of `SnappyInputStream` over the payload."""

    def __init__(self, payload: memoryview, size_max: int) -> None:
        self.payload = payload
        self.size_max = size_max
        self.position = HEADER_SIZE
        self.block = b""
        self.block_position = 0
        self.ended = False
        if len(payload) == 0:
            raise _snappy_io_error("EMPTY_INPUT", "Cannot decompress empty stream")
        if len(payload) < HEADER_SIZE or payload[:8] != MAGIC:
            self.ended = True
            self.block = decode_block(payload, size_max)

    def read(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            if self.block_position < len(self.block):
                piece = self.block[self.block_position : self.block_position + size - len(data)]
                self.block_position += len(piece)
                data += piece
            elif not self._next_block():
                return bytes(data) or None
        return bytes(data)

    def available(self) -> int:
        if self.block_position < len(self.block) or self._next_block():
            return len(self.block) - self.block_position
        return 0

    def _take(self, size: int) -> memoryview:
        """Return the next `size` bytes of the payload; fewer at its end, which then ends the stream."""
        taken = self.payload[self.position : self.position + size]
        self.position += len(taken)
        self.ended = len(taken) < size
        return taken

    def _next_block(self) -> bool:
        """Decode the next block (`hasNextChunk`); return False at the end."""
        while not self.ended:
            self.block = b""
            self.block_position = 0
            word = self._take(4)
            if len(word) < 4:
                return False
            if word == MAGIC[:4]:
                if not self._is_header(self._take(HEADER_SIZE - 4)):
                    return False
                continue
            self.block = decode_block(self._take_block(int.from_bytes(word, "big", signed=True)), self.size_max)
            return True
        return False

    def _is_header(self, rest: memoryview) -> bool:
        """Return whether `rest` continues a header; Java takes a wrong magic for the end, but only in this call."""
        if len(rest) < HEADER_SIZE - 4:
            raise _snappy_io_error("FAILED_TO_UNCOMPRESS", "Insufficient header size in a concatenated block")
        if rest[:4] != MAGIC[4:]:
            return False
        version = int.from_bytes(rest[4:8], "big", signed=True)
        if version < 1:
            raise _snappy_io_error(
                "INCOMPATIBLE_VERSION",
                f"Compressed with an incompatible codec version {version}. At least version 1 is required",
            )
        return True

    def _take_block(self, size: int) -> memoryview:
        if size < 0:
            raise _snappy_error("INVALID_CHUNK_SIZE", f"chunkSize is too big or negative : {size}")
        if size > BLOCK_SIZE_MAX:
            raise _snappy_error(
                "FAILED_TO_UNCOMPRESS",
                f"Received chunkSize {size:,} is greater than max configured chunk size {BLOCK_SIZE_MAX:,}",
            )
        refusal = array_refusal(size)
        if refusal is not None:
            raise _snappy_error("INVALID_CHUNK_SIZE", refusal)
        block = self.payload[self.position : self.position + size]
        self.position += len(block)
        if len(block) < size:
            raise _error("failed to read chunk")
        return block
