"""Transactions of an embedded store: begin, send, commit; beside the Java client with a real local broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import logstore
from benchmarks.floors import writing_each
from benchmarks.logs import values
from benchmarks.measured import Growth, Measured
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.sizes import scaled
from benchmarks.written import sizes_of_one, written
from logstore.client.store import Store

VALUE_SIZE, RECORD_SIZE = 100, 107
KAFKA_CALLS = {1: 200, 10: 150, 1000: 30}  # transactions a round, by records each


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("orders", partitions=1)
        yield store


@pytest.mark.parametrize("record_count", KAFKA_CALLS)
def test_transaction(
    measured: Measured,
    kafka: WarmKafka,
    broker: LocalBroker,
    store: Store,
    tmp_path: Path,
    record_count: int,
) -> None:
    producer = store.producer(transactional_id="bench")
    producer.init_transactions()
    batch, count = values(record_count, VALUE_SIZE), 0

    def transact() -> int:
        nonlocal count
        producer.begin_transaction()
        for value in batch:
            producer.send("orders", value)
        producer.commit_transaction()
        count += 1
        return record_count

    def kafkas() -> float:
        calls = scaled(3, KAFKA_CALLS[record_count])
        order = {"op": "transact", "bootstrap": broker.bootstrap, "topic": broker.topic("orders")}
        sizes = {"records": record_count, "count": calls, "size": VALUE_SIZE}
        return kafka.seconds(**order, **sizes, call_count=calls, expected_count=calls * record_count)

    transact()  # the first one adds more
    sizes = sizes_of_one(tmp_path / "data", transact)
    log = store.log("orders", 0)
    measured(
        transact,
        title=f"transaction of {record_count:,} records",
        size=record_count * RECORD_SIZE,
        count=1,
        unit="transactions",
        peers={"broker": broker.asked(kafkas)},
        floor=writing_each(tmp_path / "floor", sizes, 100),
        growth=Growth("records of a transaction", "transaction", record_count),
        hashed=lambda count: (count, *written(log, record_count + 1)),
    )
    assert log.last_stable_offset == log.log_end_offset == count * (record_count + 1)
