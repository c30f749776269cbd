"""Records of a topic with keys by `poll` and by iteration; beside confluent-kafka's `consume` and a local broker."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

import logstore
from benchmarks.floors import copying
from benchmarks.logs import values
from benchmarks.measured import Measured
from benchmarks.peers.confluent_clients import confluent_consumes
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.sizes import scaled
from logstore.client.consumer import Consumer
from logstore.model import TopicPartition

RECORD_COUNT = scaled(200, 50_000)
SOURCE = TopicPartition("consumed", 0)


def polled(consumer: Consumer) -> int:
    """Sizes of the values of all records, by `poll`."""
    size = count = 0
    consumer.seek_to_beginning(SOURCE)
    while count < RECORD_COUNT:
        for records in consumer.poll(1000).values():
            count += len(records)
            size += sum(len(record.value) for record in records)
    return size


def iterated(consumer: Consumer) -> int:
    """As `polled`, by iteration."""
    consumer.seek_to_beginning(SOURCE)
    return sum(len(record.value) for record in islice(consumer, RECORD_COUNT))


@pytest.mark.parametrize("way", [polled, iterated])
def test_consume(way: object, measured: Measured, kafka: WarmKafka, broker: LocalBroker, tmp_path: Path) -> None:
    theirs = confluent_consumes(lambda: broker.bootstrap, lambda: broker.topic(SOURCE.topic), RECORD_COUNT)

    def confluents() -> float:
        if SOURCE.topic not in broker.filled:
            order = {"op": "transact", "bootstrap": broker.bootstrap, "topic": broker.topic(SOURCE.topic)}
            kafka.measure(**order, records=RECORD_COUNT, count=1, size=100)
            broker.filled.add(SOURCE.topic)
        return theirs() * RECORD_COUNT

    with logstore.open(tmp_path / "data") as store:
        store.create_topic(SOURCE.topic, partitions=1)
        with store.producer() as filling:
            for number, value in enumerate(values(RECORD_COUNT)):
                filling.send(SOURCE.topic, value, b"%d" % number)
        consumer = store.consumer(enable_auto_commit=False)
        consumer.assign([SOURCE])
        size = measured(
            lambda: way(consumer),  # type: ignore[operator]
            title=f"{RECORD_COUNT:,} records",
            count=RECORD_COUNT,
            peers={"confluent-kafka": broker.asked(confluents)},
            floor=copying(RECORD_COUNT * 100),
        )
    assert size == sum(map(len, values(RECORD_COUNT)))
