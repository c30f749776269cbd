"""Zstandard as zstd-jni's `ZstdInputStreamNoFinalizer` reads it.

Frames and skippable frames may follow one another (RFC 8878, 3.1).

    frame      magic 0xFD2FB528 little-endian, frame header, blocks, XXH64's low 4 bytes if the header says so
    block      3 bytes little-endian: bit 0 last, bits 1-2 type (raw, repeated byte, compressed, reserved), size
    skippable  magic 0x184D2A5?, uint32 little-endian size, data
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import zstandard
from cramjam import zstd

from logstore.codec.outcome import feed
from logstore.model import Codec

BLOCK_HEADER_SIZE = 3
BLOCK_SIZE_MAX = 1 << 17
CHECKSUM_SIZE = 4
REPEATED, COMPRESSED = 1, 2  # types of blocks
# `ZSTD_MAXWINDOWSIZE_DEFAULT`, the default limit of streaming decompression
WINDOW_SIZE_MAX = (1 << 27) + 1


class _OfThread(threading.local):
    """A decompression context for each thread; making one takes longer than decompressing a small batch."""

    def __init__(self) -> None:
        self.context = zstandard.ZstdDecompressor()


_of_thread = _OfThread()


def decode_one(payload: memoryview, size_max: int) -> bytes | None:
    """Decompress a payload that is one frame, as all clients write it.

    Returns None for any other payload: several frames, damage, more than `size_max` (>= 0) bytes.
    """
    try:
        size_bound = _size_bound(payload)
        if size_bound is None:
            return None
        room = min(size_max, size_bound)
        # -1: unknown; else the library allocates as much, whatever `max_output_size` is
        if zstandard.frame_content_size(payload) > room:
            return None
        data = _of_thread.context.decompress(payload, max_output_size=max(room, 1))  # 0 would be no bound
    except zstandard.ZstdError:
        return None
    return data if len(data) <= size_max else None


def pieces(payload: memoryview, size_max: int, magic: int) -> Iterator[bytes]:
    """Yield the content of all frames, piece by piece; raises DecompressionError at damage."""
    position = 0
    while position < len(payload):
        position = yield from feed(Codec.ZSTD, _of_thread.context.decompressobj, zstandard.ZstdError, payload, position)


def compress(payload: memoryview, level: int) -> bytes:
    """Return one frame without content size, flushed before its end, as `ZstdOutputStreamNoFinalizer` writes it."""
    stream = zstd.Compressor(level=level)
    stream.compress(bytes(payload))
    return bytes(stream.flush()) + bytes(stream.finish())


def _size_bound(payload: memoryview) -> int | None:
    """Return the bytes that the only frame of a payload decompresses to at most; None if it is damaged or not alone.

    This checks for the one-shot library call, which ignores bytes behind the frame and, where the frame has its content
    size, checks less than a reader of streams.

    Raises:
        zstandard.ZstdError: the payload does not start with the header of a frame.
    """
    header = zstandard.get_frame_parameters(payload)
    has_size = header.content_size != zstandard.CONTENTSIZE_UNKNOWN
    if header.window_size > WINDOW_SIZE_MAX or (has_size and not 0 < header.content_size <= header.window_size):
        return None
    position, end = zstandard.frame_header_size(payload), len(payload)
    size_bound = word = 0
    while word & 1 == 0:  # the last block has this bit
        if position + BLOCK_HEADER_SIZE > end:
            return None
        word = int.from_bytes(payload[position : position + BLOCK_HEADER_SIZE], "little")
        kind, size = word >> 1 & 3, word >> 3
        position += BLOCK_HEADER_SIZE + (1 if kind == REPEATED else size)
        size_bound += BLOCK_SIZE_MAX if kind == COMPRESSED else min(size, BLOCK_SIZE_MAX)
    return size_bound if position + CHECKSUM_SIZE * header.has_checksum == end else None
