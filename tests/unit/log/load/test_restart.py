"""A log that drops all it has and begins anew: who reads it, and what a crash leaves of what is written next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from logstore.log.config import parse_config
from logstore.log.load import opening
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from tests.crash.lossy_disk import LossyDisk
from tests.support.encoder import SOME_TIME
from tests.support.seams import UnsyncedSeam


def values(log: PartitionLog) -> list[bytes | None]:
    return [record.value for chunk in log.records().chunks() for record in chunk.to_records()]


def test_who_reads_goes_on_with_what_a_restart_drops(tmp_path: Path) -> None:
    """Also with segments that nobody has read before."""
    settings = LoadSettings(True, 0, 0, SOME_TIME, parse_config({}))
    log = opening.open_log(str(tmp_path / "t-0"), settings, seam=UnsyncedSeam(), now_ms=lambda: SOME_TIME)
    for number in range(6):
        log.append_records([b"%d" % number])
        log.roll()
    reader = log.records(0)
    log.truncate_fully_and_start_at(1)
    assert [record.value for chunk in reader.chunks() for record in chunk.to_records()] == [b"%d" % n for n in range(6)]
    assert (log.log_end_offset, values(log)) == (1, [])
    log.close()


@pytest.mark.parametrize("is_opened_again", [False, True])
def test_a_recovery_point_above_the_end_hides_no_segment_that_is_not_on_the_disk(
    tmp_path: Path, is_opened_again: bool
) -> None:
    """The checkpoint says 20 until somebody writes it anew; a load looks at the last segment only."""
    directory = tmp_path / "t-0"
    directory.mkdir()
    disk = LossyDisk(directory, "truncated", outcomes=())
    settings = LoadSettings(True, 0, 0, SOME_TIME, parse_config({}))
    tasks: list[object] = []
    log = opening.open_log(str(directory), settings, seam=disk, now_ms=lambda: SOME_TIME, flush_later=tasks.append)
    for number in range(20):
        log.append_records([b"old %d" % number])
    log.flush()
    settings = replace(settings, recovery_point=log.recovery_point)
    log.truncate_fully_and_start_at(5)
    if is_opened_again:
        log.close()
        log = opening.open_log(str(directory), settings, seam=disk, now_ms=lambda: SOME_TIME, flush_later=tasks.append)
    for number in range(5):
        log.append_records([b"new %d" % number])
    log.roll()
    log.append_records([b"last"])
    survivor = disk.survivor("lost")
    log.close()
    after = tmp_path / "after" / "t-0"
    after.mkdir(parents=True)
    for name, content in survivor:
        (after / name).write_bytes(content)
    again = opening.open_log(str(after), replace(settings, was_clean=False), now_ms=lambda: SOME_TIME)
    assert [record.offset for chunk in again.records().chunks() for record in chunk.to_records()] == list(range(5, 10))
    again.close()
