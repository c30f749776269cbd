"""What is on the disk after a flush, a roll and a close, who waits for it, and what becomes of a sync that fails."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logstore.disk.open_files import OPEN_FILES
from logstore.disk.seam import Seam
from logstore.errors import DataDirectoryError, KafkaStorageError
from logstore.log.maintain.flush import flush_closed
from logstore.log.maintain.roll import roll
from logstore.log.partition_log import PartitionLog
from logstore.log.segment.unsynced_files import UnsyncedFiles
from tests.crash.lossy_disk import LossyDisk
from tests.support.elsewhere import elsewhere
from tests.support.encoder import SOME_TIME
from tests.support.logs import open_partition_log, records_of
from tests.support.seams import UnsyncedSeam

WAIT_S = 30
DAY_MS = 86_400_000
Do = Callable[[PartitionLog], object]


class Hooked(Seam):
    """Calls `before` instead of syncing, once it is there; the paths that were synced."""

    def __init__(self) -> None:
        self.before: Callable[[str], object] | None = None
        self.before_directory: Callable[[], object] | None = None
        self.synced: list[str] = []
        self._paths: dict[int, str] = {}
        self._inodes: dict[int, int] = {}

    def _open(self, path: str, flags: int) -> int:
        descriptor = super()._open(path, flags)
        self._paths[descriptor] = path
        self._inodes[descriptor] = os.fstat(descriptor).st_ino
        return descriptor

    def sync(self, descriptor: int) -> None:
        if self.before is not None:
            path, inode = self._paths[descriptor], self._inodes[descriptor]
            self.before(path)
            assert os.fstat(descriptor).st_ino == inode, "closed meanwhile"
        self.synced.append(Path(self._paths[descriptor]).name)

    def sync_directory(self, path: str) -> None:
        if self.before_directory is not None:
            self.before_directory()


def fail(*_: object) -> None:
    raise DataDirectoryError("Input/output error", java_class="java.io.IOException")


def opened(place: Path, seam: Seam, later: list[Callable[[], None]] | None = None, **config: str) -> PartitionLog:
    return open_partition_log(
        place / "t-0",
        {"index.interval.bytes": "0", **config},
        seam=seam,
        requires_verification=False,
        flush_later=None if later is None else later.append,
    )


def append(log: PartitionLog) -> int:
    return log.append_records([b"value"], [b"key"], [SOME_TIME]).first_offset


def abort(log: PartitionLog, number: int = 0) -> None:
    log.append_records([b"value"], producer_id=7, producer_epoch=0, base_sequence=number, is_transactional=True)
    log.append_end_transaction(7, 0, is_commit=False, coordinator_epoch=0, transaction_version=0)


def delete_old(log: PartitionLog) -> None:
    log.delete_old_segments(SOME_TIME)
    log.remove_deleted_files(SOME_TIME + DAY_MS)


def in_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def files(base_offset: int) -> set[str]:
    return {f"{base_offset:020}.{kind}" for kind in ("log", "index", "timeindex", "txnindex")}


@pytest.mark.parametrize(
    "steps",
    [
        [abort],
        [abort, PartitionLog.flush],
        [abort, PartitionLog.roll],
        [abort, PartitionLog.flush, PartitionLog.roll],
        [abort, PartitionLog.flush, PartitionLog.roll, append, PartitionLog.flush],
        [abort, PartitionLog.roll, append, lambda log: log.delete_records(3)],
        [abort, PartitionLog.flush, lambda log: roll(log.state, 10)],
        [abort, PartitionLog.flush, PartitionLog.roll, lambda log: log.delete_records(2), delete_old],
    ],
)
def test_all_is_on_the_disk_after_a_close(steps: list[Do], tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    disk = LossyDisk(tmp_path / "t-0", "close", outcomes=())
    log = opened(tmp_path, disk, [])
    for step in steps:
        step(log)
    log.close()
    assert log.recovery_point == log.log_end_offset
    assert disk.survivor("lost") == disk.survivor("kept")


def test_a_segment_that_was_flushed_is_on_the_disk_before_the_next_one_begins(tmp_path: Path) -> None:
    """The recovery point is at its end: a load would not look at its indexes."""
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    abort(log)
    log.flush()
    segment_counts: dict[str, int] = {}
    seam.before = lambda path: segment_counts.setdefault(Path(path).name, len(list((tmp_path / "t-0").glob("*.log"))))
    log.roll()
    assert {name: segment_counts.get(name) for name in files(0)} == dict.fromkeys(files(0), 1)
    append(log)
    log.roll()  # nobody was told that this one is on the disk
    assert [segment.is_synced for segment in log.state.segments] == [True, False, False]
    assert not segment_counts.keys() & files(2)
    log.close()


def test_the_recovery_point_passes_no_segment_that_is_not_on_the_disk(tmp_path: Path) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    abort(log)
    log.roll()
    append(log)
    assert set(seam.synced) & files(0) == set()
    assert log.delete_records(3) == log.recovery_point == 3
    assert set(seam.synced) & files(0) == files(0)
    log.close()


def test_a_flush_puts_new_names_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    disk = LossyDisk(tmp_path / "t-0", "names", outcomes=())
    log = opened(tmp_path, disk, [])
    append(log)
    log.roll()
    append(log)
    log.flush()
    sizes = {name: len(content) for name, content in disk.survivor("lost")}
    assert sizes[f"{1:020}.log"] == log.state.active.size > 0
    log.close()


def test_a_roll_waits_for_no_disk(tmp_path: Path) -> None:
    """The snapshot of the producers was synced, and its name, while all appends waited."""
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    abort(log)
    log.flush()
    append(log)  # the recovery point is below the end again
    seam.synced.clear()
    seam.before_directory = fail
    log.roll()
    assert (seam.synced, log.recovery_point) == ([], 2)
    assert log.state.producers.snapshots.keys() >= {3}
    seam.before_directory = None
    later[0]()
    assert set(seam.synced) >= {*files(0), f"{3:020}.snapshot.tmp.deleted"}
    assert log.recovery_point == 3
    log.close()


@pytest.mark.parametrize("flushes", [PartitionLog.flush, lambda log: flush_closed(log.state, 1)], ids=["all", "closed"])
def test_others_append_while_names_are_put_on_the_disk(flushes: Do, tmp_path: Path) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    append(log)
    log.roll()
    appended: list[int] = []

    def append_beside() -> None:
        thread = in_thread(lambda: appended.append(append(log)))
        thread.join(WAIT_S)

    seam.before_directory = append_beside
    flushes(log)
    assert appended[0] == 1
    assert log.recovery_point == 1
    seam.before_directory = None
    log.close()


def test_a_log_that_is_closed_before_its_segments_are_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a topic that is deleted; a store would tell of the failure for ever, as nothing is tried again."""
    log = opened(tmp_path, Hooked(), [])
    append(log)
    log.roll()
    poisoned_by = log.state.failure.poisoned_by

    def close_first(text: str) -> Any:
        monkeypatch.undo()
        elsewhere(log.close)
        return poisoned_by(text)

    monkeypatch.setattr(log.state.failure, "poisoned_by", close_first)
    flush_closed(log.state, 1)
    assert log.is_closed_in_order


