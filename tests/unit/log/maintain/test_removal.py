"""What goes from a log: by DeleteRecords, by retention, and in which order."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from logstore.errors import PolicyViolationError
from logstore.log.partition_log import PartitionLog
from tests.support.encoder import SOME_TIME, Batch, Rec
from tests.support.logs import append_batch, open_partition_log
from tests.support.seams import UnsyncedSeam


def opened(directory: Path, policy: str) -> PartitionLog:
    log = open_partition_log(directory / "t-0", {"cleanup.policy": policy})
    log.append_records([b"v", b"w"], [b"k", b"l"])
    return log


@pytest.mark.parametrize("policy", ["delete", "compact,delete", ""])
def test_a_log_that_is_not_only_compacted_lets_records_be_deleted(policy: str, tmp_path: Path) -> None:
    log = opened(tmp_path, policy)
    assert (log.delete_records(1), log.delete_records(-1), log.log_start_offset) == (1, 2, 2)
    log.close()


def test_a_log_that_is_only_compacted_does_not(tmp_path: Path) -> None:
    log = opened(tmp_path, "compact")
    with pytest.raises(PolicyViolationError, match="Records of partition t-0 can not be deleted due to the configured"):
        log.delete_records(-1)
    assert log.log_start_offset == 0
    log.close()


def test_epochs_below_the_new_start_go_from_the_disk_too(tmp_path: Path) -> None:
    log = opened(tmp_path, "delete")
    log.append_records([b"x"], leader_epoch=4)
    checkpoint = Path(log.path) / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n2\n0 0\n4 2\n"
    log.delete_records(1)
    assert checkpoint.read_text() == "0\n2\n0 1\n4 2\n"
    log.delete_records(3)
    assert checkpoint.read_text() == "0\n1\n4 3\n"
    log.close()


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


HOUR_MS = 3_600_000


@pytest.mark.parametrize(("ahead_ms", "is_told"), [(-2 * HOUR_MS, False), (0, False), (1, True), (2 * HOUR_MS, True)])
def test_a_timestamp_ahead_of_the_clock_is_told(
    ahead_ms: int, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"retention.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(2**62)}
    log = open_partition_log(tmp_path / "t-0", config)
    time_ms = SOME_TIME + ahead_ms
    append_batch(log, Batch(0, [Rec(value=b"v")], base_timestamp=time_ms, max_timestamp=time_ms))
    with caplog.at_level(logging.WARNING, "logstore"):
        deleted = log.delete_old_segments(SOME_TIME)
    assert bool(deleted) == (ahead_ms < -HOUR_MS)
    assert ("contains future timestamp(s), making it ineligible to be deleted" in caplog.text) == is_told
    log.close()


@pytest.mark.parametrize(
    ("age_ms", "written_ms", "is_told"),
    [(3 * HOUR_MS, 60_000, True), (2 * HOUR_MS, 60_000, False), (3 * HOUR_MS, 3 * HOUR_MS, False), (0, 60_000, False)],
)
def test_old_timestamps_that_are_deleted_soon_after_they_were_written_are_told(
    age_ms: int, written_ms: int, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_partition_log(tmp_path / "t-0", {"retention.ms": str(HOUR_MS)})
    time_ms = SOME_TIME - age_ms
    append_batch(log, Batch(0, [Rec(value=b"v")], base_timestamp=time_ms, max_timestamp=time_ms))
    written_ns = (SOME_TIME - written_ms) * 1_000_000
    os.utime(tmp_path / "t-0" / f"{0:020}.log", ns=(written_ns, written_ns))
    with caplog.at_level(logging.WARNING, "logstore"):
        deleted = log.delete_old_segments(SOME_TIME)
    assert bool(deleted) == (age_ms > 0)
    assert ("retention deletes up to offset 1 what was written lately" in caplog.text) == is_told
    log.close()


def test_snapshots_go_with_their_segments(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0", {"retention.bytes": "1"})
    for number in range(4):
        append_batch(log, Batch(0, [Rec(value=b"v")], producer_id=7, producer_epoch=0, base_sequence=number))
        log.roll()
    assert sorted(log.state.producers.snapshots) == [1, 2, 3, 4]
    assert len(log.delete_old_segments(SOME_TIME)) == 3
    assert sorted(log.state.producers.snapshots) == [3, 4]
    assert {path.name for path in (tmp_path / "t-0").glob("*.snapshot")} == {f"{3:020}.snapshot", f"{4:020}.snapshot"}
    log.close()
