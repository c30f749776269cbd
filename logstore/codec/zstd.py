"""Zstandard as zstd-jni's `ZstdInputStreamNoFinalizer` reads it."""

from __future__ import annotations

import numpy as np

from logstore.codec.outcome import ByteArray


def decode(payload: memoryview, size_max: int) -> ByteArray | None:
    from cramjam import DecompressionError, zstd

    try:
        data = zstd.decompress(payload)
    except DecompressionError:
        return None
    return np.frombuffer(data, np.uint8)
