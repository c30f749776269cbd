"""Decompression of Kafka's record streams: what the Java reader would see, to the byte.

Every codec has a fast path for streams that are right in every respect, and a model of the Java stream for all
others: slow, but it delivers as much and fails as Kafka's does.
"""

from __future__ import annotations

from logstore.codec.outcome import Decompressed
from logstore.model import Codec

__all__ = ["Decompressed", "decompress"]


def decompress(codec: Codec, payload: memoryview, magic: int, size_max: int) -> Decompressed:
    """Decompress the record stream of one batch (`CompressionType.wrapForInput`).

    Args:
        codec: of the batch's attributes.
        payload: uint8, 1-D, contiguous: the compressed stream.
        magic: of the batch; 0 forgives LZ4's header checksum, below 2 an error shows its cause.
        size_max: bytes; a stream that is larger is refused.
    """
    import numpy as np

    from logstore.codec import gzip, lz4, snappy, zstd
    from logstore.codec.outcome import EMPTY, failed_to_read, over_cap

    if codec is Codec.NONE:
        return Decompressed(np.frombuffer(payload, np.uint8))
    if codec is Codec.GZIP:
        data = gzip.inflate_one_member(payload, size_max)
    elif codec is Codec.SNAPPY:
        data = snappy.decode_blocks(payload, size_max)
    elif codec is Codec.LZ4:
        data = lz4.decode_plain_frame(payload, magic, size_max)
    else:
        data = zstd.decode(payload, size_max)
    if data is None:
        return failed_to_read(EMPTY, over_cap(size_max), magic)
    return Decompressed(data)