def test_a_log_that_is_moved_while_its_segments_are_synced_is_no_failure(tmp_path: Path) -> None:
    seam = Hooked()
    log = opened(tmp_path, seam, [])
    append(log)
    log.roll()

    def move() -> None:
        seam.before_directory = None
        elsewhere(log.close)
        fail()  # as the system does for a name that is gone

    seam.before_directory = move
    flush_closed(log.state, 1)
    assert log.recovery_point == 1


def test_a_sync_of_less_than_is_durable_is_no_later_flush(tmp_path: Path) -> None:
    """`flush.ms` counts from the last flush that moved the recovery point, or met it (`LocalLog.markFlushed`)."""
    clock = iter(range(1, 1000))
    log = open_partition_log(tmp_path / "t-0", now_ms=lambda: SOME_TIME + next(clock))
    append(log)
    log.roll()
    append(log)
    log.flush()
    flushed_ms = log.state.last_flush_ms
    flush_closed(log.state, 1)
    assert (log.recovery_point, log.state.last_flush_ms) == (2, flushed_ms)
    log.close()


def test_names_count_as_synced_behind_the_sync_only(tmp_path: Path) -> None:
    """Another one that asks in the meantime must not take them for durable."""
    seam = Hooked()
    log = opened(tmp_path, seam)
    append(log)
    log.flush()
    calls: list[int] = []

    def ask_meanwhile() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            log.state.directory.sync()

    log.state.directory.set_modified_ms(f"{0:020}.log", SOME_TIME)
    log.state.write_epochs()
    seam.before_directory = ask_meanwhile
    log.state.directory.delete("leader-epoch-checkpoint", "a test")
    log.state.directory.sync()
    log.state.directory.sync()
    assert len(calls) == 2
    seam.before_directory = None
    log.close()


