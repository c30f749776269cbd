"""Readers beside a process that appends, aborts, rolls and deletes: nothing that they see is torn, and nothing missing.

`LOGSTORE_WRITER_ROUNDS` says how long.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from logstore.errors import DataDirectoryError
from logstore.model import FetchIsolation
from logstore.view.partition_reader import PartitionReader
from tests.stories.busy_writer import open_log
from tests.support.sampling import case_count

ROUND_COUNT = case_count("LOGSTORE_WRITER_ROUNDS", sample=200, whole=1000)


class Consumer:
    """Follows a partition with a reader, and checks every record that it sees."""

    def __init__(self, directory: Path, isolation: FetchIsolation) -> None:
        self.reader = PartitionReader(str(directory))
        self.isolation = isolation
        self.position = 0
        self.seen_count = self.lost_count = self.aborted_count = 0

    def poll(self) -> None:
        self.reader.refresh()
        start = self.reader.bounds.log_start_offset
        if self.position < start:
            self.lost_count += start - self.position
            self.position = start
        records = self.reader.records(self.position, isolation=self.isolation)
        for chunk in records.chunks():
            for record in chunk.to_records():
                assert record.offset >= self.position
                self.check(record.offset, record.value or b"")
                self.position = record.offset + 1
        assert records.position >= self.position
        self.position = records.position

    def check(self, offset: int, value: bytes) -> None:
        is_aborted = value.startswith(b"aborted ")
        assert value.removeprefix(b"aborted ").split()[0] == b"%d" % offset
        assert not (is_aborted and self.isolation is FetchIsolation.READ_COMMITTED)
        self.seen_count += 1
        self.aborted_count += is_aborted


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "orders-0"
    open_log(str(path)).close()
    return path


@pytest.mark.slow
def test_two_consumers_see_every_record_once_and_whole(directory: Path) -> None:
    committed = Consumer(directory, FetchIsolation.READ_COMMITTED)
    uncommitted = Consumer(directory, FetchIsolation.READ_UNCOMMITTED)
    command = [sys.executable, "-m", "tests.stories.busy_writer", str(directory), str(ROUND_COUNT)]
    poll_count = 0
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as writer:
        while writer.poll() is None:
            uncommitted.poll()
            committed.poll()
            poll_count += 1
    assert writer.returncode == 0
    uncommitted.poll()
    committed.poll()
    assert poll_count > 10
    with closing(open_log(str(directory))) as log:
        end = log.log_end_offset
        assert (committed.position, uncommitted.position) == (end, end)
        assert committed.reader.bounds.log_start_offset == log.log_start_offset > 0
    assert uncommitted.seen_count + uncommitted.lost_count + ROUND_COUNT >= end
    assert committed.seen_count > 0
    assert uncommitted.aborted_count > 0


def test_a_reader_that_begins_late_sees_the_same(directory: Path) -> None:
    early = Consumer(directory, FetchIsolation.READ_COMMITTED)
    command = [sys.executable, "-m", "tests.stories.busy_writer", str(directory), "60"]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
    early.reader.refresh()
    late = PartitionReader(str(directory))
    assert early.reader.bounds == late.bounds

    def offsets(reader: PartitionReader) -> list[int]:
        chunks = reader.records(isolation=FetchIsolation.READ_COMMITTED).chunks()
        return [int(offset) for chunk in chunks for offset in chunk.offset]

    assert offsets(early.reader) == offsets(late)
    assert len(offsets(late)) > 100
    for timestamp in (0, -3):
        assert early.reader.offset_for_timestamp(timestamp) == late.offset_for_timestamp(timestamp)


def test_reading_changes_no_file(directory: Path) -> None:
    command = [sys.executable, "-m", "tests.stories.busy_writer", str(directory), "10"]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()}
    reader = PartitionReader(str(directory))
    reader.refresh()
    assert sum(len(chunk) for chunk in reader.records().chunks()) > 0
    assert reader.read(0, 100).data.size > 0
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.iterdir()} == before


def test_bytes_that_were_read_stay_when_the_directory_is_removed(directory: Path) -> None:
    command = [sys.executable, "-m", "tests.stories.busy_writer", str(directory), "10"]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
    reader = PartitionReader(str(directory))
    fetched = reader.read(0, 100_000)
    content = fetched.data.copy()
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    assert np.array_equal(fetched.data, content)
    with pytest.raises(DataDirectoryError):
        reader.refresh()
