"""What a store does beside its users: flush, checkpoint, delete, clean; what fails is told and stops nothing else."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Semaphore
from typing import Any

import pytest

import logstore
from logstore.client.store import Store
from logstore.clock import monotonic_ms
from logstore.disk.directory import PartitionFiles, list_partition_directory
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.log.cleaner import rounds
from logstore.log.maintain.retain import DeletedSegment
from logstore.log.partition_log import PartitionLog
from logstore.log.segment.log_segment import LogSegment
from logstore.model import TopicPartition
from logstore.store import directories
from logstore.store.partitions import Partitions
from logstore.store.timers import Timers
from tests.support.clock import DAY_MS, Clock
from tests.support.elsewhere import elsewhere
from tests.support.stores import FailingRenames, append_segments, open_store, read_checkpoint, run_later


def test_checkpoints_are_written_when_kafka_writes_them(store: Store, clock: Clock) -> None:
    store.create_topic("orders", 1, {"flush.ms": 2000})
    store.log("orders", 0).append_records([b"a", b"b"])
    assert "cleaning" in run_later(store, clock, 29_000)
    assert read_checkpoint(store, "replication") == {}
    assert "high watermark checkpoint" in run_later(store, clock, 1_000)
    assert read_checkpoint(store, "replication") == {("orders", 0): 2}
    assert read_checkpoint(store, "recovery-point") == {("orders", 0): 2}  # flush.ms is over
    store.log("orders", 0).append_records([b"c"])
    store.log("orders", 0).delete_records(1)
    assert "high watermark checkpoint" in run_later(store, clock, 5_000)
    assert read_checkpoint(store, "replication") == {("orders", 0): 3}
    assert read_checkpoint(store, "recovery-point") == {("orders", 0): 2}
    assert "recovery point checkpoint" in run_later(store, clock, 55_000)
    assert read_checkpoint(store, "recovery-point") == {("orders", 0): 3}
    assert read_checkpoint(store, "log-start") == {("orders", 0): 1}
    assert store.failures == {}


def test_retention_and_the_removal_of_files_take_their_time(store: Store, clock: Clock) -> None:
    store.create_topic("orders", 1, {"retention.ms": DAY_MS})
    append_segments(store, "orders", 3)
    run_later(store, clock, DAY_MS)
    assert len(store.log("orders", 0).state.segments) == 4
    run_later(store, clock, 300_000)
    assert len(store.log("orders", 0).state.segments) == 1
    assert list((Path(store.path) / "orders-0").glob("*.deleted"))
    run_later(store, clock, 60_000)
    assert not list((Path(store.path) / "orders-0").glob("*.deleted"))


def test_compacted_logs_are_cleaned_and_it_is_remembered_how_far(tmp_path: Path, clock: Clock) -> None:
    with logstore.open(tmp_path, now_ms=clock) as store:
        store.create_topic("state", 1, {"cleanup.policy": "compact"})
        store.create_topic("orders")
        append_segments(store, "state", 9)
        append_segments(store, "orders", 9)
        run_later(store, clock, 30_000)
        chunks = store.log("state", 0).records().chunks()
        assert [record.offset for chunk in chunks for record in chunk.to_records()] == [6, 7, 8]
        assert sum(len(chunk) for chunk in store.log("orders", 0).records().chunks()) == 9
        assert read_checkpoint(store, "cleaner") == {("state", 0): 9}
    with logstore.open(tmp_path, now_ms=clock) as store:
        store.delete_topic("state")
        assert read_checkpoint(store, "cleaner") == {}


def test_a_topic_made_anew_while_it_is_cleaned_begins_dirty(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the checkpoint no value counts as older than another: a tombstone went, and what it deleted came back."""

    def clean_and_make_anew(log: PartitionLog, *arguments: Any, **named: Any) -> int:
        monkeypatch.undo()
        end_offset = log.clean(*arguments, **named)
        store.delete_topic("state")
        store.create_topic("state", 1, {"cleanup.policy": "compact"})
        return end_offset

    store.create_topic("state", 1, {"cleanup.policy": "compact"})
    append_segments(store, "state", 9)
    monkeypatch.setattr(PartitionLog, "clean", clean_and_make_anew)
    store.directory._housekeeping.clean()
    assert (read_checkpoint(store, "cleaner"), store.failures) == ({}, {})


