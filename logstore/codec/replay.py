"""The reads of Kafka's record iterators, repeated one by one on a stream that may fail.

When a Java stream fails in a read, the bytes of that read are lost. How many they are depends on the sizes asked for.
So this module asks for the same sizes: through `ChunkedBytesStream` over the codec's stream, for records (magic 2) or
entries of a message set (magic 0, 1).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from logstore.codec.outcome import Decompressed, failed_to_read, over_cap
from logstore.errors import DecompressionError

VARINT_SIZE_MAX = 5
ENTRY_HEADER_SIZE = 12
ENTRY_SIZE_MIN = 14


class Input(Protocol):
    """A codec's `java.io.InputStream`; raises DecompressionError with the class of Java's exception."""

    def read(self, size: int) -> bytes | None:
        """Return up to `size` (> 0) bytes, perhaps none; None at the end."""

    def available(self) -> int:
        """Return `InputStream.available`; 0 ends a read that has got something."""


class ChunkedStream:
    """Kafka's `ChunkedBytesStream`: small reads come out of a chunk, large reads go to the source."""

    def __init__(self, source: Input, chunk_size: int, size_max: int) -> None:
        self.source = source
        self.chunk_size = chunk_size
        self.chunk = b""
        self.position = 0
        self.size_max = size_max
        self.delivered = bytearray()

    def read_byte(self) -> int:
        """Return the next byte, -1 at the end."""
        if self.position >= len(self.chunk):
            self._fill()
            if self.position >= len(self.chunk):
                return -1
        byte = self.chunk[self.position]
        self.position += 1
        self._deliver(bytes([byte]))
        return byte

    def read_fully(self, size: int) -> bool:
        """Deliver `size` bytes (`Utils.readFully`); return False if the stream ends before."""
        left = size
        while left > 0:
            count = self._read(left)
            if count < 0:
                return False
            left -= count
        return True

    def _read(self, size: int) -> int:
        count = 0
        while True:
            piece = self._read_piece(size - count)
            if not piece:
                return count if count > 0 or piece is not None else -1
            self._deliver(piece)
            count += len(piece)
            if count >= size or self.source.available() <= 0:
                return count

    def _read_piece(self, size: int) -> bytes | None:
        if self.position >= len(self.chunk):
            if size >= self.chunk_size:
                return self.source.read(size)
            self._fill()
            if not self.chunk:
                return None
        piece = self.chunk[self.position : self.position + size]
        self.position += len(piece)
        return piece

    def _fill(self) -> None:
        # emptied first: if the source fails, its chunk is lost
        self.chunk = b""
        self.position = 0
        self.chunk = self.source.read(self.chunk_size) or b""

    def _deliver(self, piece: bytes) -> None:
        if len(self.delivered) + len(piece) > self.size_max:
            raise over_cap(self.size_max)
        self.delivered += piece


def replay(source: Input, chunk_size: int, magic: int, size_max: int) -> Decompressed:
    """Read all records (magic 2) or entries (magic 0, 1) that come out of `source`.

    A record with an impossible size ends the replay: no reader gets beyond it.
    """
    stream = ChunkedStream(source, chunk_size, size_max)
    try:
        while _read_record(stream) if magic >= 2 else _read_entry(stream):
            pass
    except DecompressionError as cause:
        return failed_to_read(np.frombuffer(stream.delivered, np.uint8), cause, magic)
    return Decompressed(np.frombuffer(stream.delivered, np.uint8))


def _read_record(stream: ChunkedStream) -> bool:
    """Read a varint size and as many bytes (`DefaultRecord.readFrom(InputStream, …)`); return whether all are there."""
    number = 0
    for shift in range(0, 7 * VARINT_SIZE_MAX, 7):
        byte = stream.read_byte()
        if byte < 0:
            return False
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    else:
        return False
    number &= 0xFFFFFFFF
    return number & 1 == 0 and stream.read_fully(number >> 1)


def _read_entry(stream: ChunkedStream) -> bool:
    """Read offset, int32 size and as many bytes (`DataLogInputStream.nextBatch`); return whether all are there."""
    if not stream.read_fully(ENTRY_HEADER_SIZE):
        return False
    size = int.from_bytes(stream.delivered[-4:], "big", signed=True)
    return size >= ENTRY_SIZE_MIN and stream.read_fully(size)
