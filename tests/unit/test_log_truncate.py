"""Truncation: what it leaves beside the `.log`, where the log starts then, and in which order segments go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from logstore.log.config import parse_config
from logstore.log.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.crash.lossy_disk import LossyDisk
from tests.naive.encoder import SOME_TIME
from tests.recovery.comparison import UnsyncedSeam

TXN_INDEX = f"{0:020}.txnindex"


def open_log(directory: Path, *, log_start: int = 0, **options: bool) -> PartitionLog:
    settings = LoadSettings(True, 0, log_start, SOME_TIME, parse_config({}))
    options = {"requires_verification": False, **options}
    return PartitionLog.open(str(directory), settings, seam=UnsyncedSeam(), now_ms=lambda: SOME_TIME, **options)


def write(log: PartitionLog, producer_id: int, value: bytes, sequence: int = 0) -> None:
    log.append_records(
        [value], producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )


def end(log: PartitionLog, producer_id: int, *, is_commit: bool) -> None:
    log.append_end_transaction(
        producer_id, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=1, leader_epoch=0
    )


def aborted(log: PartitionLog) -> list[tuple[int, int, int]]:
    """Producer id, first and last offset of the aborted transactions of the only segment."""
    index = log.segments.last.transaction_index
    return list(
        zip(index.producer_ids.tolist(), index.first_offsets.tolist(), index.last_offsets.tolist(), strict=True)
    )


def committed(log: PartitionLog) -> list[bytes | None]:
    reader = log.records(log.log_start_offset, isolation=FetchIsolation.READ_COMMITTED)
    return [record.value for chunk in reader.chunks() for record in chunk.to_records()]


def with_two_aborts(directory: Path) -> PartitionLog:
    """Producer 1: 0, aborted at 1; producer 2: 2, aborted at 3."""
    log = open_log(directory)
    for producer_id in (1, 2):
        write(log, producer_id, b"first")
        end(log, producer_id, is_commit=False)
    assert aborted(log) == [(1, 0, 1), (2, 2, 3)]
    return log


def test_an_abort_that_was_cut_off_is_no_abort_any_more(tmp_path: Path) -> None:
    log = with_two_aborts(tmp_path / "t-0")
    whole = (tmp_path / "t-0" / TXN_INDEX).read_bytes()
    assert log.truncate_to(3)
    assert aborted(log) == [(1, 0, 1)]
    assert (tmp_path / "t-0" / TXN_INDEX).read_bytes() == whole[: len(whole) // 2]
    end(log, 2, is_commit=True)
    assert (aborted(log), committed(log)) == ([(1, 0, 1)], [b"first"])
    log.close()
    again = open_log(tmp_path / "t-0")
    assert (aborted(again), committed(again)) == ([(1, 0, 1)], [b"first"])
    again.close()


def test_a_transaction_that_is_aborted_again_is_in_the_index_once(tmp_path: Path) -> None:
    log = with_two_aborts(tmp_path / "t-0")
    assert log.truncate_to(3)
    write(log, 2, b"more", sequence=1)
    end(log, 2, is_commit=False)
    assert (aborted(log), committed(log)) == ([(1, 0, 1), (2, 2, 4)], [])
    log.close()
    never_cut = open_log(tmp_path / "never-0")
    write(never_cut, 1, b"first")
    end(never_cut, 1, is_commit=False)
    write(never_cut, 2, b"first")
    write(never_cut, 2, b"more", sequence=1)
    end(never_cut, 2, is_commit=False)
    never_cut.close()
    assert (tmp_path / "t-0" / TXN_INDEX).read_bytes() == (tmp_path / "never-0" / TXN_INDEX).read_bytes()


def test_a_log_cut_below_its_start_starts_at_its_end(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for number in range(6):
        log.append_records([b"%d" % number])
    log.delete_records(4)
    assert log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 2, 2)
    log.append_records([b"two"])
    assert committed(log) == [b"two"]
    log.close()


def test_a_log_cut_above_its_start_starts_where_it_did(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for number in range(6):
        log.append_records([b"%d" % number])
    log.delete_records(2)
    assert log.truncate_to(4)
    assert (log.log_start_offset, committed(log)) == (2, [b"2", b"3"])
    log.close()


def test_who_reads_goes_on_with_what_a_truncation_drops(tmp_path: Path) -> None:
    """Also with segments that nobody has read before."""
    log = open_log(tmp_path / "t-0")
    for number in range(6):
        log.append_records([b"%d" % number])
        log.roll()
    reader = log.records(0)
    log.truncate_to(1)
    assert [record.value for chunk in reader.chunks() for record in chunk.to_records()] == [b"%d" % n for n in range(6)]
    assert (log.log_end_offset, committed(log)) == (1, [b"0"])
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
    log = PartitionLog.open(str(directory), settings, seam=disk, now_ms=lambda: SOME_TIME, flush_later=tasks.append)
    for number in range(20):
        log.append_records([b"old %d" % number])
    log.flush()
    settings = replace(settings, recovery_point=log.recovery_point)
    log.truncate_to(5)
    if is_opened_again:
        log.close()
        log = PartitionLog.open(str(directory), settings, seam=disk, now_ms=lambda: SOME_TIME, flush_later=tasks.append)
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
    again = PartitionLog.open(str(after), replace(settings, was_clean=False), now_ms=lambda: SOME_TIME)
    assert [record.offset for chunk in again.records().chunks() for record in chunk.to_records()] == list(range(10))
    again.close()
