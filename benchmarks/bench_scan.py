"""The walk over a segment's batches: headers alone, and with every checksum; the kernels of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.floors import Bytes, reading, touching
from benchmarks.measured import Growth, Measured
from benchmarks.segments import write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.columns.batch_table import BatchTable, scan
from logstore.kernels.scan import batches as scan_kernels


def segment_of(directory: Path, size: int) -> Bytes:
    """The bytes of a segment of uncompressed batches."""
    path = directory / "00000000000000000000.log"
    write_segment(path, size)
    return np.fromfile(path, np.uint8)


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Bytes:
    return segment_of(tmp_path_factory.mktemp("scan"), scaled(256 * KIB, 64 * MIB))


@pytest.fixture(scope="module")
def table(segment: Bytes) -> BatchTable:
    """Its batches, checksums included."""
    return scan(segment, check_crc=True)


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB))
@pytest.mark.parametrize("check_crc", [False, True], ids=["headers", "checksums"])
def test_scan(measured: Measured, tmp_path: Path, size: int, check_crc: bool) -> None:
    data = segment_of(tmp_path, size)
    floor = reading(data) if check_crc else touching(data, scan(data).position)
    series = "scan with checksums" if check_crc else "scan of headers"
    table = measured(
        lambda: scan(data, check_crc=check_crc),
        title=f"{series}, {size / MIB:.4g} MiB",
        size=data.size,
        floor=floor,
        growth=Growth("bytes of a segment", series, size),
        hashed=lambda table: table.matrix,
    )
    assert table.next_position == data.size
    assert not check_crc or bool((table.is_valid == 1).all())


def test_scan_batches(measured: Measured, segment: Bytes, table: BatchTable) -> None:
    matrix = np.zeros_like(table.matrix)
    result = np.zeros(scan_kernels.RESULT_COUNT, np.int64)

    def scan_all() -> npt.NDArray[np.int64]:
        size = segment.size
        scan_kernels.scan_batches(segment, size, 0, size, size, matrix, matrix.shape[1], result)
        return matrix

    floor = touching(segment, table.position)
    found = measured(scan_all, size=segment.size, count=len(table), unit="batches", floor=floor)
    assert np.array_equal(found[scan_kernels.CRC], table.matrix[scan_kernels.CRC])


def test_check_batches(measured: Measured, segment: Bytes, table: BatchTable) -> None:
    def check_all() -> npt.NDArray[np.int64]:
        scan_kernels.check_batches(segment, table.matrix, table.capacity, 0, table.count)
        return table.matrix

    measured(check_all, size=segment.size, count=len(table), unit="batches", floor=reading(segment))
    assert (table.is_valid == 1).all()
