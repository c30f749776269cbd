"""What a program does all day leaves nothing behind: no object, no open file, no thread, and no memory.

`make test-long` repeats a million calls of each kind, 10,000 topics and 100,000 consumers.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import logstore
from logstore.client.store import Store
from tests.support.sampling import case_count

CONFIG = {
    "log.retention.bytes": 1 << 20,
    "log.segment.bytes": 1 << 20,
    "log.segment.delete.delay.ms": 0,
    "log.initial.task.delay.ms": 0,
    "log.retention.check.interval.ms": 100,
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.delete.retention.ms": 100,  # else markers stay for a day
    "offsets.topic.num.partitions": 1,
    "offsets.topic.segment.bytes": 1 << 20,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.segment.bytes": 1 << 20,
    "producer.id.expiration.ms": 1,
}
CALL_COUNT = case_count("LOGSTORE_CALLS", sample=200, whole=1_000_000)
HOUSEKEEPING = 50  # times in each part
INTERVAL_S = 0.1  # between two runs of a task of housekeeping
OBJECTS_MAX, FILES_MAX, MEMORY_MAX = 150, 4, 24 << 20

Call = Callable[[], object]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with logstore.open(tmp_path / "data", config=CONFIG) as store:
        store.create_topic("t", 1)
        store.log("t", 0).append_records([b"first"])
        yield store


def send_and_poll(store: Store) -> Call:
    producer, consumer = store.producer(linger_ms=0), store.consumer()
    consumer.assign([("t", 0)])
    consumer.seek_to_end()

    def call() -> None:
        producer.send("t", b"value").get()
        assert consumer.poll(30_000)

    return call


def poll(store: Store) -> Call:
    consumer = store.consumer()
    consumer.assign([("t", 0)])
    consumer.seek_to_end()
    return consumer.poll


def read(store: Store) -> Call:
    return lambda: list(store.read("t"))


def commit(store: Store) -> Call:
    consumer = store.consumer(group_id="g")
    consumer.assign([("t", 0)])
    return lambda: consumer.commit({("t", 0): 1})


def transact(store: Store) -> Call:
    producer = store.producer(transactional_id="x")
    producer.init_transactions()

    def call() -> None:
        with producer.transaction():
            producer.send("t", b"value")
            producer.send_offsets_to_transaction({("t", 0): 1}, group_id="g")

    return call


def make_and_delete_a_topic(store: Store) -> Call:
    def call() -> None:
        store.create_topic("passing", 2)
        store.log("passing", 1).append_records([b"value"])
        store.delete_topic("passing")

    return call


def open_and_close_a_producer(store: Store) -> Call:
    def call() -> None:
        with store.producer() as producer:
            producer.send("t", b"value")

    return call


def open_and_close_a_consumer(store: Store) -> Call:
    def call() -> None:
        with store.consumer("t", group_id="g") as consumer:
            consumer.poll()

    return call


def had(path: Path) -> tuple[int, int, int, int]:
    """Objects, open files, threads and bytes of memory of this process."""
    gc.collect()
    with open("/proc/self/statm") as statm:
        memory_size = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return len(gc.get_objects()), len(os.listdir("/proc/self/fd")), threading.active_count(), memory_size


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for the memory and files of a process")
@pytest.mark.parametrize(
    ("begin", "part"),
    [
        (send_and_poll, 1),
        (poll, 1),
        (read, 1),
        (commit, 1),
        (transact, 1),
        (make_and_delete_a_topic, 100),
        (open_and_close_a_producer, 10),
        (open_and_close_a_consumer, 10),
    ],
)
def test_calls_leave_nothing(begin: Callable[[Store], Call], part: int, store: Store, tmp_path: Path) -> None:
    call, count = begin(store), max(CALL_COUNT // part, 10)

    def repeat(count: int) -> tuple[int, int, int, int]:
        for number in range(count):
            call()
            if number % max(count // HOUSEKEEPING, 1) == 0:
                store.run_due()
        for _ in range(
            3
        ):  # what is due goes: segments, and then their files; producers are looked at every ten minutes
            time.sleep(2 * INTERVAL_S)
            store.run_due()
        store.directory._housekeeping.drop_expired_producers()
        return had(tmp_path)

    repeat(min(count, 1000))
    before, after = repeat(min(count, 1000)), repeat(count)
    grown = [now - then for then, now in zip(before, after, strict=True)]
    assert all(more <= most for more, most in zip(grown, (OBJECTS_MAX, FILES_MAX, 1, MEMORY_MAX), strict=True)), grown
