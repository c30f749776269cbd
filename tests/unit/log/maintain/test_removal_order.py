"""Segments are removed the last first: whenever a process dies, what is left is a log without a gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.logs import open_partition_log
from tests.support.seams import UnsyncedSeam

BASES = [0, 2, 4, 6, 8]


class Watching(UnsyncedSeam):
    """Lists the segments that are there after each removal of a `.log`."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def unlink(self, path: str) -> None:
        super().unlink(path)
        if path.endswith(".log"):
            self.seen.append(sorted(int(log.stem) for log in Path(path).parent.glob("*.log")))


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Closed, with five segments of two batches each."""
    log = open_partition_log(tmp_path / "t-0")
    for number in range(10):
        if number and not number % 2:
            log.roll()
        log.append_records([b"v%d" % number])
    assert log.state.segments.base_offsets == BASES
    log.close()
    return tmp_path / "t-0"


def test_segments_behind_damage_go_from_the_last_on(partition: Path) -> None:
    path = partition / f"{2:020}.log"
    path.write_bytes(path.read_bytes()[:-1])
    seam = Watching()
    log = open_partition_log(partition, seam=seam, was_clean=False)
    assert seam.seen == [BASES[:4], BASES[:3], BASES[:2]]
    assert (log.state.segments.base_offsets, log.log_end_offset) == ([0, 2], 3)
    log.close()


def test_segments_below_the_start_of_a_log_that_ends_before_go_from_the_last_on(partition: Path) -> None:
    seam = Watching()
    log = open_partition_log(partition, seam=seam, log_start_offset=20)
    assert seam.seen == [BASES[:4], BASES[:3], BASES[:2], BASES[:1], []]
    assert (log.state.segments.base_offsets, log.log_end_offset) == ([20], 20)
    log.close()
