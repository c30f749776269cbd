"""A disk that fails a cleaning: before a segment is replaced the log goes on as it was, in between its writing ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.config.topic import parse_config
from logstore.disk.seam import Writable
from logstore.errors import (
    DataDirectoryError,
    IndexFullError,
    KafkaStorageError,
    LogCleaningAbortedError,
    LogstoreError,
)
from logstore.log.cleaner import rounds
from logstore.log.maintain.flush import flush_beside
from logstore.log.partition_log import PartitionLog
from logstore.log.state import LogState
from logstore.model import FetchIsolation
from tests.crash.lossy_disk import LossyDisk, write_survivor
from tests.kafka.cleaning_cases import NOW, example_case, lay_out, opened
from tests.support.elsewhere import elsewhere
from tests.support.encoder import CONTROL, GZIP, SOME_TIME, Batch, Rec
from tests.support.logs import open_partition_log, records_of
from tests.support.seams import UnsyncedSeam
from tests.unit.log.cleaner.short_logs import clean, described, keyed, opened_case, plain_case

BEFORE_THE_SWAP = {"create": 6, "write": 6, "sync": 6, "set_modified_ms": 6}  # calls of the example's two groups


class FailingSeam(UnsyncedSeam):
    """One call fails: the one of this name that comes after `passing` others."""

    def __init__(self) -> None:
        self.failing, self.passing = "", 0

    def _pass(self, name: str) -> None:
        if name == self.failing:
            self.passing -= 1
            if self.passing < 0:
                self.failing = ""
                raise DataDirectoryError("Input/output error", java_class="java.io.IOException")

    def create(self, path: str) -> int:
        self._pass("create")
        return super().create(path)

    def write(self, descriptor: int, data: Writable) -> None:
        self._pass("write")
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self._pass("sync")
        super().sync(descriptor)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._pass("set_modified_ms")
        super().set_modified_ms(path, modified_ms)

    def rename(self, path: str, new_path: str) -> None:
        self._pass("rename")
        super().rename(path, new_path)

    def sync_directory(self, path: str) -> None:
        self._pass("sync_directory")
        super().sync_directory(path)


def laid_out(place: Path) -> tuple[PartitionLog, FailingSeam]:
    directory, seam = place / "t-0", FailingSeam()
    config = lay_out(example_case(), directory)
    return opened(directory, config, NOW, was_clean=True, seam=seam), seam


def cleaned_batches(place: Path) -> list[tuple[int, int, int, int | None]]:
    log, _ = laid_out(place)
    log.clean(log.cleanable(None, NOW), NOW)
    batches = described(log)
    log.close()
    return batches


@pytest.mark.parametrize(
    ("call", "number"), [(call, number) for call, count in BEFORE_THE_SWAP.items() for number in range(count)]
)
def test_failure_before_a_segment_is_replaced_leaves_the_log_writable(call: str, number: int, tmp_path: Path) -> None:
    """Only files failed that are removed again; the next round makes others."""
    expected = cleaned_batches(tmp_path / "expected")
    log, seam = laid_out(tmp_path / "log")
    seam.failing, seam.passing = call, number
    with pytest.raises(DataDirectoryError, match="Input/output error") as caught:
        log.clean(log.cleanable(None, NOW), NOW)
    assert not isinstance(caught.value, KafkaStorageError)
    assert log.state.failure.error is None
    assert not [name for name in os.listdir(log.state.directory.path) if ".cleaned" in name or ".swap" in name]
    log.clean(log.cleanable(None, NOW), NOW)
    assert described(log) == expected
    assert log.append_records([b"v"], [b"k"]).first_offset == 13
    log.close()


@pytest.mark.parametrize("number", range(12))
def test_a_swap_that_was_cut_off_is_left_to_the_next_load(number: int, tmp_path: Path) -> None:
    """Another round would remove, or make, the `.cleaned` files by which a load tells whether the swap had begun."""
    expected = cleaned_batches(tmp_path / "expected")
    log, seam = laid_out(tmp_path / "failing")
    chosen = log.cleanable(None, NOW)
    seam.failing, seam.passing = "rename", number
    with pytest.raises(KafkaStorageError):
        log.clean(chosen, NOW)
    files = sorted(os.listdir(log.state.directory.path))
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.clean(chosen, NOW)
    assert sorted(os.listdir(log.state.directory.path)) == files
    log.close()
    again = opened(tmp_path / "failing" / "t-0", log.config, NOW, was_clean=False)
    again.clean(again.cleanable(None, NOW), NOW)
    assert described(again) == expected
    again.close()


@pytest.mark.parametrize(("call", "number"), [("rename", 0), ("rename", 5), ("sync_directory", 0)])
def test_failure_while_a_segment_is_replaced_ends_the_writing(call: str, number: int, tmp_path: Path) -> None:
    """Which files are there is not known then; opening the log finds out."""
    log, seam = laid_out(tmp_path)
    seam.failing, seam.passing = call, number
    with pytest.raises(KafkaStorageError, match="Error while replacing segments of t-0"):
        log.clean(log.cleanable(None, NOW), NOW)
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.append_records([b"v"], [b"k"])
    log.close()
    again = opened(tmp_path / "t-0", log.config, NOW, was_clean=False)
    assert again.append_records([b"v"], [b"k"]).first_offset == 13
    again.close()


@pytest.mark.parametrize("number", [0, 3, 6, 9, 12])
def test_a_failure_while_segments_are_replaced_hides_no_value(number: int, tmp_path: Path) -> None:
    """What was acknowledged can still be read."""
    seam = FailingSeam()
    case = plain_case([keyed(0, b"a", b"b")], [keyed(2, b"c", b"b")], [keyed(4, b"d", b"a")], [keyed(6, b"z")])
    log = opened_case(case, tmp_path, seam)
    newest = {record.key: record.value for record in records_of(log)}
    seam.failing, seam.passing = "rename", number
    with pytest.raises(KafkaStorageError, match="Error while replacing segments of t-0"):
        clean(log, NOW)
    assert {record.key: record.value for record in records_of(log)} == newest
    log.close()


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_newer_value_is_on_the_disk_before_an_older_one_goes(is_transactional: bool, tmp_path: Path) -> None:
    """A roll leaves the sync of its segment to another thread, and a cleaning may come before it.

    The marker that commits the newer value is in the active segment, which nobody syncs.
    """
    directory, later = tmp_path / "t-0", list[Callable[[], None]]()
    directory.mkdir()
    config = {"cleanup.policy": "compact", "internal.segment.bytes": "1000", "file.delete.delay.ms": "0"}
    disk = LossyDisk(tmp_path, "cleaning")
    log = open_partition_log(directory, config, seam=disk, flush_later=later.append, requires_verification=False)
    for sequence, value in ((0, b"old"), (10, b"new")):
        log.append_records(
            [value, *[b"x" * 60] * 9],
            [b"account", *(value + b"%d" % number for number in range(9))],
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=is_transactional and value == b"new",
        )
        log.roll()
        if value == b"old":
            later.pop()()
            before_count = len(disk.left)
    assert log.recovery_point == 10
    if is_transactional:
        end_transaction(log, is_commit=True)
    assert clean(log, SOME_TIME) == log.state.active.base_offset
    assert any(name.endswith(".cleaned") for left in disk.left for name, _ in left.survivor)
    for number, left in enumerate(disk.left[before_count:]):
        root = write_survivor(left.survivor, tmp_path / f"left-{number}")
        again = open_partition_log(root / "t-0", config, was_clean=False)
        if again.first_unstable_offset is not None:  # as an opening of the store does, which knows of no decision
            end_transaction(again, is_commit=False)
        committed = records_of(again, isolation=FetchIsolation.READ_COMMITTED)
        assert {b"old", b"new"} & {record.value for record in committed}, left.when
        again.close()


def end_transaction(log: PartitionLog, *, is_commit: bool) -> None:
    log.append_end_transaction(7, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=0)


def test_a_log_that_is_closed_before_it_is_synced_ends_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close_first(state: LogState) -> None:
        elsewhere(log.close)
        flush_beside(state)

    log = opened_case(plain_case([keyed(0, b"k")], [keyed(1, b"k")], [keyed(2, b"k")]), tmp_path)
    monkeypatch.setattr(rounds, "flush_beside", close_first)
    with pytest.raises(LogCleaningAbortedError, match="about to be closed"):
        clean(log, NOW)


UNREADABLE = {
    "stream": Batch(1, [Rec(b"k", b"v")], codec=GZIP, stream=b"no gzip at all"),
    "record count": Batch(1, [Rec(b"k", b"v")], stream=b"\x80\x80"),
    "codec": Batch(1, [Rec(b"k", b"v")], codec=7),
    "control record": Batch(1, [Rec(b"", b"v")], flags=CONTROL),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_batch_that_cannot_be_read_is_told_with_its_file(what: str, tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"k"), UNREADABLE[what]], [keyed(9, b"k")]), tmp_path)
    with pytest.raises(LogstoreError) as told:
        clean(log, NOW)
    place = told.value.path, told.value.position, told.value.offset
    assert place == (f"{log.path}/{0:020}.log", len(keyed(0, b"k").to_bytes()), 1)
    log.close()


def test_an_index_without_room_is_told_with_the_segment_and_the_offset(tmp_path: Path) -> None:
    config = {"segment.index.bytes": "100", "index.interval.bytes": "4096"}
    log = opened_case(plain_case([keyed(number, b"%d" % number) for number in range(20)], **config), tmp_path)
    log.roll()
    log.update_config(parse_config({**config, "cleanup.policy": "compact", "index.interval.bytes": "0"}))
    with pytest.raises(IndexFullError) as told:
        clean(log, NOW)
    place = told.value.path, told.value.position, told.value.offset
    assert place == (f"{log.path}/{0:020}.log", None, 13)
    log.close()


def test_segments_that_retention_took_before_the_round_end_it(tmp_path: Path) -> None:
    log = opened_case(plain_case([keyed(0, b"k")], [keyed(1, b"k")], [keyed(2, b"k")]), tmp_path)
    chosen = log.cleanable(None, NOW)
    log.increment_log_start_offset(2)
    assert len(log.delete_old_segments(NOW)) == 2
    with pytest.raises(LogCleaningAbortedError, match="lost the segments that were to be cleaned"):
        log.clean(chosen, NOW)
    log.close()
