"""What an embedding program does all day, one small call at a time: send and poll in turn, polls without anything new,
a read of a small topic, a commit of an offset, a transaction of one record.

Each cost must not grow with what lies in the store. Clients of a broker need a network for each of these calls, beside
which nothing here would show; `bench_consumer` and `bench_transactions` have them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

import logstore
from benchmarks.support.data import scaled, steps, values
from benchmarks.support.floors import writing_each
from benchmarks.support.measure import Growth, Measured
from logstore.client.store import Store
from logstore.model import TopicPartition

PARTITION = TopicPartition("orders", 0)
BATCH_SIZE, MARKER_SIZE, COMMIT_SIZE = 170, 78, 130  # bytes: a batch of a record of 100, a marker, about a commit
FILL_COUNT = 100
NO_FLOOR = "no system call: nothing to measure against"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with logstore.open(tmp_path / "data") as store:
        yield store


@pytest.mark.parametrize("count_before", steps(1_000, 10_000, 160_000, 1_600_000))
def test_send_and_poll(count_before: int, measured: Measured, store: Store, tmp_path: Path) -> None:
    store.create_topic(PARTITION.topic, partitions=1)
    part = values(FILL_COUNT)
    for _ in range(count_before // FILL_COUNT):
        store.log(*PARTITION).append_records(part)
    producer, consumer = store.producer(linger_ms=0), store.consumer(enable_auto_commit=False)
    consumer.assign([PARTITION])
    consumer.seek_to_end(PARTITION)
    consumer.poll()

    def send_and_poll() -> int:
        producer.send(PARTITION.topic, part[0])
        return len(consumer.poll(1000)[PARTITION])

    count = measured(
        send_and_poll,
        title=f"a record sent and polled, {count_before:,} before it",
        count=1,
        floor=writing_each(tmp_path / "floor", [BATCH_SIZE]),
        growth=Growth("records in the log", "send and poll", count_before),
    )
    assert count == 1


@pytest.mark.parametrize("partition_count", steps(1, 100, 1_000, 10_000))
def test_empty_poll(partition_count: int, measured: Measured, store: Store) -> None:
    store.create_topic(PARTITION.topic, partitions=partition_count)
    consumer = store.consumer(enable_auto_commit=False)
    consumer.assign([(PARTITION.topic, number) for number in range(partition_count)])
    consumer.poll()
    found = measured(
        consumer.poll,
        title=f"a poll with nothing new, {partition_count:,} partitions",
        count=1,
        unit="polls",
        floor=NO_FLOOR,
        growth=Growth("partitions", "poll with nothing new", partition_count),
        hashed=len,
    )
    assert found == {}


@pytest.mark.parametrize("read_count", [0, scaled(20, 100_000)], ids=["first", "later"])
def test_read_of_a_record(read_count: int, measured: Measured, store: Store) -> None:
    store.create_topic(PARTITION.topic, partitions=1)
    store.log(*PARTITION).append_records(values(1))

    def read() -> list[bytes]:
        return [record.value for record in store.read(PARTITION.topic)]

    for _ in range(read_count):
        read()
    found = measured(read, title=f"read of a topic of one record after {read_count:,}", count=1, floor=NO_FLOOR)
    assert found == values(1)


def test_commit_of_an_offset(measured: Measured, store: Store, tmp_path: Path) -> None:
    store.create_topic(PARTITION.topic, partitions=1)
    consumer = store.consumer(group_id="bench", enable_auto_commit=False)
    consumer.assign([PARTITION])
    offset = 0

    def commit() -> int:
        nonlocal offset
        offset += 1
        consumer.commit({PARTITION: offset})
        return 1

    floor = writing_each(tmp_path / "floor", [COMMIT_SIZE])
    measured(commit, title="commit of one offset", count=1, unit="commits", floor=floor)
    committed = consumer.committed(PARTITION)[PARTITION]
    assert committed is not None
    assert committed.offset == offset


def test_transaction_of_a_record(measured: Measured, store: Store, tmp_path: Path) -> None:
    store.create_topic(PARTITION.topic, partitions=1)
    producer, (value,) = store.producer(transactional_id="bench"), values(1)
    producer.init_transactions()
    count = 0

    def transact() -> int:
        nonlocal count
        producer.begin_transaction()
        producer.send(PARTITION.topic, value)
        producer.commit_transaction()
        count += 1
        return 1

    floor = writing_each(tmp_path / "floor", [BATCH_SIZE, MARKER_SIZE])
    measured(transact, title="transaction of one record", count=1, unit="transactions", floor=floor)
    assert store.log(*PARTITION).last_stable_offset == 2 * count


def test_wait_for_a_record(measured: Measured, store: Store) -> None:
    """A consumer waits in a thread, which tells of each record."""
    store.create_topic(PARTITION.topic, partitions=1)
    producer, (value,) = store.producer(linger_ms=0), values(1)
    handed_out: SimpleQueue[int] = SimpleQueue()
    is_over = threading.Event()

    def follow() -> None:
        with store.consumer(enable_auto_commit=False) as consumer:
            consumer.assign([PARTITION])
            consumer.seek_to_beginning()
            while not is_over.is_set():
                for records in consumer.poll(100).values():
                    handed_out.put(len(records))

    thread = threading.Thread(target=follow)
    thread.start()
    try:

        def send_and_wait() -> int:
            producer.send(PARTITION.topic, value)
            return handed_out.get()

        count = measured(
            send_and_wait,
            title="a record sent, and handed out by a consumer that waits in a thread",
            count=1,
            floor="two switches of threads, which the system makes when it likes",
        )
    finally:
        is_over.set()
        thread.join()
    assert count == 1
