"""Logs that change while they are cleaned, or before: the round ends, and no record is lost by it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.config.topic import parse_config
from logstore.disk.seam import Seam
from logstore.errors import DataDirectoryError, KafkaStorageError, LogCleaningAbortedError
from logstore.log.cleaner import rounds
from logstore.log.cleaner.cleaned_files import CleanedFiles
from logstore.log.partition_log import PartitionLog
from tests.kafka.cleaning_cases import opened
from tests.support.elsewhere import elsewhere
from tests.support.logs import records_of
from tests.support.seams import UnsyncedSeam
from tests.unit.log.cleaner.short_logs import CLEAN_TIME, clean, keyed, opened_case, plain_case

SIX = [f"{offset:020d}.log.cleaned" for offset in range(0, 12, 2)]


def six_groups(place: Path, seam: Seam | None = None, **config: str) -> PartitionLog:
    """Six segments of two batches, each a group, and an active one: of each key the last is behind offset 5."""
    batches = [keyed(offset, b"abcdef"[offset % 6 : offset % 6 + 1]) for offset in range(13)]
    segments = [batches[offset : offset + 2] for offset in range(0, 12, 2)] + [batches[12:]]
    return opened_case(plain_case(*segments, **{"internal.segment.bytes": "150", **config}), place, seam)


def at_file(log: PartitionLog, name: str, change: Callable[[], object]) -> None:
    """Have `change` called once, when the file is about to be made."""
    create, is_done = log.state.directory.create, []

    def change_then_create(created: str) -> int:
        if created == name and not is_done:
            is_done.append(True)
            elsewhere(change)
        return create(created)

    log.state.directory.create = change_then_create  # type: ignore[method-assign]


def has_left_overs(log: PartitionLog) -> bool:
    return any(".cleaned" in name or ".swap" in name for name in os.listdir(log.state.directory.path))


def test_a_log_that_begins_anew_is_not_cleaned_on(tmp_path: Path) -> None:
    log = six_groups(tmp_path)
    at_file(log, SIX[2], lambda: log.truncate_fully_and_start_at(50))
    with pytest.raises(LogCleaningAbortedError, match="lost segments"):
        clean(log, CLEAN_TIME)
    assert (log.state.segments.base_offsets, log.log_end_offset, has_left_overs(log)) == ([50], 50, False)
    log.close()


def test_a_log_that_begins_anew_while_its_keys_are_read_is_not_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that are to be read next are gone, which is no failure of the disk."""
    log = six_groups(tmp_path)
    put_table, is_done = rounds.put_table, []

    def restart_then_put(*arguments: object) -> bool:
        if not is_done:
            is_done.append(elsewhere(lambda: log.truncate_fully_and_start_at(1)))
        return put_table(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rounds, "put_table", restart_then_put)
    with pytest.raises(LogCleaningAbortedError) as caught:
        clean(log, CLEAN_TIME)
    assert isinstance(caught.value.__cause__, DataDirectoryError)
    assert (records_of(log), log.state.failure.error) == ([], None)
    log.close()


def test_segments_that_are_deleted_meanwhile_are_not_replaced(tmp_path: Path) -> None:
    log = six_groups(tmp_path, **{"cleanup.policy": "compact,delete"})
    at_file(log, SIX[1], lambda: (log.increment_log_start_offset(4), log.delete_old_segments(CLEAN_TIME)))
    with pytest.raises(LogCleaningAbortedError, match="Log t-0 lost segments while they were cleaned") as caught:
        clean(log, CLEAN_TIME)
    assert (caught.value.expected, caught.value.found) == ([2], [4, 6, 8, 10, 12])
    assert [record.offset for record in records_of(log)] == list(range(4, 13))
    assert not has_left_overs(log)
    assert log.state.failure.error is None
    log.close()


def test_a_group_of_several_segments_is_replaced_whole_or_not(tmp_path: Path) -> None:
    """Of the first group the first segment is deleted when its last was read: only the lock's look finds it."""
    log = six_groups(tmp_path, **{"cleanup.policy": "compact,delete", "internal.segment.bytes": "320"})
    index = SIX[0].replace(".log", ".index")
    at_file(log, index, lambda: (log.increment_log_start_offset(2), log.delete_old_segments(CLEAN_TIME)))
    with pytest.raises(LogCleaningAbortedError, match="lost segments") as caught:
        clean(log, CLEAN_TIME)
    assert (caught.value.expected, caught.value.found) == ([0, 2], [2, 4, 6, 8, 10, 12])
    assert [record.offset for record in records_of(log)] == list(range(2, 13))
    assert not has_left_overs(log)
    log.close()


def test_deletion_of_what_was_cleaned_before_ends_no_round(tmp_path: Path) -> None:
    log = six_groups(tmp_path, **{"cleanup.policy": "compact,delete"})
    at_file(log, SIX[4], lambda: (log.increment_log_start_offset(4), log.delete_old_segments(CLEAN_TIME)))
    assert clean(log, CLEAN_TIME) == 12
    assert [record.offset for record in records_of(log)] == list(range(6, 13))
    log.close()


def test_a_log_that_is_not_compacted_any_more_is_not_cleaned_on(tmp_path: Path) -> None:
    """Whoever takes compaction away wants all that is left (`LogManager.updateTopicConfig`)."""
    log = six_groups(tmp_path)
    chosen = log.cleanable(None, CLEAN_TIME)
    kept = parse_config({"cleanup.policy": "delete"})
    at_file(log, SIX[2], lambda: log.update_config(kept))
    for _ in range(2):  # the second is chosen before, and begins behind the change
        with pytest.raises(LogCleaningAbortedError, match="Log t-0 is not compacted any more"):
            log.clean(chosen, CLEAN_TIME)
        assert [record.offset for record in records_of(log)] == list(range(4, 13))
    assert not has_left_overs(log)
    log.close()


