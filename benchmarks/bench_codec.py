"""Decompression of one batch: 100-byte records, half words and half noise, as each codec leaves them."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable

import cramjam
import pytest
import xxhash

from logstore.codec import decompress
from logstore.model import Codec

STREAM_SIZE = 16 * 1024
STREAM_HASH = 0x7040278C889A54C9
SIZE_MAX = 1 << 30


def record_stream(size: int) -> bytes:
    dice = random.Random(20261121)
    words = [bytes(dice.choices(b"abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 9))) for _ in range(2000)]
    records = []
    for _ in range(size // 100 + 1):
        text = b" ".join(dice.choices(words, k=14))[:70].ljust(70)
        records.append(text + dice.randbytes(15).hex().encode())
    return b"".join(records)[:size]


def blocks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def snappy_stream(data: bytes) -> bytes:
    stream = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for block in blocks(data, 32 * 1024):
        raw = bytes(cramjam.snappy.compress_raw(block))
        stream += struct.pack(">i", len(raw)) + raw
    return stream


def lz4_frame(data: bytes) -> bytes:
    frame = b"\x04\x22\x4d\x18\x60\x40\x82"
    for block in blocks(data, 64 * 1024):
        raw = bytes(cramjam.lz4.compress_block(block, store_size=False))
        frame += struct.pack("<I", len(raw)) + raw
    return frame + bytes(4)


ENCODERS: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: lambda data: gzip.compress(data, 6, mtime=0),
    Codec.SNAPPY: snappy_stream,
    Codec.LZ4: lz4_frame,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data, level=3)),
}


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_decompress_a_batch(benchmark: Callable[..., object], codec: Codec) -> None:
    payload = memoryview(ENCODERS[codec](record_stream(STREAM_SIZE)))
    outcome = benchmark(decompress, codec, payload, 2, SIZE_MAX)
    assert outcome.error is None  # type: ignore[attr-defined]
    assert xxhash.xxh64_intdigest(outcome.data) == STREAM_HASH  # type: ignore[attr-defined]
