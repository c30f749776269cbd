"""Batches to records: files with every checksum beside Kafka's iteration, memory beside the Python clients' parsers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.bench_scan import segment_of
from benchmarks.decoding import decode_all, sums_of
from benchmarks.floors import Bytes, Floor, library_over, mapped, reading
from benchmarks.measured import Growth, Measured
from benchmarks.peers.python_clients import PARSERS, parsed
from benchmarks.peers.two_processes import two_processes
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_compressed_segment, write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.codec.streams import decompress_streams
from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.columns.record_windows import RecordWindow, record_windows
from logstore.columns.window_memory import STREAMS_SIZE_MAX
from logstore.kernels.decode import records as decode
from logstore.layout.batch import CODEC_MASK, HEADER_SIZE
from logstore.model import Codec

Int64Array = npt.NDArray[np.int64]

STREAM_COUNT = 64  # that the library alone is given at once
CODECS = [codec for codec in Codec if codec is not Codec.NONE]
THREADS = ["one thread", "two threads"]


def partition(directory: Path) -> Path:
    """The path of the only segment of a partition."""
    (directory / "t-0").mkdir()
    return directory / "t-0" / "00000000000000000000.log"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = partition(tmp_path_factory.mktemp("decode"))
    return path, write_segment(path, scaled(256 * KIB, 256 * MIB))


@pytest.fixture(scope="module", params=CODECS, ids=lambda codec: codec.kafka_name)
def compressed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = partition(tmp_path_factory.mktemp("decode"))
    return path, write_compressed_segment(path, scaled(256 * KIB, 48 * MIB), request.param)


def floor_of(path: Path, thread_count: int) -> Floor:
    """Decompression alone where it is, over all streams; else the file mapped and checksummed; on as many threads."""
    data = np.fromfile(path, np.uint8)
    table = scan(data)
    codec = Codec(int(table.attributes[0]) & CODEC_MASK)
    if codec is Codec.NONE:
        return mapped(path, thread_count)
    starts, ends = table.position + HEADER_SIZE, table.position + table.size
    outs = [np.ones(STREAMS_SIZE_MAX, np.uint8) for _ in range(thread_count)]
    parts = [slice(row, row + STREAM_COUNT) for row in range(0, len(table), STREAM_COUNT)]
    inputs = [(starts[part], ends[part], outs[number % thread_count]) for number, part in enumerate(parts)]

    def decompress(part: tuple[Int64Array, Int64Array, Bytes]) -> None:
        decompress_streams(codec, data, *part, STREAMS_SIZE_MAX)

    libraries = {Codec.GZIP: "isal", Codec.ZSTD: "zstandard"}
    return library_over(libraries.get(codec, "decompression alone"), decompress, inputs, thread_count)


def measure_file(measured: Measured, kafka: WarmKafka, segment: tuple[Path, int], threads: str, title: str) -> int:
    """Records of a segment that ours and Kafka's iteration count."""
    path, record_count = segment
    is_ahead = threads == "two threads"
    sums = sums_of(path, is_ahead=is_ahead)

    def kafkas() -> float:
        answer = kafka.measure(op="read", file=str(path))
        if (answer["count"], answer["bytes"]) != sums:
            raise RuntimeError(f"Kafka's records and bytes are {answer['count'], answer['bytes']} instead of {sums}")
        return answer["ns"] / 1e9

    with two_processes(path, record_count) as both:
        return measured(
            lambda: decode_all(path, is_ahead=is_ahead),
            title=title,
            size=path.stat().st_size,
            count=record_count,
            peers={"Kafka": kafkas, **({"two processes": both} if is_ahead else {})},
            floor=floor_of(path, THREADS.index(threads) + 1),
            reads=[path],
            hashed=lambda count: (count, *sums),
        )


@pytest.mark.parametrize("threads", THREADS)
def test_decode_file(measured: Measured, kafka: WarmKafka, plain: tuple[Path, int], threads: str) -> None:
    title = f"decode with CRC, {threads}"
    assert measure_file(measured, kafka, plain, threads, title) == plain[1]


@pytest.mark.parametrize("threads", THREADS)
def test_decode_file_of(
    measured: Measured,
    kafka: WarmKafka,
    compressed: tuple[Path, int],
    threads: str,
    request: pytest.FixtureRequest,
) -> None:
    codec = request.node.callspec.params["compressed"].kafka_name
    title = f"decode of {codec} with CRC, {threads}"
    assert measure_file(measured, kafka, compressed, threads, title) == compressed[1]


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB))
def test_decode_in_memory(measured: Measured, tmp_path: Path, size: int) -> None:
    """Without checksums, as the two parsers; they make a Python object of each record, we a table."""
    data = segment_of(tmp_path, size)
    content, table = data.tobytes(), scan(data)
    record_count = int(table.record_count.sum())

    def tables() -> list[RecordTable]:
        windows = record_windows(data, table, np.arange(len(table)))
        return [window.records for window in windows if isinstance(window, RecordWindow)]

    few, value_length = size <= 4 * MIB, sum(int(each.value_size.sum()) for each in tables())
    found = measured(
        tables,
        title=f"decode {size / MIB:.4g} MiB in memory",
        size=data.size,
        count=record_count,
        peers={name: parsed(name, content, record_count, value_length) for name in PARSERS} if few else {},
        floor=reading(data),
        growth=Growth("bytes of a segment", "decode", size),
        hashed=lambda found: [each.matrix[:, : len(each)] for each in found],
    )
    assert sum(map(len, found)) == record_count


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Bytes:
    return segment_of(tmp_path_factory.mktemp("decode"), 64 * KIB)


def test_decode_records(measured: Measured, segment: Bytes) -> None:
    table = scan(segment)
    records = BatchRecords(segment, table, 0)
    start = records.state.copy()
    matrix = np.zeros((decode.COLUMN_COUNT, int(table.record_count[0])), np.int64)

    def decode_one() -> npt.NDArray[np.int64]:
        records.state[:] = start
        decode.decode_records(segment, records.state, matrix, matrix.shape[1])
        return matrix

    size = int(table.size[0])
    measured(decode_one, size=size, count=matrix.shape[1], floor=reading(segment[:size]))
    assert matrix[decode.OFFSET].tolist() == list(range(matrix.shape[1]))
