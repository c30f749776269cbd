"""A log that drops all it has and begins anew: who reads it, and what a crash leaves of what is written next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.lossy_disk import LossyDisk, write_survivor
from tests.support.logs import open_partition_log, records_of


def test_reader_goes_on_with_what_a_restart_drops(tmp_path: Path) -> None:
    """Also with segments that nobody has read before."""
    log = open_partition_log(tmp_path / "t-0")
    for number in range(6):
        log.append_records([b"%d" % number])
        log.roll()
    reader = log.records(0)
    log.truncate_fully_and_start_at(1)
    assert [record.value for chunk in reader.chunks() for record in chunk.to_records()] == [b"%d" % n for n in range(6)]
    assert (log.log_end_offset, records_of(log)) == (1, [])
    log.close()


@pytest.mark.parametrize("is_opened_again", [False, True])
def test_a_recovery_point_above_the_end_hides_no_segment_that_is_not_on_the_disk(
    tmp_path: Path, is_opened_again: bool
) -> None:
    """The checkpoint says 20 until somebody writes it anew; a load looks at the last segment only."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    disk = LossyDisk(directory, "truncated", outcomes=())
    tasks: list[object] = []
    log = open_partition_log(directory, seam=disk, flush_later=tasks.append)
    for number in range(20):
        log.append_records([b"old %d" % number])
    log.flush()
    recovery_point = log.recovery_point
    log.truncate_fully_and_start_at(5)
    if is_opened_again:
        log.close()
        log = open_partition_log(directory, recovery_point=recovery_point, seam=disk, flush_later=tasks.append)
    for number in range(5):
        log.append_records([b"new %d" % number])
    log.roll()
    log.append_records([b"last"])
    survivor = disk.survivor("lost")
    log.close()
    after = write_survivor(survivor, tmp_path / "after" / "t-0")
    again = open_partition_log(after, was_clean=False, recovery_point=recovery_point)
    assert [record.offset for record in records_of(again)] == list(range(5, 10))
    again.close()