@pytest.mark.parametrize("outcome", ["lost", "torn"])
def test_a_snapshot_that_a_crash_tore_is_not_needed(outcome: str, tmp_path: Path) -> None:
    log = opened(tmp_path, UnsyncedSeam(), [])
    abort(log)
    log.roll()
    append(log)
    log.roll()
    log.append_records([b"value"], producer_id=7, producer_epoch=0, base_sequence=1)
    last = [(entry.producer_epoch, entry.batches[-1]) for entry in log.producer_entries()]
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    shutil.copytree(tmp_path / "t-0", crashed / "t-0")
    for snapshot in (crashed / "t-0").glob("*.snapshot"):
        if outcome == "lost":
            snapshot.unlink()
        else:
            snapshot.write_bytes(bytes(len(snapshot.read_bytes())))
    log.close()
    again = open_partition_log(crashed / "t-0", was_clean=False, recovery_point=3, requires_verification=False)
    assert [(entry.producer_epoch, entry.batches[-1]) for entry in again.producer_entries()] == last
    again.close()


def test_retention_syncs_no_segment_that_it_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OPEN_FILES, "_count_max", 0)  # a small budget syncs what it closes
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later, **{"retention.bytes": "0"})
    for _ in range(3):
        append(log)
        log.roll()
    append(log)
    named: list[int] = []
    seam.before_directory = lambda: named.append(log.recovery_point)
    assert [deleted.base_offset for deleted in log.delete_old_segments(SOME_TIME)] == [0, 1, 2, 3]
    assert not [name for name in seam.synced if name.endswith(".log")]
    assert named[-1] == 0  # a load may find the segments until their names are gone from the disk
    assert (log.log_start_offset, log.recovery_point) == (4, 4)
    seam.before_directory = None
    log.close()


def test_a_failed_sync_of_another_thread_ends_the_writing(tmp_path: Path) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    for _ in range(3):
        append(log)
    log.roll()

    def append_and_fail(_: str) -> None:
        for _ in range(3):
            elsewhere(lambda: append(log))  # takes the quick way again
        fail()

    seam.before = append_and_fail
    with pytest.raises(KafkaStorageError, match="Error while flushing log for t-0"):
        later[0]()
    seam.before = None
    assert (log.recovery_point, log.log_end_offset) == (0, 6)
    for change in (append, abort, PartitionLog.flush, PartitionLog.roll):
        with pytest.raises(KafkaStorageError, match="already offline"):
            change(log)
    log.close()
    assert log.recovery_point == 0


def test_thread_that_waited_for_a_failed_sync_does_not_try_it_again(tmp_path: Path) -> None:
    """The system tells a failure once: another sync of the same file would say that all is well."""
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    append(log)
    log.roll()
    append(log)
    told: list[BaseException] = []

    def flush() -> None:
        try:
            log.flush()
        except KafkaStorageError as error:
            told.append(error)

    threads = []

    def let_another_wait(_: str) -> None:
        seam.before = None
        threads.append(in_thread(flush))
        threads[0].join(0.2)
        fail()

    seam.synced.clear()
    seam.before = let_another_wait
    with pytest.raises(KafkaStorageError, match="Error while flushing"):
        later[0]()
    threads[0].join(WAIT_S)
    assert (len(told), seam.synced, log.recovery_point) == (1, [], 0)
    log.close()


def test_a_segment_that_two_wait_for_is_synced_once(tmp_path: Path) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    append(log)
    log.roll()
    append(log)
    threads = []

    def let_another_wait(_: str) -> None:
        seam.before = None
        threads.append(in_thread(log.flush))
        threads[0].join(0.2)

    seam.before = let_another_wait
    later[0]()
    threads[0].join(WAIT_S)
    assert [seam.synced.count(f"{base:020}.log") for base in (0, 1)] == [1, 1]
    assert log.recovery_point == 2
    log.close()


