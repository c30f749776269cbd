"""Libraries that decompress and compress, over the streams of batches as they are: floors of what has a codec."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import cramjam
import numpy as np
import zstandard
from isal import igzip_lib

from benchmarks.floors import Floor, copying, library, library_over
from logstore.codec import decompress
from logstore.model import Codec

SNAPPY_HEADER_SIZE, LZ4_HEADER_SIZE = 16, 7
LZ4_PLAIN = 1 << 31  # of a block's size: it is not compressed
SIZE_MAX, BLOCK_SIZE_MAX = 1 << 30, 1 << 16


def decompressing(codec: Codec, streams: Sequence[bytes]) -> Floor:
    """The library alone: a call a stream, or a block of one where the framing is not the library's."""
    if codec is Codec.NONE:
        return copying(sum(map(len, streams)))
    if codec is Codec.GZIP:
        return _isal_over(streams)
    if codec is Codec.ZSTD:
        return _zstd_over(streams)
    blocks_of = _snappy_blocks if codec is Codec.SNAPPY else _lz4_blocks
    into = cramjam.snappy.decompress_raw_into if codec is Codec.SNAPPY else cramjam.lz4.decompress_block_into
    out = np.ones(BLOCK_SIZE_MAX, np.uint8)
    return _over(
        "cramjam", lambda block: into(block, out), [block for stream in streams for block in blocks_of(stream)]
    )


def _over(name: str, function: Callable[[bytes], object], inputs: Sequence[bytes]) -> Floor:
    return library_over(name, function, inputs, 1)


def _size_of(codec: Codec, stream: bytes) -> int:
    return len(decompress(codec, memoryview(stream), 2, SIZE_MAX).data)


def _isal_over(streams: Sequence[bytes]) -> Floor:
    size = max(_size_of(Codec.GZIP, stream) for stream in streams)
    return _over("isal", lambda stream: igzip_lib.decompress(stream, igzip_lib.DECOMP_GZIP, 15, size), streams)


def _zstd_over(streams: Sequence[bytes]) -> Floor:
    size = max(_size_of(Codec.ZSTD, stream) for stream in streams)
    context = zstandard.ZstdDecompressor()
    return _over("zstandard", lambda stream: context.decompress(stream, max_output_size=size), streams)


def _snappy_blocks(stream: bytes) -> list[bytes]:
    blocks, position = [], SNAPPY_HEADER_SIZE
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        blocks.append(stream[position + 4 : position + 4 + size])
        position += 4 + size
    return blocks


def _lz4_blocks(stream: bytes) -> list[bytes]:
    """Those that are compressed."""
    blocks, position = [], LZ4_HEADER_SIZE
    while True:
        (size,) = struct.unpack_from("<I", stream, position)
        if size == 0:
            return blocks
        if not size & LZ4_PLAIN:
            blocks.append(stream[position + 4 : position + 4 + size])
        position += 4 + (size & ~LZ4_PLAIN)


def compressing(codec: Codec, stream: bytes) -> Floor:
    """The library that is called, at the level that Kafka has by default."""
    if codec is Codec.NONE:
        return copying(len(stream))
    if codec is Codec.GZIP:
        return library("zlib", zlib.compress, stream)
    if codec is Codec.SNAPPY:
        return library("cramjam", cramjam.snappy.compress_raw, stream)
    if codec is Codec.LZ4:
        return library("cramjam", cramjam.lz4.compress_block, stream)
    return library("cramjam", _zstd_stream, stream)


def _zstd_stream(stream: bytes) -> None:
    compressor = cramjam.zstd.Compressor(level=3)
    compressor.compress(stream)
    compressor.finish()
