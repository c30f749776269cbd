"""Records of a topic with keys by `poll` and by iteration, beside confluent-kafka's `consume`; and records read and
written on with their offsets in one transaction, beside the Java clients; both with a real local broker."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

import logstore
from benchmarks.peers.kafka import LocalBroker, WarmKafka
from benchmarks.peers.python_clients import confluent_consumes
from benchmarks.support.data import scaled, values
from benchmarks.support.floors import copying, writing_each
from benchmarks.support.logs import last_values, sizes_of_one
from benchmarks.support.measure import Measured
from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.model import TopicPartition

RECORD_COUNT = scaled(200, 50_000)
SOURCE = TopicPartition("consumed", 0)
CHAIN_COUNT = scaled(200, 5_000)
TRANSACTION_RECORD_COUNT = 100
GROUP = "bench"


def polled(consumer: Consumer) -> int:
    """Return the bytes of all values, read by `poll`."""
    size = count = 0
    consumer.seek_to_beginning(SOURCE)
    while count < RECORD_COUNT:
        for records in consumer.poll(1000).values():
            count += len(records)
            size += sum(len(record.value) for record in records)
    return size


def iterated(consumer: Consumer) -> int:
    """Return the bytes of all values, read by iteration."""
    consumer.seek_to_beginning(SOURCE)
    return sum(len(record.value) for record in islice(consumer, RECORD_COUNT))


@pytest.mark.parametrize("way", [polled, iterated])
def test_consume(
    way: Callable[[Consumer], int], measured: Measured, kafka: WarmKafka, broker: LocalBroker, tmp_path: Path
) -> None:
    theirs = confluent_consumes(lambda: broker.bootstrap, lambda: broker.topic(SOURCE.topic), RECORD_COUNT)

    def confluents() -> float:
        broker.fill(kafka, SOURCE.topic, RECORD_COUNT)
        return theirs() * RECORD_COUNT

    with logstore.open(tmp_path / "data") as store:
        store.create_topic(SOURCE.topic, partitions=1)
        with store.producer() as filling:
            for number, value in enumerate(values(RECORD_COUNT)):
                filling.send(SOURCE.topic, value, b"%d" % number)
        consumer = store.consumer(enable_auto_commit=False)
        consumer.assign([SOURCE])
        size = measured(
            way,
            consumer,
            title=f"{RECORD_COUNT:,} records, {way.__name__}",
            count=RECORD_COUNT,
            peers={"confluent-kafka": broker.asked(confluents)},
            floor=copying(RECORD_COUNT * 100),
        )
    assert size == sum(map(len, values(RECORD_COUNT)))


def chain(store: Store) -> int:
    """Copy the records of `from` to `to` exactly once; return their number."""
    consumer = store.consumer(
        group_id=GROUP,
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_poll_records=TRANSACTION_RECORD_COUNT,
    )
    source = TopicPartition("from", 0)
    consumer.assign([source])
    consumer.seek_to_beginning(source)
    producer = store.producer(transactional_id="bench")
    producer.init_transactions()
    count = 0
    while count < CHAIN_COUNT:
        polled = [record for records in consumer.poll(1000).values() for record in records]
        producer.begin_transaction()
        for record in polled:
            producer.send("to", record.value, record.key)
        producer.send_offsets_to_transaction({source: consumer.position(source)}, consumer.group_metadata())
        producer.commit_transaction()
        count += len(polled)
    producer.close()
    consumer.close()
    return count


def test_consume_transform_produce(measured: Measured, kafka: WarmKafka, broker: LocalBroker, tmp_path: Path) -> None:
    def kafkas() -> float:
        broker.fill(kafka, "from", CHAIN_COUNT)
        order = {"op": "chain", "bootstrap": broker.bootstrap, "from": "from", "to": broker.topic("to")}
        sizes = {"records": TRANSACTION_RECORD_COUNT, "count": CHAIN_COUNT}
        return kafka.seconds(**order, **sizes, expected_count=CHAIN_COUNT)

    with logstore.open(tmp_path / "data") as store:
        for topic in ("from", "to"):
            store.create_topic(topic, partitions=1)
        with store.producer() as filling:
            for value in values(CHAIN_COUNT):
                filling.send("from", value)
        chain(store)  # the first one adds more
        sizes = sizes_of_one(tmp_path / "data", lambda: chain(store))
        found = measured(
            lambda: chain(store),
            title=f"consume-transform-produce, {CHAIN_COUNT:,} records, {TRANSACTION_RECORD_COUNT} a transaction",
            count=CHAIN_COUNT,
            peers={"broker": broker.asked(kafkas)},
            floor=writing_each(tmp_path / "floor", sizes),
            hashed=lambda _: last_values(store.log("to", 0), CHAIN_COUNT + CHAIN_COUNT // TRANSACTION_RECORD_COUNT),
        )
        written = sum(map(len, store.log("to", 0).records().chunks()))
        assert written >= CHAIN_COUNT
        assert written % CHAIN_COUNT == 0
    assert found == CHAIN_COUNT
