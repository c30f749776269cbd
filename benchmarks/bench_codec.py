"""Codecs: one batch and many decompressed and compressed, beside the libraries alone; and whole segments of compressed
batches decoded with every checksum, beside Kafka's iteration.

Records have 100 bytes, two thirds words and one noise. The decompressors of snappy and lz4 are kernels, beside cramjam;
their floor is a copy of what comes out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.peers.kafka import WarmKafka
from benchmarks.support.data import COMPRESSED, KIB, MIB, SEGMENT, record_stream, scaled, write_compressed_segment
from benchmarks.support.floors import Bytes, Floor, compressing, copying, decompressing, library_over, mapped
from benchmarks.support.logs import decode_all, sums_of
from benchmarks.support.measure import Measured
from logstore.codec import compress, decompress
from logstore.codec.streams import decompress_streams
from logstore.columns.batch_table import scan
from logstore.columns.window_memory import STREAMS_SIZE_MAX
from logstore.layout.batch import CODEC_MASK, HEADER_SIZE
from logstore.model import Codec

Int64Array = npt.NDArray[np.int64]

OF_OURS = (Codec.SNAPPY, Codec.LZ4)  # whose decompressors are kernels
STREAM_SIZE = 16 * 1024
SIZE_MAX = 1 << 30
STREAM_COUNT = 64  # at a time, where many are asked for
LIBRARY_STREAM_COUNT = 64  # that the library alone is given at once, of a segment
THREADS = ["one thread", "two threads"]


def places(size: int) -> tuple[Int64Array, Int64Array]:
    """Return the starts and ends of STREAM_COUNT streams of this size, one behind the other."""
    ends = np.arange(1, STREAM_COUNT + 1) * size
    return ends - size, ends


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.kafka_name)
def test_decompress_batches(measured: Measured, codec: Codec) -> None:
    content = record_stream(STREAM_SIZE)
    payload = compress(codec, memoryview(content))
    data = np.frombuffer(payload * STREAM_COUNT, np.uint8)
    out = np.empty(STREAM_COUNT * 2 * STREAM_SIZE, np.uint8)
    peers = {"cramjam": decompressing(codec, [payload] * STREAM_COUNT).side} if codec in OF_OURS else {}
    starts, ends = measured(
        decompress_streams,
        *(codec, data, *places(len(payload)), out, out.size),
        title=f"decompress {STREAM_COUNT} batches of {STREAM_SIZE // 1024} KiB, {codec.kafka_name}",
        size=STREAM_SIZE * STREAM_COUNT,
        peers=peers,
        floor=streams_floor(codec, payload),
        hashed=lambda places: [out[start:end] for start, end in zip(*places, strict=True)],
    )
    assert [out[start:end].tobytes() for start, end in zip(starts, ends, strict=True)] == [content] * STREAM_COUNT


def streams_floor(codec: Codec, payload: bytes) -> Floor:
    """Return the floor: the library that we call, or a copy of the output where a kernel decompresses."""
    if codec in OF_OURS:
        return copying(STREAM_SIZE * STREAM_COUNT)
    return decompressing(codec, [payload] * STREAM_COUNT)


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_compress_batch(measured: Measured, codec: Codec) -> None:
    stream = memoryview(record_stream(STREAM_SIZE))
    data = measured(
        compress,
        *(codec, stream),
        title=f"compress {STREAM_SIZE // 1024} KiB, {codec.kafka_name}",
        size=STREAM_SIZE,
        floor=compressing(codec, bytes(stream)),
    )
    assert decompress(codec, memoryview(data), 2, SIZE_MAX).data.tobytes() == stream


def partition(directory: Path) -> Path:
    """Make a partition; return the path of its only segment."""
    (directory / "t-0").mkdir()
    return directory / "t-0" / SEGMENT


@pytest.fixture(scope="module", params=COMPRESSED, ids=lambda codec: codec.kafka_name)
def compressed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = partition(tmp_path_factory.mktemp("decode"))
    return path, write_compressed_segment(path, scaled(256 * KIB, 48 * MIB), request.param)


def floor_of(path: Path, thread_count: int) -> Floor:
    """Return the floor on as many threads: all streams decompressed, or a plain file mapped and checksummed."""
    data = np.fromfile(path, np.uint8)
    table = scan(data)
    codec = Codec(int(table.attributes[0]) & CODEC_MASK)
    if codec is Codec.NONE:
        return mapped(path, thread_count)
    starts, ends = table.position + HEADER_SIZE, table.position + table.size
    outs = [np.ones(STREAMS_SIZE_MAX, np.uint8) for _ in range(thread_count)]
    parts = [slice(row, row + LIBRARY_STREAM_COUNT) for row in range(0, len(table), LIBRARY_STREAM_COUNT)]
    inputs = [(starts[part], ends[part], outs[number % thread_count]) for number, part in enumerate(parts)]

    def decompress(part: tuple[Int64Array, Int64Array, Bytes]) -> None:
        decompress_streams(codec, data, *part, STREAMS_SIZE_MAX)

    libraries = {Codec.GZIP: "isal", Codec.ZSTD: "zstandard"}
    return library_over(libraries.get(codec, "decompression alone"), decompress, inputs, thread_count)


def measure_file(measured: Measured, kafka: WarmKafka, segment: tuple[Path, int], threads: str, title: str) -> int:
    """Count the records of a segment beside Kafka's iteration."""
    path, record_count = segment
    is_ahead = threads == "two threads"
    sums = sums_of(path, is_ahead=is_ahead)

    def kafkas() -> float:
        answer = kafka.measure(op="read", file=str(path))
        if (answer["count"], answer["bytes"]) != sums:
            raise RuntimeError(f"Kafka's records and bytes are {answer['count'], answer['bytes']} instead of {sums}")
        return answer["ns"] / 1e9

    return measured(
        lambda: decode_all(path, is_ahead=is_ahead),
        title=title,
        size=path.stat().st_size,
        count=record_count,
        peers={"Kafka": kafkas},
        floor=floor_of(path, THREADS.index(threads) + 1),
        reads=[path],
        hashed=lambda count: (count, *sums),
    )


@pytest.mark.parametrize("threads", THREADS)
def test_decode_segment_of(
    measured: Measured,
    kafka: WarmKafka,
    compressed: tuple[Path, int],
    threads: str,
    request: pytest.FixtureRequest,
) -> None:
    codec = request.node.callspec.params["compressed"].kafka_name
    title = f"decode of {codec} with CRC, {threads}"
    assert measure_file(measured, kafka, compressed, threads, title) == compressed[1]
