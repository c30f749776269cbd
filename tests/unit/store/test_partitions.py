"""Partitions while other threads open, make and delete them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.store import Store
from logstore.model import TopicPartition
from logstore.store import partitions
from tests.support.elsewhere import elsewhere
from tests.support.logs import records_of
from tests.support.seams import UnsyncedSeam
from tests.support.stores import open_store, read_checkpoint

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Store]:
    """A store after an orderly close: its partition is opened when it is first asked for."""
    with logstore.open(tmp_path) as store:
        store.create_topic("orders", 1)
        store.log("orders", 0).append_records([b"a", b"b", b"c"])
        store.log("orders", 0).delete_records(2)
    with open_store(tmp_path) as store:
        yield store


class _Between(dict[TopicPartition, Any]):
    """A dict that calls a function once, just after it was first looked into, as another thread may."""

    def __init__(self, content: dict[TopicPartition, Any], call: Callable[[], object]) -> None:
        super().__init__(content)
        self._call = call

    def _let(self) -> None:
        call, self._call = self._call, lambda: None
        call()

    def get(self, key: TopicPartition, default: Any = None) -> Any:
        value = super().get(key, default)
        self._let()
        return value

    def keys(self) -> Any:
        listed = list(super().keys())
        self._let()
        return listed

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.keys())


def test_a_partition_that_another_thread_opens_just_now_exists(waiting: Store) -> None:
    known = waiting.directory._partitions

    def open_meanwhile() -> None:
        thread = threading.Thread(target=known.get, args=(ORDERS,))
        thread.start()
        thread.join()

    known._logs = _Between(known._logs, open_meanwhile)
    log = waiting.log("orders", 0)
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)


def test_a_partition_that_is_opened_just_now_keeps_its_checkpoints(waiting: Store) -> None:
    """It was in neither list, so that a crash brought back what was deleted."""
    known = waiting.directory._partitions
    known._logs = _Between(known._logs, lambda: elsewhere(lambda: known.get(ORDERS)))
    waiting.directory._housekeeping.checkpoint("log-start-offset-checkpoint")
    assert read_checkpoint(waiting, "log-start") == {("orders", 0): 2}


@pytest.mark.parametrize("is_new", [True, False], ids=["topic", "partition"])
def test_who_sees_a_new_partition_can_write_to_it(
    tmp_path: Path, is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata has it before its files are there: another thread waits for that."""
    make_log, found = partitions.make_log, []
    store = logstore.open(tmp_path)
    asked = threading.Event()

    def ask() -> None:
        asked.set()
        found.append(store.log("orders", 1).append_records([b"a"]).first_offset)

    thread = threading.Thread(target=ask)

    def make_slowly(path: str, *args: Any) -> None:
        if path.endswith("orders-1"):
            assert store.describe_topic("orders").partition_count == 2
            thread.start()
            assert asked.wait(30)
        make_log(path, *args)

    monkeypatch.setattr(partitions, "make_log", make_slowly)
    with store:
        if is_new:
            store.create_topic("orders", 2)
        else:
            store.create_topic("orders", 1)
            store.add_partitions("orders", 2)
        thread.join()
    assert found == [0]


def test_a_checkpoint_never_has_the_offsets_of_a_deleted_log(tmp_path: Path) -> None:
    """A recovery believes the file: it removed all segments of the new log, which ends below its "start"."""
    with open_store(tmp_path) as store:
        make_old(store)
        checkpoints = store.directory._checkpoints
        lock = checkpoints._lock
        checkpoints._lock = _Before(lock, lambda: elsewhere(lambda: make_anew(store)))  # type: ignore[assignment]
        store.directory._housekeeping.checkpoint("log-start-offset-checkpoint")
        assert read_checkpoint(store, "log-start") == {}


def make_old(store: Store) -> None:
    store.create_topic("orders", 1)
    store.log("orders", 0).append_records([b"%d" % number for number in range(60)])
    store.log("orders", 0).delete_records(50)


def make_anew(store: Store) -> None:
    store.delete_topic("orders")
    store.create_topic("orders", 1)
    store.log("orders", 0).append_records([b"new"] * 10)


def test_a_reader_of_a_deleted_topic_never_gets_what_the_next_one_of_its_name_has(tmp_path: Path) -> None:
    """Segments are mapped when they are first read, by their names."""
    with open_store(tmp_path) as store:
        store.create_topic("orders", 1)
        log = store.log("orders", 0)
        for value in (b"old", b"old"):
            log.append_records([value])
            log.roll()
        view = log.view()
        make_anew(store)
        assert [record.value for record in records_of(view)] == [b"old", b"old"]


class _ReadingSeam(UnsyncedSeam):
    """Another thread begins `read` between the rename of a directory and what follows."""

    read: Callable[[], object] | None = None

    def rename(self, path: str, new_path: str) -> None:
        super().rename(path, new_path)
        if self.read is not None and new_path.endswith("-delete"):
            thread = threading.Thread(target=self.read)
            thread.start()
            thread.join(0.2)  # it waits for the end of the move


def test_a_reader_waits_while_the_directory_of_a_deleted_topic_is_moved(tmp_path: Path) -> None:
    seam, found = _ReadingSeam(), queue.SimpleQueue[list[bytes | None]]()
    with open_store(tmp_path, seam=seam) as store:
        store.create_topic("orders", 1)
        log = store.log("orders", 0)
        log.append_records([b"old"])
        log.roll()
        seam.read = lambda: found.put([record.value for record in records_of(log)])
        store.delete_topic("orders")
        assert found.get(timeout=30) == [b"old"]


class _Before:
    """A lock for which a thread has to wait once: `call` is what another one does meanwhile."""

    def __init__(self, lock: Any, call: Callable[[], object]) -> None:
        self._lock, self._call = lock, call

    def __enter__(self) -> object:
        call, self._call = self._call, lambda: None
        call()
        return self._lock.__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._lock.__exit__(*raised)
