"""Every kernel alone, on buffers in memory: bytes a second are the size in `extra_info` over the time.

LOGSTORE_BENCH_SIZE sets the bytes of the segment. The results of the default size are known by their hashes.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import xxhash
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.segments import write_segment
from logstore.columns.batch_table import BatchTable, scan
from logstore.columns.record_table import BatchRecords
from logstore.kernels import crc32c, decode, dump_text, text
from logstore.kernels import scan as scan_kernels
from logstore.kernels.text import DECIMAL_SIZE_MAX, SLACK_SIZE

SIZE_DEFAULT = 256 * 1024
SIZE = int(os.environ.get("LOGSTORE_BENCH_SIZE", SIZE_DEFAULT))
OUT_SIZE = 4 * 1024 * 1024
HASHES = {
    "test_crc32c_range": "0ab485b3cf237605",
    "test_crc32c_range_by_tables": "0ab485b3cf237605",
    "test_scan_batches": "70002f6e2e61f073",
    "test_check_batches": "bcc5615133e47337",
    "test_decode_records": "32a5eaa6c22ac31f",
    "test_dump_batches[shallow]": "6b66d871fa9a03ad",
    "test_dump_batches[deep]": "9084bd2240b41b39",
    "test_dump_batches[contents]": "3acb809a92c1587f",
    "test_dump_records": "56187212d2566bd6",
}

Bytes = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Bytes:
    """The bytes of a segment of uncompressed batches."""
    path = tmp_path_factory.mktemp("benchmark") / "00000000000000000000.log"
    write_segment(path, SIZE)
    return np.fromfile(path, np.uint8)


@pytest.fixture(scope="module")
def table(segment: Bytes) -> BatchTable:
    """Its batches, checksums included."""
    return scan(segment, check_crc=True)


@pytest.fixture
def check_timed(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Callable[..., None]:
    """`check_timed(size, function)`: time a function that handles `size` bytes; check what it returns by its hash."""

    def run(size: int, function: Callable[[], Bytes | npt.NDArray[np.int64] | bytes]) -> None:
        result = benchmark(function)
        benchmark.extra_info["bytes"] = size
        assert len(result) > 0
        if SIZE == SIZE_DEFAULT:
            assert xxhash.xxh64_hexdigest(result) == HASHES[request.node.name]

    return run


def test_crc32c_range(segment: Bytes, check_timed: Callable[..., None]) -> None:
    check_timed(segment.size, lambda: b"%08x" % crc32c.crc32c_range(segment, 0, segment.size))


def test_crc32c_range_by_tables(segment: Bytes, check_timed: Callable[..., None]) -> None:
    check_timed(segment.size, lambda: b"%08x" % crc32c.crc32c_range_by_tables(segment, 0, segment.size))


def test_scan_batches(segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    matrix = np.zeros_like(table.matrix)
    result = np.zeros(scan_kernels.RESULT_COUNT, np.int64)

    def scan_all() -> npt.NDArray[np.int64]:
        size = segment.size
        scan_kernels.scan_batches(segment, size, 0, size, size, matrix, matrix.shape[1], result)
        return matrix

    check_timed(segment.size, scan_all)


def test_check_batches(segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    def check_all() -> npt.NDArray[np.int64]:
        scan_kernels.check_batches(segment, table.matrix, table.capacity, 0, table.count)
        return table.matrix

    check_timed(segment.size, check_all)


def test_decode_records(segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    records = BatchRecords(segment, table, 0)
    start = records.state.copy()
    matrix = np.zeros((decode.COLUMN_COUNT, int(table.record_count[0])), np.int64)

    def decode_one() -> npt.NDArray[np.int64]:
        records.state[:] = start
        decode.decode_records(segment, records.state, matrix, matrix.shape[1])
        return matrix

    check_timed(int(table.size[0]), decode_one)


class Dump:
    """Buffers of the dump kernels with room for one batch of text after the other."""

    def __init__(self, flags: int) -> None:
        self.records = np.zeros((decode.COLUMN_COUNT, 2048), np.int64)
        self.out = np.zeros(OUT_SIZE + SLACK_SIZE, np.uint8)
        self.gaps = np.zeros((2, 64), np.int64)
        self.state = np.zeros(dump_text.STATE_COUNT, np.int64)
        self.state[dump_text.FLAGS] = flags
        self.state[dump_text.RECORD_CAPACITY] = self.records.shape[1]
        self.state[dump_text.OUT_CAPACITY] = OUT_SIZE
        self.state[dump_text.GAP_CAPACITY] = self.gaps.shape[1]

    def text(self) -> Bytes:
        return self.out[: self.state[dump_text.OUT_SIZE]]


@pytest.mark.parametrize("depth", ["shallow", "deep", "contents"])
def test_dump_batches(depth: str, segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    flags = {"shallow": 0, "deep": dump_text.DEEP, "contents": dump_text.DEEP | dump_text.CONTENTS}[depth]
    dump = Dump(flags)

    def dump_all() -> bytes:
        dump.state[dump_text.ROW] = 0
        dump.state[dump_text.PREVIOUS_OFFSET] = -1
        digest = xxhash.xxh64()
        status = dump_text.OUT_FULL
        while status == dump_text.OUT_FULL:
            dump.state[dump_text.OUT_SIZE] = 0
            status = dump_text.dump_batches(
                segment,
                table.matrix,
                table.capacity,
                table.count,
                dump.records,
                dump_text.POOL,
                dump.out,
                dump.gaps,
                dump.state,
            )
            digest.update(dump.text())
        assert status == dump_text.DONE
        return digest.digest()

    check_timed(segment.size, dump_all)


def test_dump_records(segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    dump = Dump(dump_text.DEEP | dump_text.CONTENTS)
    (chunk,) = BatchRecords(segment, table, 0, dump.state).chunks(dump.records)

    def dump_one() -> Bytes:
        dump.state[[dump_text.CHUNK_ROW, dump_text.OUT_SIZE, dump_text.ATTRIBUTES]] = 0
        dump.state[dump_text.PREVIOUS_OFFSET] = -1
        status = dump_text.dump_records(chunk.data, chunk.matrix, dump_text.POOL, dump.out, dump.gaps, dump.state)
        assert status == dump_text.DONE
        return dump.text()

    check_timed(int(table.size[0]), dump_one)


@pytest.mark.parametrize("kind", ["ascii", "characters", "broken"])
def test_text_of_utf8(kind: str, benchmark: BenchmarkFixture) -> None:
    part = {"ascii": b"abcdefgh", "characters": "aé世😀".encode(), "broken": b"a\xff\xe4\xb8\xed\xa0\x80"}[kind]
    data = np.frombuffer(part * (SIZE // len(part)), np.uint8)
    out = np.zeros(3 * data.size + SLACK_SIZE, np.uint8)
    size = benchmark(text.text_of_utf8, data, 0, data.size, dump_text.POOL, out)
    benchmark.extra_info["bytes"] = data.size
    printed = {"ascii": part, "characters": part, "broken": "a\ufffd\ufffd\ufffd".encode()}[kind]
    assert out[:size].tobytes() == printed * (SIZE // len(part))


def test_text_of_decimal(benchmark: BenchmarkFixture) -> None:
    values = [sign * 7**power for power in range(22) for sign in (1, -1)]
    out = np.zeros(DECIMAL_SIZE_MAX + SLACK_SIZE, np.uint8)

    def print_all() -> list[int]:
        return [text.text_of_decimal(value, dump_text.POOL, out) for value in values]

    sizes = benchmark(print_all)
    benchmark.extra_info["bytes"] = sum(sizes)
    assert sizes == [len(str(value)) for value in values]
    assert out[: sizes[-1]].tobytes() == str(values[-1]).encode()
