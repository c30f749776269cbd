"""`verify` of an intact partition beside reading its log with checksums, which is the least that a proof takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.floors import reading_file
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
from logstore.kernels import scan as fields

SIZE = scaled(4 * MIB, 256 * MIB)
BATCH_SIZES = [1024, 16 * 1024]


@pytest.fixture(scope="module", params=BATCH_SIZES)
def partition(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    return directory


def read_with_checksums(partition: Path) -> int:
    """The number of wrong ones."""
    with MappedFile(str(partition / "00000000000000000000.log")) as log:
        wrong_count = 0
        for table in scan_windows(log.data, 0, log.size):
            wrong_count += int((table.is_valid != 1).sum())
            if len(table):
                log.release(int(table.position[0]), table.next_position)
        return wrong_count


def test_verify(measured: Measured, partition: Path, request: pytest.FixtureRequest) -> None:
    batch_size = request.node.callspec.params["partition"]
    verified = measured(
        lambda: verify_partition(open_partition(str(partition))),
        title=f"verify of {SIZE / MIB:.4g} MiB, batches of {batch_size:,} bytes",
        size=SIZE,
        peers={"read with CRC": timed(read_with_checksums, partition)},
        floor=reading_file(partition / "00000000000000000000.log"),
        hashed=lambda verified: [str(finding) for finding in verified.findings],
    )
    assert verified.findings == ()
    assert verified.size.size > SIZE // 2


def test_read_with_checksums(measured: Measured, partition: Path) -> None:
    path = partition / "00000000000000000000.log"
    assert measured(read_with_checksums, partition, size=SIZE, floor=reading_file(path)) == 0
