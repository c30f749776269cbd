"""One batch decompressed and compressed: 100-byte records, half words and half noise; the floor is the library.

The decompressors of snappy and lz4 are kernels, beside cramjam, and their floor is a copy of what comes out."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable

import cramjam
import numpy as np
import numpy.typing as npt
import pytest
import xxhash

from benchmarks.floors import Floor, copying
from benchmarks.library_floors import compressing, decompressing
from benchmarks.measured import Measured
from logstore.codec import compress, decompress
from logstore.codec.streams import decompress_streams
from logstore.kernels.codec.copying import SLACK_SIZE
from logstore.kernels.codec.streams import decompress_plain_streams
from logstore.model import Codec

Int64Array = npt.NDArray[np.int64]

COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
OF_OURS = (Codec.SNAPPY, Codec.LZ4)  # whose decompressors are kernels
STREAM_SIZE = 16 * 1024
STREAM_HASH = 0x7040278C889A54C9
SIZE_MAX = 1 << 30
STREAM_COUNT = 64  # at a time, where many are asked for


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
def test_decompress_a_batch(measured: Measured, codec: Codec) -> None:
    data = ENCODERS[codec](record_stream(STREAM_SIZE))
    outcome = measured(
        decompress,
        *(codec, memoryview(data), 2, SIZE_MAX),
        title=f"decompress {STREAM_SIZE // 1024} KiB, {codec.kafka_name}",
        size=STREAM_SIZE,
        floor=decompressing(codec, [data]),
        hashed=lambda outcome: outcome.data,
    )
    assert outcome.error is None
    assert xxhash.xxh64_intdigest(outcome.data) == STREAM_HASH


def places(size: int) -> tuple[Int64Array, Int64Array]:
    """Where streams of a size start and end, one behind the other."""
    ends = np.arange(1, STREAM_COUNT + 1) * size
    return ends - size, ends


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.kafka_name)
def test_decompress_batches(measured: Measured, codec: Codec) -> None:
    payload = ENCODERS[codec](record_stream(STREAM_SIZE))
    data = np.frombuffer(payload * STREAM_COUNT, np.uint8)
    out = np.empty(STREAM_COUNT * 2 * STREAM_SIZE, np.uint8)
    peers = {"cramjam": decompressing(codec, [payload] * STREAM_COUNT).side} if codec in OF_OURS else {}
    starts, ends = measured(
        decompress_streams,
        *(codec, data, *places(len(payload)), out, out.size),
        title=f"decompress {STREAM_COUNT} batches of {STREAM_SIZE // 1024} KiB, {codec.kafka_name}",
        size=STREAM_SIZE * STREAM_COUNT,
        peers=peers,
        floor=floor_of(codec, payload),
        hashed=lambda places: [out[start:end] for start, end in zip(*places, strict=True)],
    )
    streams = [out[start:end] for start, end in zip(starts, ends, strict=True)]
    assert {xxhash.xxh64_intdigest(stream) for stream in streams} == {STREAM_HASH}
    assert len(streams) == STREAM_COUNT


def floor_of(codec: Codec, payload: bytes) -> Floor:
    """Of so many streams: the library that ours calls; where the decompressor is ours, what comes out, copied."""
    if codec in OF_OURS:
        return copying(STREAM_SIZE * STREAM_COUNT)
    return decompressing(codec, [payload] * STREAM_COUNT)


@pytest.mark.parametrize("codec", OF_OURS, ids=lambda codec: codec.kafka_name)
def test_decompress_plain_streams(measured: Measured, codec: Codec) -> None:
    payload = ENCODERS[codec](record_stream(STREAM_SIZE))
    data = np.frombuffer(payload * STREAM_COUNT, np.uint8)
    size = STREAM_SIZE * STREAM_COUNT
    out, out_ends = np.empty(size + SLACK_SIZE, np.uint8), np.empty(STREAM_COUNT, np.int64)
    count = measured(
        decompress_plain_streams,
        *(int(codec), data, data.size, *places(len(payload)), STREAM_COUNT, out, size, size, out_ends),
        title=f"kernel: decompress {STREAM_COUNT} batches of {STREAM_SIZE // 1024} KiB, {codec.kafka_name}",
        size=size,
        floor=floor_of(codec, payload),
        hashed=lambda count: (count, out[:size]),
    )
    assert count == STREAM_COUNT
    assert xxhash.xxh64_intdigest(out[size - STREAM_SIZE : size]) == STREAM_HASH


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_compress_a_batch(measured: Measured, codec: Codec) -> None:
    stream = memoryview(record_stream(STREAM_SIZE))
    data = measured(
        compress,
        *(codec, stream),
        title=f"compress {STREAM_SIZE // 1024} KiB, {codec.kafka_name}",
        size=STREAM_SIZE,
        floor=compressing(codec, bytes(stream)),
    )
    assert xxhash.xxh64_intdigest(decompress(codec, memoryview(data), 2, SIZE_MAX).data) == STREAM_HASH
