"""What thousands of partitions, groups and transactional ids cost: making, opening, polling and closing partitions, a
transaction over all, a log of metadata of topics that were made and deleted, and calls beside many groups and ids.

Each cost is that of all partitions together, so a line that rises as steeply as their number is a flat cost of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

import logstore
from benchmarks.support.data import steps, values
from benchmarks.support.measure import Growth, Measured
from logstore.client.store import Store
from logstore.model import TopicPartition

TOPIC = "many"
NO_FLOOR = "not a transfer of bytes: nothing to measure against"
COUNTS = steps(250, 1_000, 2_000, 10_000)


def filled(path: Path, partition_count: int) -> Store:
    """A store with one record in each partition."""
    store = logstore.open(path)
    store.create_topic(TOPIC, partition_count)
    for number in range(partition_count):
        store.log(TOPIC, number).append_records(values(1))
    return store


def growth(what: str, partition_count: int) -> Growth:
    return Growth("partitions", what, partition_count)


@pytest.mark.parametrize("partition_count", COUNTS)
def test_make_a_topic(partition_count: int, measured: Measured, tmp_path: Path) -> None:
    names = (f"t{number}" for number in itertools.count())
    with logstore.open(tmp_path / "data") as store:
        made = measured(
            lambda: store.create_topic(next(names), partition_count).partition_count,
            title=f"a topic of {partition_count:,} partitions made",
            count=partition_count,
            unit="partitions",
            floor=NO_FLOOR,
            growth=growth("make a topic", partition_count),
        )
    assert made == partition_count


@pytest.mark.parametrize("partition_count", COUNTS)
def test_open_a_store_and_every_log(partition_count: int, measured: Measured, tmp_path: Path) -> None:
    filled(tmp_path / "data", partition_count).close()

    def open_all() -> int:
        with logstore.open(tmp_path / "data") as store:
            return sum(store.log(TOPIC, number).log_end_offset for number in range(partition_count))

    found = measured(
        open_all,
        title=f"a store of {partition_count:,} partitions opened, every log of it, and closed",
        count=partition_count,
        unit="partitions",
        floor=NO_FLOOR,
        growth=growth("open a store and every log", partition_count),
    )
    assert found == partition_count


@pytest.mark.parametrize("partition_count", COUNTS)
def test_read_a_record_of_each(partition_count: int, measured: Measured, tmp_path: Path) -> None:
    with filled(tmp_path / "data", partition_count) as store:
        consumer = store.consumer(enable_auto_commit=False)
        consumer.assign([(TOPIC, number) for number in range(partition_count)])

        def read() -> int:
            consumer.seek_to_beginning()
            found = 0
            while found < partition_count:
                found += sum(map(len, consumer.poll().values()))
            return found

        found = measured(
            read,
            title=f"a record of each of {partition_count:,} partitions read",
            count=partition_count,
            floor=NO_FLOOR,
            growth=growth("read a record of each", partition_count),
        )
    assert found == partition_count


@pytest.mark.parametrize("budget", [0, 128], ids=["open", "budget of 128"])
@pytest.mark.parametrize("partition_count", COUNTS)
def test_append_to_each(partition_count: int, budget: int, measured: Measured, tmp_path: Path) -> None:
    """With a budget each file is synced, closed and opened again for each append."""
    with logstore.open(tmp_path / "data", config={"logstore.open.files.max": budget}) as store:
        store.create_topic(TOPIC, partition_count)
        append: list[Callable[..., object]] = [
            store.log(TOPIC, number).append_records for number in range(partition_count)
        ]
        value = values(1)

        def append_to_each() -> int:
            for append_records in append:
                append_records(value)
            return partition_count

        kept = f", {budget} files open" if budget else ""
        measured(
            append_to_each,
            title=f"a record appended to each of {partition_count:,} partitions{kept}",
            count=partition_count,
            floor=NO_FLOOR,
            growth=growth(f"append to each{kept}", partition_count),
        )
        ends = {store.log(TOPIC, number).log_end_offset for number in range(partition_count)}
    assert len(ends) == 1


@pytest.mark.parametrize("topic_count", steps(100, 1_000, 10_000))
def test_open_after_topics_that_are_gone(topic_count: int, measured: Measured, tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data") as store:
        for number in range(topic_count):
            store.create_topic(f"t{number}", 1)
            store.delete_topic(f"t{number}")

    def open_store() -> int:
        with logstore.open(tmp_path / "data") as store:
            return len(store.topics)

    found = measured(
        open_store,
        title=f"a store opened after {topic_count:,} topics were made and deleted in it",
        count=1,
        unit="openings",
        floor=NO_FLOOR,
        growth=Growth("topics made and deleted before", "open a store", topic_count),
    )
    assert found == 0


@pytest.mark.parametrize("partition_count", steps(250, 1_000))
def test_transaction_over_all(partition_count: int, measured: Measured, tmp_path: Path) -> None:
    with filled(tmp_path / "data", partition_count) as store:
        producer, (value,) = store.producer(transactional_id="bench"), values(1)
        producer.init_transactions()

        def transact() -> int:
            with producer.transaction():
                for number in range(partition_count):
                    producer.send(TOPIC, value, partition=number)
            return partition_count

        sent = measured(
            transact,
            title=f"a transaction of a record in each of {partition_count:,} partitions",
            count=partition_count,
            floor=NO_FLOOR,
            growth=growth("transaction over all", partition_count),
        )
        # a record, then pairs of a record and a marker
        assert store.log(TOPIC, partition_count - 1).last_stable_offset % 2 == 1
    assert sent == partition_count


@pytest.mark.parametrize("group_count", steps(100, 1_000, 10_000))
def test_commit_beside_groups(group_count: int, measured: Measured, tmp_path: Path) -> None:
    with filled(tmp_path / "data", 1) as store:
        for number in range(group_count):
            with store.consumer(group_id=f"group-{number}") as consumer:
                consumer.commit({(TOPIC, 0): 1})
        consumer = store.consumer(group_id="group-0")

        def commit() -> int:
            consumer.commit({(TOPIC, 0): 1})
            return 1

        committed = measured(
            commit,
            title=f"commit of an offset beside {group_count:,} groups",
            count=1,
            unit="commits",
            floor=NO_FLOOR,
            growth=Growth("groups, transactional ids", "commit beside groups", group_count),
        )
        assert consumer.committed((TOPIC, 0))[TopicPartition(TOPIC, 0)] is not None
    assert committed == 1


@pytest.mark.parametrize("id_count", steps(100, 1_000, 10_000, 100_000))
def test_transaction_beside_ids(id_count: int, measured: Measured, tmp_path: Path) -> None:
    with filled(tmp_path / "data", 1) as store:
        for number in range(id_count):
            with store.producer(transactional_id=f"id-{number}") as producer:
                producer.init_transactions()
        producer, (value,) = store.producer(transactional_id="bench"), values(1)
        producer.init_transactions()

        def transact() -> int:
            with producer.transaction():
                producer.send(TOPIC, value)
            return 1

        sent = measured(
            transact,
            title=f"transaction of one record beside {id_count:,} transactional ids",
            count=1,
            unit="transactions",
            floor=NO_FLOOR,
            growth=Growth("groups, transactional ids", "transaction beside ids", id_count),
        )
        assert store.log(TOPIC, 0).last_stable_offset % 2 == 1  # a record, then pairs of a record and a marker
    assert sent == 1