def test_a_roll_that_waited_for_a_sync_that_failed_ends_the_writing_too(tmp_path: Path) -> None:
    seam = Hooked()
    log = opened(tmp_path, seam)
    append(log)
    told: list[BaseException] = []

    def roll_too() -> None:
        try:
            log.roll()
        except KafkaStorageError as error:
            told.append(error)

    threads = []

    def let_another_wait(_: str) -> None:
        seam.before = None
        threads.append(in_thread(roll_too))
        threads[0].join(0.2)
        fail()

    seam.before = let_another_wait
    with pytest.raises(KafkaStorageError):
        log.flush()
    threads[0].join(WAIT_S)
    assert (len(told), log.recovery_point) == (1, 0)
    log.close()


def test_a_flush_does_not_take_the_recovery_point_back(tmp_path: Path) -> None:
    seam = Hooked()
    log = opened(tmp_path, seam)
    append(log)

    def go_on(_: str) -> None:
        seam.before = None
        elsewhere(lambda: (append(log), log.delete_records(2)))

    seam.before = go_on
    log.flush()
    assert log.recovery_point == 2
    log.close()


def test_names_whose_sync_failed_are_not_synced_again(tmp_path: Path) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    append(log)
    log.roll()
    append(log)
    seam.before_directory = fail
    with pytest.raises(KafkaStorageError, match="Error while flushing"):
        log.flush()
    seam.before_directory = None
    with pytest.raises(DataDirectoryError, match="Input/output error"):
        log.state.directory.sync()
    assert log.recovery_point == 0
    log.close()


def test_others_read_and_append_while_a_flush_waits_for_the_disk(tmp_path: Path) -> None:
    seam = Hooked()
    log = opened(tmp_path, seam)
    append(log)
    is_waiting, is_done = threading.Event(), threading.Event()

    def wait(_: str) -> None:
        is_waiting.set()
        assert is_done.wait(WAIT_S)

    seam.before = wait
    flushing = in_thread(log.flush)
    assert is_waiting.wait(WAIT_S)
    seen = list[int]()

    def work() -> None:
        seen.append(append(log))
        seen.extend(record.offset for record in records_of(log))

    working = in_thread(work)
    working.join(WAIT_S)
    assert seen == [1, 0, 1]
    assert flushing.is_alive()
    seam.before = None
    is_done.set()
    flushing.join(WAIT_S)
    assert (log.recovery_point, log.log_end_offset) == (1, 2)
    log.close()


@pytest.mark.parametrize(
    ("change", "end_offset"),
    [
        (lambda log: log.roll(), 3),
        (lambda log: (log.truncate_fully_and_start_at(0), append(log)), 1),
        (lambda log: (log.truncate_fully_and_start_at(0), append(log), log.roll(), append(log)), 2),
        (lambda log: log.truncate_fully_and_start_at(9), 9),
        (lambda log: log.close(), 3),
        (lambda log: log.flush(), 3),
    ],
    ids=["rolled", "written anew", "rolled anew", "begun anew", "closed", "flushed"],
)
def test_a_log_that_changes_while_it_is_flushed_is_on_the_disk_as_it_is_then(
    change: Do, end_offset: int, tmp_path: Path
) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    for _ in range(3):
        append(log)
    changing = []

    def change_meanwhile(_: str) -> None:
        seam.before = None
        changing.append(in_thread(lambda: change(log)))
        changing[0].join(0.1)  # waits for this sync, if it has to

    seam.before = change_meanwhile
    log.flush()
    changing[0].join(WAIT_S)
    log.flush() if log.is_writable else None
    assert log.log_end_offset == log.recovery_point == end_offset
    assert all(segment.is_synced for segment in log.state.segments if segment is not log.state.active)
    assert seam.synced.count(f"{log.state.active.base_offset:020}.log") >= bool(log.state.active.size)
    log.close()
    assert log.state.failure.error is None


def test_a_segment_that_was_removed_meanwhile_may_fail(tmp_path: Path) -> None:
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    append(log)
    log.roll()

    def remove(_: str) -> None:
        seam.before = None
        elsewhere(lambda: log.truncate_fully_and_start_at(5))
        fail()

    seam.before = remove
    later[0]()
    assert (log.state.failure.error, append(log)) == (None, 5)
    log.close()