def test_a_segment_that_went_meanwhile_is_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened_case(plain_case([keyed(0, b"a"), keyed(5, b"b")], [keyed(2**31 + 10, b"z")]), tmp_path)
    log.close()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    path.write_bytes(keyed(0, b"a").to_bytes() + keyed(2**31 + 5, b"b").to_bytes())
    log = opened(tmp_path / "t-0", log.config, CLEAN_TIME, was_clean=True)
    add = CleanedFiles.add

    def restart_then_add(files: CleanedFiles, pieces: list[object]) -> None:
        elsewhere(lambda: log.truncate_fully_and_start_at(2**31 + 8))
        add(files, pieces)  # type: ignore[arg-type]

    monkeypatch.setattr(CleanedFiles, "add", restart_then_add)
    with pytest.raises(LogCleaningAbortedError, match="lost segments"):
        clean(log, CLEAN_TIME)
    state = log.state
    assert (state.segments.base_offsets, state.segments.last, state.failure.error) == ([2**31 + 8], state.active, None)
    log.close()


class ToldLock:
    """A lock that tells when somebody waits for it."""

    def __init__(self, somebody_comes: threading.Event) -> None:
        self._lock = threading.Lock()
        self._somebody_comes = somebody_comes

    def __enter__(self) -> None:
        if self._lock.locked():
            self._somebody_comes.set()
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


def test_of_two_rounds_one_waits_for_the_other(tmp_path: Path) -> None:
    """Both write the same `.cleaned` files."""
    log = six_groups(tmp_path)
    chosen = log.cleanable(None, CLEAN_TIME)
    comes, order = threading.Event(), []
    log.state.cleaning_lock = ToldLock(comes)  # type: ignore[assignment]
    create = log.state.directory.create

    def told_create(name: str) -> int:
        who = threading.current_thread().name[:5]
        order.append(who)
        if who != "other" and len(order) == 1:
            others.append(pool.submit(log.clean, chosen, CLEAN_TIME))
        if who == "other":
            comes.set()
        elif not comes.wait(30):
            order.append("nobody came")
        return create(name)

    log.state.directory.create = told_create  # type: ignore[method-assign]
    others: list[object] = []
    with ThreadPoolExecutor(1, "other") as pool:
        log.clean(chosen, CLEAN_TIME)
        assert others[0].result() == 12  # type: ignore[attr-defined]
    assert "nobody came" not in order
    assert order == sorted(order, key="other".__eq__), "the other one wrote in between"
    assert order[-1] == "other"
    log.close()


class Cleaning(UnsyncedSeam):
    """Notes names and syncs, is interrupted behind the making of one file, and fails at the renaming of another."""

    def __init__(self) -> None:
        self.interrupted_at = self.failing_at = ""
        self.calls: list[str] = []

    def create(self, path: str) -> int:
        descriptor = super().create(path)
        if Path(path).name == self.interrupted_at:
            self.close(descriptor)
            raise KeyboardInterrupt
        return descriptor

    def rename(self, path: str, new_path: str) -> None:
        if Path(path).name == self.failing_at:
            raise DataDirectoryError("Input/output error", java_class="java.io.IOException")
        self.calls.append(Path(new_path).suffix)
        super().rename(path, new_path)

    def sync_directory(self, path: str) -> None:
        self.calls.append("sync")


def test_a_log_that_is_opened_again_is_not_cleaned_on(tmp_path: Path) -> None:
    """The load waits for the pass, which aborts even if it waits for the lock that the load holds."""
    log = six_groups(tmp_path)
    old, users = log.state, []

    def is_used_again() -> None:
        old.failure.is_cut_off = True
        users.append(threading.Thread(target=log.append_records, args=([b"new"], [b"k"])))
        users[0].start()

    at_file(log, SIX[2], is_used_again)
    with pytest.raises(LogCleaningAbortedError, match="opened again"):
        clean(log, CLEAN_TIME)
    users[0].join()
    assert (log.log_end_offset, log.state is old, has_left_overs(log)) == (14, False, False)
    assert clean(log, CLEAN_TIME) == 12
    log.close()


def test_files_of_an_interrupted_cleaning_make_no_later_one_look_unfinished(tmp_path: Path) -> None:
    """A load deletes each `.swap` above a `.cleaned`, and the `.deleted` files that it was to replace."""
    seam = Cleaning()
    log = six_groups(tmp_path, seam, **{"cleanup.policy": "compact,delete", "file.delete.delay.ms": "0"})
    before = {record.key for record in records_of(log)}
    seam.interrupted_at = SIX[0]
    with pytest.raises(KeyboardInterrupt):
        clean(log, CLEAN_TIME)
    log.delete_records(2)
    assert log.delete_old_segments(CLEAN_TIME)
    seam.interrupted_at, seam.failing_at = "", f"{8:020d}.log.swap"
    with pytest.raises(KafkaStorageError):
        clean(log, CLEAN_TIME)
    log.close()
    again = opened(Path(log.state.directory.path), log.config, CLEAN_TIME, was_clean=False)
    assert {record.key for record in records_of(again)} == before
    again.close()


def test_new_files_are_on_the_disk_before_old_ones_go(tmp_path: Path) -> None:
    seam = Cleaning()
    log = six_groups(tmp_path, seam)
    seam.calls.clear()
    clean(log, CLEAN_TIME)
    for number, call in enumerate(seam.calls[1:], 1):
        assert call != ".deleted" or seam.calls[number - 1] in ("sync", ".deleted"), seam.calls[:number]
    assert ".deleted" in seam.calls
    log.close()
