"""The kernels that print: batches and records as the dump has them. Tiny results are known by hash."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import xxhash

from benchmarks.bench_scan import segment_of
from benchmarks.digest import digest
from benchmarks.floors import Floor, reading, touching
from benchmarks.measured import Measured
from benchmarks.sizes import KIB, MIB, scaled
from logstore.columns.batch_table import BatchTable, scan
from logstore.columns.record_table import BatchRecords
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as dump_text
from logstore.kernels.dump import lines as dump_lines
from logstore.kernels.dump import state as dump_state
from logstore.kernels.dump.text import SLACK_SIZE

SIZE_TINY = 256 * KIB
SIZE = scaled(SIZE_TINY, 32 * MIB)
OUT_SIZE = 4 * 1024 * 1024
HASHES = {
    "test_dump_batches[shallow]": "6b66d871fa9a03ad",
    "test_dump_batches[deep]": "9084bd2240b41b39",
    "test_dump_batches[contents]": "3acb809a92c1587f",
    "test_dump_records": "56187212d2566bd6",
}

Bytes = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Bytes:
    """The bytes of a segment of uncompressed batches."""
    return segment_of(tmp_path_factory.mktemp("benchmark"), SIZE)


@pytest.fixture(scope="module")
def table(segment: Bytes) -> BatchTable:
    """Its batches, checksums included."""
    return scan(segment, check_crc=True)


@pytest.fixture
def check_timed(measured: Measured, request: pytest.FixtureRequest) -> Callable[..., None]:
    """`check_timed(size, function, floor)`: time a function that handles `size` bytes; check its result by hash."""

    def run(size: int, function: Callable[[], Bytes | bytes], floor: Floor) -> None:
        result = measured(function, size=size, floor=floor)
        assert len(result) > 0
        if SIZE == SIZE_TINY:
            assert digest(result) == HASHES[request.node.name]

    return run


class Dump:
    """Buffers of the dump kernels with room for one batch of text after the other."""

    def __init__(self, flags: int) -> None:
        self.records = np.zeros((decode.COLUMN_COUNT, 2048), np.int64)
        self.out = np.zeros(OUT_SIZE + SLACK_SIZE, np.uint8)
        self.gaps = np.zeros((2, 64), np.int64)
        self.state = np.zeros(dump_state.STATE_COUNT, np.int64)
        self.state[dump_state.FLAGS] = flags
        self.state[dump_state.RECORD_CAPACITY] = self.records.shape[1]
        self.state[dump_state.OUT_CAPACITY] = OUT_SIZE
        self.state[dump_state.GAP_CAPACITY] = self.gaps.shape[1]

    def text(self) -> Bytes:
        return self.out[: self.state[dump_state.OUT_SIZE]]


@pytest.mark.parametrize("depth", ["shallow", "deep", "contents"])
def test_dump_batches(depth: str, segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    flags = {"shallow": 0, "deep": dump_state.DEEP, "contents": dump_state.DEEP | dump_state.CONTENTS}[depth]
    dump = Dump(flags)

    def dump_all() -> bytes:
        dump.state[dump_state.ROW] = 0
        dump.state[dump_state.PREVIOUS_OFFSET] = -1
        digest = xxhash.xxh64()
        status = dump_state.OUT_FULL
        while status == dump_state.OUT_FULL:
            dump.state[dump_state.OUT_SIZE] = 0
            status = dump_text.dump_batches(
                segment,
                table.matrix,
                table.capacity,
                table.count,
                dump.records,
                dump_lines.LITERALS,
                dump.out,
                dump.gaps,
                dump.state,
            )
            digest.update(dump.text())
        assert status == dump_state.DONE
        return digest.digest()

    floor = touching(segment, table.position) if depth == "shallow" else reading(segment)
    check_timed(segment.size, dump_all, floor)


def test_dump_records(segment: Bytes, table: BatchTable, check_timed: Callable[..., None]) -> None:
    dump = Dump(dump_state.DEEP | dump_state.CONTENTS)
    (chunk,) = BatchRecords(segment, table, 0, dump.state).chunks(dump.records)

    def dump_one() -> Bytes:
        dump.state[[dump_state.CHUNK_ROW, dump_state.OUT_SIZE, dump_state.ATTRIBUTES]] = 0
        dump.state[dump_state.PREVIOUS_OFFSET] = -1
        status = dump_text.dump_records(chunk.data, chunk.matrix, dump_lines.LITERALS, dump.out, dump.gaps, dump.state)
        assert status == dump_state.DONE
        return dump.text()

    check_timed(int(table.size[0]), dump_one, reading(segment[: table.size[0]]))
