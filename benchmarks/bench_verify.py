"""`verify` of an intact partition beside reading its log with checksums, which is the least that a proof takes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from benchmarks.floors import mapped
from benchmarks.measured import Measured, timed
from benchmarks.segments import write_segment
from benchmarks.sizes import MIB, scaled
from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from logstore.columns.batch_table import scan_chunk
from logstore.columns.window_scan import scan_windows
from logstore.disk.mapped import MappedFile
from logstore.folds import segment_indexes
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels.scan import batches as fields

SIZE = scaled(4 * MIB, 1024 * MIB)
BATCH_SIZES = [1024, 16 * 1024]
THREAD_COUNT = 2  # of `scan_windows`, which both read by


@pytest.fixture(scope="module", params=BATCH_SIZES)
def partition(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One segment with its indexes, closed."""
    directory = tmp_path_factory.mktemp(f"data{request.param}") / "orders-0"
    directory.mkdir()
    log = directory / "00000000000000000000.log"
    write_segment(log, SIZE, batch_size=request.param)
    indexes = SegmentIndexes(0)
    with MappedFile(str(log)) as mapped:
        position = 0
        while True:
            table = scan_chunk(mapped.data, position, mapped.size)
            segment_indexes.step(indexes, table, 0, len(table))
            position = table.next_position
            if table.status != fields.MORE:
                break
    indexes.finish()
    log.with_suffix(".index").write_bytes(indexes.offset_index_bytes())
    log.with_suffix(".timeindex").write_bytes(indexes.time_index_bytes())
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    yield directory
    shutil.rmtree(directory)


def read_with_checksums(partition: Path) -> tuple[int, int]:
    """The number of wrong ones, and the sum of those that are right."""
    with MappedFile(str(partition / "00000000000000000000.log")) as log:
        wrong_count = checksum_sum = 0
        for table in scan_windows(log.data, 0, log.size):
            is_right = table.is_valid == 1
            wrong_count += len(table) - int(is_right.sum())
            checksum_sum += int(table.column(fields.CRC)[is_right].sum())
            if len(table):
                log.release(int(table.position[0]), table.next_position)
        return wrong_count, checksum_sum


def test_verify(measured: Measured, partition: Path, request: pytest.FixtureRequest) -> None:
    batch_size = request.node.callspec.params["partition"]
    verified = measured(
        lambda: verify_partition(open_partition(str(partition))),
        title=f"verify of {SIZE / MIB:.4g} MiB, batches of {batch_size:,} bytes, two threads",
        size=SIZE,
        peers={"read with CRC": timed(read_with_checksums, partition)},
        floor=mapped(partition / "00000000000000000000.log", THREAD_COUNT),
        reads=partition.glob("*.log"),
        hashed=lambda verified: [*map(str, verified.findings), *astuple(verified.size)],
    )
    assert verified.findings == ()
    assert verified.size.size > SIZE // 2


def test_read_with_checksums(measured: Measured, partition: Path, request: pytest.FixtureRequest) -> None:
    batch_size = request.node.callspec.params["partition"]
    wrong_count, checksum_sum = measured(
        read_with_checksums,
        partition,
        title=f"read {SIZE / MIB:.4g} MiB with checksums, batches of {batch_size:,} bytes, two threads",
        size=SIZE,
        floor=mapped(partition / "00000000000000000000.log", THREAD_COUNT),
        reads=partition.glob("*.log"),
    )
    assert wrong_count == 0
    assert checksum_sum > 0