def test_a_late_sync_says_nothing_of_what_was_written_since(tmp_path: Path) -> None:
    later: list[Callable[[], None]] = []
    log = opened(tmp_path, Hooked(), later)
    for _ in range(5):
        append(log)
    log.roll()
    log.truncate_fully_and_start_at(2)
    for _ in range(9):
        append(log)
    later[0]()
    assert (log.state.segments.base_offsets, log.recovery_point) == ([2], 0)
    log.close()


def test_the_fast_path_is_invalidated_with_the_lock_held(tmp_path: Path) -> None:
    """Or an append beside it could go on with a closed descriptor."""
    log = opened(tmp_path, Hooked(), [])
    append(log)
    log.roll()
    append(log)
    append(log)
    bound = log.fast.struct
    is_in = threading.Event()

    def flush() -> None:
        with log.state.failure.poisoned_by("Error while flushing log for"):
            is_in.set()

    with log.lock:
        thread = in_thread(flush)
        assert not is_in.wait(0.2)
        assert bound.is_bound == 1
    thread.join(WAIT_S)
    assert (is_in.is_set(), bound.is_bound) == (True, 0)
    flush_closed(log.state, 1)
    assert log.recovery_point == 1
    log.close()


class ToldOnce(Seam):
    """A system that tells a write that failed later on to whoever has the file open then, and forgets it."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._failed: set[int] = set()

    def _open(self, path: str, flags: int) -> int:
        descriptor = super()._open(path, flags)
        self._names[descriptor] = Path(path).name
        return descriptor

    def lose(self, name: str) -> None:
        """What was written to the file cannot be put on the disk."""
        self._failed |= {descriptor for descriptor, opened_name in self._names.items() if opened_name == name}

    def sync(self, descriptor: int) -> None:
        if descriptor in self._failed:
            fail()

    def close(self, descriptor: int) -> None:
        self._names.pop(descriptor, None)
        self._failed.discard(descriptor)
        super().close(descriptor)


@pytest.mark.parametrize("kind", ["log", "index", "timeindex", "txnindex"])
def test_a_write_that_failed_before_the_segment_was_closed_is_told_to_the_sync_behind(
    tmp_path: Path, kind: str
) -> None:
    seam, later = ToldOnce(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    abort(log)
    append(log)
    log.roll()
    seam.lose(f"{0:020}.{kind}")
    with pytest.raises(KafkaStorageError, match="Error while flushing"):
        later[0]()
    assert log.recovery_point == 0
    log.close()


def test_a_roll_does_not_wait_for_another_threads_sync(tmp_path: Path) -> None:
    """It holds the lock that readers and appends need."""
    seam, later = Hooked(), list[Callable[[], None]]()
    log = opened(tmp_path, seam, later)
    append(log)
    rolled: list[bool] = []

    def roll_meanwhile(_: str) -> None:
        seam.before = None
        thread = in_thread(log.roll)
        thread.join(WAIT_S)
        rolled.append(not thread.is_alive())

    seam.before = roll_meanwhile
    log.flush()
    assert rolled == [True]
    assert append(log) == 1
    log.close()


def test_a_name_that_is_made_while_names_are_synced_is_synced_the_next_time(tmp_path: Path) -> None:
    """A cleaning makes files without the log's lock."""
    seam = Hooked()
    log = opened(tmp_path, seam)
    directory, sync_count = log.state.directory, 0

    def make_a_file() -> None:
        nonlocal sync_count
        sync_count += 1
        seam.before_directory = count
        seam.close(directory.create("made.meanwhile"))

    def count() -> None:
        nonlocal sync_count
        sync_count += 1

    seam.close(directory.create("made.before"))
    seam.before_directory = make_a_file
    directory.sync()
    directory.sync()
    directory.sync()
    assert sync_count == 2
    log.close()


def test_files_that_are_not_wanted_any_more_are_closed_after_a_sync_too(tmp_path: Path) -> None:
    files = UnsyncedFiles(UnsyncedSeam())
    descriptor = files.add(".log", os.open(tmp_path / "x.log", os.O_CREAT | os.O_RDWR))
    files.sync(".log")
    assert files.is_open
    idle = UnsyncedFiles(UnsyncedSeam())
    idle.add(".log", os.dup(descriptor))
    assert idle.close_idle()
    assert not idle.is_open
    files.close()
    assert not files.is_open
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
