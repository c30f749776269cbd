"""Compression and decompression of record streams, byte for byte as Kafka's Java libraries do it.

Each codec has a fast path for sound streams, and a slow model of the Java stream for all others, which delivers as
many bytes as Kafka's before it fails, and fails with the same error. A codec's library is imported on first use.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from logstore.codec.outcome import EMPTY, Decompressed, failed_to_open
from logstore.errors import DecompressionError, UsageError
from logstore.model import LEVELS, Codec

if TYPE_CHECKING:
    from logstore.codec.replay import Input

__all__ = ["Decompressed", "checked_level", "compress", "decompress"]


def decompress(codec: Codec, payload: memoryview, magic: int, size_max: int, payload_offset: int = 0) -> Decompressed:
    """Decompress the record stream of one batch (`Compression.wrapForInput`, `ChunkedBytesStream`).

    Args:
        codec: of the batch's attributes.
        payload: uint8, 1-D, contiguous: the whole compressed stream.
        magic: of the batch. 0 forgives LZ4's header checksum; below 2 the records are a message set.
        size_max: bytes; a larger stream is refused with a `DecompressionError`.
        payload_offset: bytes of the batch before the payload; positions in LZ4's error texts include it.

    Nothing is raised: the result has the error, and the bytes that were delivered before it.
    """
    if codec is Codec.NONE:
        return Decompressed(np.frombuffer(payload, np.uint8))
    try:
        library = library_of(codec)
        data = library.decode_one(payload, size_max, magic)
        if data is None and codec is Codec.GZIP:
            library.require_size(payload, size_max)
    except DecompressionError as refusal:
        return Decompressed(EMPTY, refusal, refusal)
    if data is not None:
        return Decompressed(np.frombuffer(data, np.uint8))
    return _as_java(codec, payload, magic, size_max, payload_offset)


def compress(codec: Codec, payload: memoryview, level: int | None = None) -> bytes:
    """Compress the records of one v2 batch, framed as Kafka frames them (`Compression.wrapForOutput`).

    Args:
        payload: uint8, 1-D, contiguous: all records.
        level: of `compression.<codec>.level`; None: Kafka's default.

    Raises:
        UsageError: a level that Kafka refuses.
    """
    level = checked_level(codec, level)
    if codec is Codec.NONE:
        return bytes(payload)
    compressed: bytes = library_of(codec).compress(payload, level)
    return compressed


def checked_level(codec: Codec, level: int | None) -> int:
    """Return `level`, or Kafka's default for None; 0 for a codec without levels.

    Raises:
        UsageError: a level that Kafka refuses, with its message.
    """
    levels = LEVELS.get(codec)
    if levels is None:
        if level is None:
            return 0
        raise UsageError(
            f"Compression levels are not defined for this compression type: {codec.kafka_name}",
            found=level,
            java_class="java.lang.UnsupportedOperationException",
        )
    if level is None:
        return levels.default
    if not levels.least <= level <= levels.greatest and level != levels.default:
        raise UsageError(
            f"{codec.kafka_name} doesn't support given compression level: {level}",
            expected=f"{levels.least} to {levels.greatest}, or {levels.default}",
            found=level,
            java_class="java.lang.IllegalArgumentException",
        )
    return level


@cache
def library_of(codec: Codec) -> Any:
    """Import and return the module of a codec, with `decode_one`, `compress`, CHUNK_SIZE and its model of a stream."""
    return import_module(f"logstore.codec.{codec.kafka_name}")


def _as_java(codec: Codec, payload: memoryview, magic: int, size_max: int, payload_offset: int) -> Decompressed:
    """Decompress on the slow path, with the model of the Java stream."""
    from logstore.codec.replay import replay

    try:
        stream, chunk_size = _open(codec, payload, magic, size_max, payload_offset)
    except DecompressionError as cause:
        return failed_to_open(cause)
    return replay(stream, chunk_size, magic, size_max)


def _open(codec: Codec, payload: memoryview, magic: int, size_max: int, payload_offset: int) -> tuple[Input, int]:
    """Return the model of the codec's Java stream, and the size of its chunks."""
    library = library_of(codec)
    if codec is Codec.GZIP:
        return library.GzipInput(payload), library.CHUNK_SIZE
    if codec is Codec.SNAPPY:
        return library.SnappyInput(payload, size_max), library.CHUNK_SIZE
    if codec is Codec.LZ4:
        return library.Lz4Input(payload, magic, payload_offset), library.CHUNK_SIZE
    return library.ZstdInput(payload, size_max), library.CHUNK_SIZE
