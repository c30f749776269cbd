"""Compression and decompression of record streams.

`pieces` of each codec takes what Kafka's Java libraries take, and delivers what stands before the damage. gzip and zstd
have a fast path (`decode_one`) beside it, for one member or frame as Kafka writes it; of LZ4 and snappy the pieces are
whole blocks already. A codec's library is imported on first use.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from logstore.codec.outcome import Decompressed, collect
from logstore.errors import UsageError
from logstore.model import LEVELS, Codec, whole_number

__all__ = ["Decompressed", "checked_level", "compress", "decompress"]

_OF_ONE_PIECE = (Codec.GZIP, Codec.ZSTD)  # with a `decode_one`


def decompress(codec: Codec, payload: memoryview, magic: int, size_max: int) -> Decompressed:
    """Decompress the record stream of one batch (`Compression.wrapForInput`).

    Args:
        codec: of the batch's attributes.
        payload: uint8, 1-D, contiguous: the whole compressed stream.
        magic: of the batch. 0 forgives LZ4's header checksum.
        size_max: bytes; a larger stream is refused with a `DecompressionError`.

    Nothing is raised: the result has the error, and the bytes before the damage.
    """
    if codec is Codec.NONE:
        return Decompressed(np.frombuffer(payload, np.uint8))
    library = library_of(codec)
    if codec in _OF_ONE_PIECE and (data := library.decode_one(payload, size_max)) is not None:
        return Decompressed(np.frombuffer(data, np.uint8))
    return collect(library.pieces(payload, size_max, magic), size_max)


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
    """Return `level`, Kafka's default for None, 0 for a codec without levels; raise UsageError if Kafka refuses it."""
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
    if not levels.least <= whole_number("compression level", level) <= levels.greatest and level != levels.default:
        raise UsageError(
            f"{codec.kafka_name} doesn't support given compression level: {level}",
            expected=f"{levels.least} to {levels.greatest}, or {levels.default}",
            found=level,
            java_class="java.lang.IllegalArgumentException",
        )
    return level


@cache
def library_of(codec: Codec) -> Any:
    """Import and return the module of a codec, with `pieces`, `compress` and perhaps `decode_one`."""
    return import_module(f"logstore.codec.{codec.kafka_name}")