def test_a_topic_that_goes_ends_its_cleaning(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no failure is told of the next one of its name."""

    def make_anew() -> None:
        store.delete_topic("state")
        store.create_topic("state", 1, {"cleanup.policy": "compact"})

    def build_map(*arguments: Any, **named: Any) -> Any:
        built = build_offset_map(*arguments, **named)
        elsewhere(make_anew)
        return built

    store.create_topic("state", 1, {"cleanup.policy": "compact"})
    append_segments(store, "state", 9)
    build_offset_map = rounds.build_offset_map
    monkeypatch.setattr(rounds, "build_offset_map", build_map)
    store.directory._housekeeping.clean()
    assert (read_checkpoint(store, "cleaner"), store.failures) == ({}, {})
    assert not list(Path(store.log("state", 0).path).glob("*.cleaned"))


def test_the_store_can_go_without_a_cleaner(tmp_path: Path, clock: Clock) -> None:
    with logstore.open(tmp_path, now_ms=clock, config={"log.cleaner.enable": False}) as store:
        store.create_topic("state", 1, {"cleanup.policy": "compact"})
        append_segments(store, "state", 9)
        assert "cleaning" not in run_later(store, clock, 60_000)
        assert sum(len(chunk) for chunk in store.log("state", 0).records().chunks()) == 9


def test_a_failure_is_forgotten_with_the_topic_and_with_its_policy(store: Store, clock: Clock) -> None:
    for name in ("altered", "deleted"):
        store.create_topic(name, 1, {"cleanup.policy": "compact"})
        append_segments(store, name, 9)
        with Path(store.log(name, 0).path, f"{0:020}.log").open("r+b") as file:
            file.seek(80)
            file.write(b"X")
    run_later(store, clock, 30_000)
    assert store.failures.keys() == {"cleaning of altered-0", "cleaning of deleted-0"}
    store.alter_config("altered", {"cleanup.policy": "delete"})
    store.delete_topic("deleted")
    assert store.failures == {}


def test_a_partition_that_fails_is_told_and_the_others_have_their_turn(
    store: Store, clock: Clock, seam: FailingRenames, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("bad", "good"):
        store.create_topic(name, 1, {"retention.ms": 1000})
        append_segments(store, name, 3)
    seam.directory = "/bad-0/"
    run_later(store, clock, 400_000)
    assert len(store.log("good", 0).state.segments) == 1
    assert isinstance(store.failures["retention of bad-0"], LogstoreError)
    assert "retention of bad-0 failed and is tried again later" in caplog.text
    assert not store.log("bad", 0).is_writable
    seam.directory = None
    with pytest.raises(LogstoreError, match="offline"):
        store.log("bad", 0).append_records([b"a"])
    store.log("good", 0).append_records([b"a"])
    store.close()
    assert not (Path(store.path) / ".kafka_cleanshutdown").exists()
    with logstore.open(store.path, now_ms=clock) as again:
        again.log("bad", 0).append_records([b"a"])


def test_a_partition_that_cannot_be_opened_leaves_the_others_their_turn(tmp_path: Path, clock: Clock) -> None:
    """After a close in order partitions are opened when they are asked for, here by their retention."""
    with open_store(tmp_path, now_ms=clock) as store:
        for name in ("bad", "good"):
            store.create_topic(name, 1, {"retention.ms": 1000})
            append_segments(store, name, 3)
    (tmp_path / "bad-0" / "._00000000000000000000.log").write_bytes(b"of another system")
    with open_store(tmp_path, now_ms=clock) as store:
        run_later(store, clock, 400_000)
        assert isinstance(store.failures["retention of bad-0"], LogstoreError)
        assert "retention" not in store.failures
        assert len(store.log("good", 0).state.segments) == 1


def test_producers_that_are_silent_are_forgotten(store: Store, clock: Clock) -> None:
    store.create_topic("orders")
    log = store.log("orders", 0)
    log.append_records([b"a"], producer_id=7, producer_epoch=0, base_sequence=0)
    assert log.state.producers.state.get(7) is not None
    run_later(store, clock, DAY_MS + 1)
    assert log.state.producers.state.get(7) is None


def test_a_scheduled_function_is_called_again_after_it_failed(store: Store, clock: Clock) -> None:
    calls: list[int] = []

    def fail_first() -> None:
        calls.append(clock.now_ms)
        if len(calls) == 1:
            raise ValueError("not yet")

    store.schedule("mine", 100, fail_first)
    assert "mine" not in run_later(store, clock, 99)
    assert "mine" in run_later(store, clock, 1)
    assert isinstance(store.failures["mine"], ValueError)
    run_later(store, clock, 100)
    assert ([at - Clock().now_ms for at in calls], dict(store.failures)) == ([100, 200], {})


def test_a_program_cannot_replace_a_task_of_the_store(store: Store, clock: Clock) -> None:
    own = {*run_later(store, clock, DAY_MS), "clock"}
    assert {"flush", "retention", "cleaning", "transaction-abort", "group-rebalance"} <= own
    for name in sorted(own):
        with pytest.raises(UsageError, match=f"another name than .*found {name}; choose a name"):
            store.schedule(name, 100, lambda: None)
    assert own - {"clock"} <= set(run_later(store, clock, DAY_MS))


def test_a_program_replaces_its_own_task_of_the_same_name(store: Store, clock: Clock) -> None:
    called: list[str] = []
    for name in ("first", "second"):
        store.schedule("mine", 100, partial(called.append, name))
    run_later(store, clock, 100)
    assert called == ["second"]


def test_what_is_called_once_is_not_replaced_by_a_program() -> None:
    called: list[str] = []
    timers = Timers(lambda: 1000)
    timers.run_soon(lambda: called.append("of the store"))
    for number in range(3):
        timers.add_of_program(f"once {number}", 0, lambda: None)
    timers.run_due()
    assert called == ["of the store"]


def test_what_is_called_once_is_not_said_to_be_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    timers = Timers(lambda: 1000)
    timers.run_soon(lambda: {}["missing"])
    timers.run_due()
    assert [record.getMessage() for record in caplog.records] == ["once 0 failed: 'missing'"]


def test_the_thread_calls_what_is_due_and_stops() -> None:
    called, times = threading.Event(), iter(range(0, 10**9, 50))
    timers = Timers(lambda: next(times))
    timers.add("ends the thread", 100, sys.exit)
    timers.add("mine", 100, called.set)
    timers.start()
    assert called.wait(30)
    once = threading.Event()
    timers.run_soon(once.set)
    assert once.wait(30)
    assert isinstance(timers.failures["ends the thread"], SystemExit)
    timers.stop()
    assert timers.run_due() == []
    assert not any(thread.name == "logstore-timers" and thread.is_alive() for thread in threading.enumerate())


def test_a_log_with_nothing_to_delete_or_to_clean_is_not_opened(tmp_path: Path, clock: Clock) -> None:
    """Half a minute after an orderly start retention had every log open."""
    with logstore.open(tmp_path, now_ms=clock) as store:
        for name, config in {"empty": {}, "old": {}, "keys": {"cleanup.policy": "compact"}}.items():
            store.create_topic(name, 1, config)
        for name in ("old", "keys"):
            store.log(name, 0).append_records([b"v"], keys=[b"k"], timestamps=[clock.now_ms])
        store.create_topic("dirty", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0})
        append_segments(store, "dirty", 5)
    with open_store(tmp_path, now_ms=clock) as store:
        run_later(store, clock, 8 * DAY_MS)
        assert {topic for topic, _ in store.directory._partitions.logs} == {"old", "dirty"}
        assert store.log("old", 0).log_start_offset == 1
        assert len(store.log("dirty", 0).state.segments) == 2
        store.alter_config("keys", {"cleanup.policy": "delete"})
        run_later(store, clock, DAY_MS)
        assert store.log("keys", 0).log_start_offset == 1
        assert store.failures == {}


def test_a_long_function_keeps_no_other_from_its_turn() -> None:
    timers, is_running, is_over, turns = Timers(monotonic_ms), threading.Event(), threading.Event(), Semaphore(0)

    def run_long() -> None:
        is_running.set()
        assert is_over.wait(30)

    timers.add("long", 1, run_long, is_long=True)
    timers.start()
    assert is_running.wait(30)
    timers.add("short", 1, turns.release)
    assert all(turns.acquire(timeout=30) for _ in range(3))
    is_over.set()
    timers.stop()
    assert timers.failures == {}


def test_intervals_go_on_when_the_wall_clock_steps_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with logstore.open(tmp_path) as store:
        called = threading.Event()
        store.schedule("mine", 50, called.set)
        yesterday_ns = time.time_ns() - DAY_MS * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda: yesterday_ns)
        assert called.wait(60)


def test_a_close_does_not_wait_for_a_cleaning(
    store: Store, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_topic("t", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0})
    append_segments(store, "t", 5)
    is_cleaning, read = threading.Event(), rounds.tables

    def endless(segment: LogSegment, *, position: int) -> Iterator[Any]:
        is_cleaning.set()
        while True:
            yield from read(segment, position=position)

    monkeypatch.setattr(rounds, "tables", endless)
    thread = threading.Thread(target=run_later, args=(store, clock, DAY_MS), daemon=True)
    thread.start()
    assert is_cleaning.wait(30)
    store.close()
    thread.join(30)
    assert not thread.is_alive()
    assert store.failures == {}
    assert not list(tmp_path.rglob("*.cleaned"))


def test_a_close_does_not_wait_for_a_cleaning_of_a_log_that_is_being_opened(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path, now_ms=clock) as store:
        store.create_topic("t", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0})
        append_segments(store, "t", 5)
    cleaned: list[object] = []
    monkeypatch.setattr(PartitionLog, "clean", lambda log, *args, **options: cleaned.append(log))
    with open_store(tmp_path, now_ms=clock) as store:
        partitions, get = store.directory._partitions, Partitions.get

        def close_begins(self: Partitions, key: TopicPartition) -> PartitionLog | None:
            partitions.timers.is_stopped = True
            partitions.stop_cleaning()
            return get(self, key)

        monkeypatch.setattr(Partitions, "get", close_begins)
        store.directory._housekeeping.clean()
    assert cleaned == []


def test_a_function_may_close_the_store_it_is_called_by(tmp_path: Path) -> None:
    store = logstore.open(tmp_path)
    closed = threading.Event()

    def close() -> None:
        store.close()
        closed.set()

    store.schedule("close", 1, close)
    assert closed.wait(30)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_segments_that_were_closed_are_synced_by_the_stores_thread(store: Store, clock: Clock) -> None:
    store.create_topic("orders", 1)
    append_segments(store, "orders", 1)
    assert store.log("orders", 0).recovery_point == 0
    run_later(store, clock, 1)
    assert store.log("orders", 0).recovery_point == 1


def opened_with(tmp_path: Path, **config: Any) -> Store:
    return logstore.open(tmp_path, config={name.replace("_", "."): value for name, value in config.items()})


def test_intervals_are_kafkas_configurations(tmp_path: Path) -> None:
    with opened_with(tmp_path, log_retention_check_interval_ms=1, log_initial_task_delay_ms=0) as store:
        store.create_topic("orders", 1, {"retention.ms": 0, "segment.ms": 1})
        append_segments(store, "orders", 2)
        done = threading.Event()
        store.schedule("look", 1, lambda: len(store.log("orders", 0).state.segments) == 1 and done.set())
        assert done.wait(30)


def deleted_directories(root: Path) -> dict[str, Path]:
    return {path.name.split(".")[0]: path for path in root.glob("*-delete")}


def test_a_directory_that_somebody_else_removed_stops_no_other_removal(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        store.create_topic(name, 1)
        store.delete_topic(name)
    shutil.rmtree(deleted_directories(tmp_path)["a-0"])
    run_later(store, clock, 60_000)
    assert deleted_directories(tmp_path) == {}
    assert store.failures == {}


def test_what_is_deleted_waits_its_delay_anew_when_the_clock_steps_back(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    store.create_topic("gone", 1)
    store.create_topic("orders", 1, {"retention.ms": 1})
    append_segments(store, "orders", 2)
    run_later(store, clock, 330_000)
    store.delete_topic("gone")
    remove = store.directory._housekeeping.remove_deleted_files
    clock.now_ms -= 365 * DAY_MS
    for waited_ms in (0, 59_999):
        clock.now_ms += waited_ms
        remove()
        assert (deleted_directories(tmp_path).keys(), len(list(tmp_path.rglob("*.deleted"))) > 0) == ({"gone-0"}, True)
    clock.now_ms += 1
    remove()
    assert (deleted_directories(tmp_path), list(tmp_path.rglob("*.deleted"))) == ({}, [])


def test_a_directory_that_cannot_be_removed_stops_no_other_removal(store: Store, clock: Clock, tmp_path: Path) -> None:
    for name in ("a", "b"):
        store.create_topic(name, 1)
        store.delete_topic(name)
    mine = deleted_directories(tmp_path)["a-0"] / "mine"
    mine.mkdir()
    run_later(store, clock, 60_000)
    assert deleted_directories(tmp_path).keys() == {"a-0"}
    assert isinstance(store.failures["deleted files"], LogstoreError)
    mine.rmdir()
    run_later(store, clock, 1_000)
    assert deleted_directories(tmp_path) == {}
    assert store.failures == {}


def test_a_file_that_cannot_be_removed_stops_no_other_removal(store: Store, clock: Clock, tmp_path: Path) -> None:
    store.create_topic("orders", 1, {"retention.bytes": 0})
    append_segments(store, "orders", 3)
    store.log("orders", 0).delete_old_segments(clock.now_ms)
    first = sorted((tmp_path / "orders-0").glob("*.deleted"))[0]
    first.unlink()
    first.mkdir()
    run_later(store, clock, 60_000)
    assert list((tmp_path / "orders-0").glob("*.deleted")) == [first]
    assert isinstance(store.failures["removal of deleted files of orders-0"], LogstoreError)


def test_any_error_of_a_partition_stops_no_other(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is not logstore's, as of a file that vanishes while it is looked at."""
    for name in ("bad", "good"):
        store.create_topic(name, 1, {"retention.ms": 1000})
        append_segments(store, name, 3)
    retain = PartitionLog.delete_old_segments

    def fail(log: PartitionLog, now_ms: int) -> list[DeletedSegment]:
        if log.topic_partition == "bad-0":
            raise FileNotFoundError("vanished")
        return retain(log, now_ms)

    monkeypatch.setattr(PartitionLog, "delete_old_segments", fail)
    run_later(store, clock, 400_000)
    assert len(store.log("good", 0).state.segments) == 1
    assert isinstance(store.failures["retention of bad-0"], FileNotFoundError)


def test_what_fails_for_a_deleted_log_is_not_told_of_the_next_of_its_name(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_topic("orders", 1, {"retention.ms": 1000})
    append_segments(store, "orders", 3)
    delete_old_segments = PartitionLog.delete_old_segments

    def make_anew(log: PartitionLog, now_ms: int) -> list[DeletedSegment]:
        elsewhere(lambda: (store.delete_topic("orders"), store.create_topic("orders", 1)))
        return delete_old_segments(log, now_ms)  # raises: the log is closed

    monkeypatch.setattr(PartitionLog, "delete_old_segments", make_anew)
    assert "retention" in run_later(store, clock, 400_000)
    assert store.log("orders", 0).log_end_offset == 0
    assert store.failures == {}


def test_a_segment_that_vanishes_before_its_log_is_open_is_told(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logstore.open(tmp_path, now_ms=clock) as store:
        store.create_topic("orders", 1)
    with open_store(tmp_path, now_ms=clock) as store:

        def listed(path: str) -> PartitionFiles:
            files = list_partition_directory(path)
            Path(files.segments[0].log).unlink()
            return files

        monkeypatch.setattr(directories, "list_partition_directory", listed)
        run_later(store, clock, 400_000)
        assert isinstance(store.failures["retention of orders-0"], DataDirectoryError)
