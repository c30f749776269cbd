"""Records read and written on with their offsets in one transaction; beside the Java clients with a real broker."""

from __future__ import annotations

from pathlib import Path

import logstore
from benchmarks.floors import writing_each
from benchmarks.logs import values
from benchmarks.measured import Measured
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.sizes import scaled
from benchmarks.written import last_values, sizes_of_one
from logstore.client.store import Store
from logstore.model import TopicPartition

RECORD_COUNT = scaled(200, 5_000)
TRANSACTION_RECORD_COUNT = 100
GROUP = "bench"


def chain(store: Store) -> int:
    """Read `from` and write `to`, exactly once; the number of records."""
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
    while count < RECORD_COUNT:
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


def test_chain(measured: Measured, kafka: WarmKafka, broker: LocalBroker, tmp_path: Path) -> None:
    def kafkas() -> float:
        if "from" not in broker.filled:
            order = {"op": "transact", "bootstrap": broker.bootstrap, "topic": broker.topic("from")}
            kafka.measure(**order, records=RECORD_COUNT, count=1, size=100)
            broker.filled.add("from")
        order = {"op": "chain", "bootstrap": broker.bootstrap, "from": "from", "to": broker.topic("to")}
        sizes = {"records": TRANSACTION_RECORD_COUNT, "count": RECORD_COUNT}
        return kafka.seconds(**order, **sizes, expected_count=RECORD_COUNT)

    with logstore.open(tmp_path / "data") as store:
        for topic in ("from", "to"):
            store.create_topic(topic, partitions=1)
        with store.producer() as filling:
            for value in values(RECORD_COUNT):
                filling.send("from", value)
        chain(store)  # the first one adds more
        sizes = sizes_of_one(tmp_path / "data", lambda: chain(store))
        found = measured(
            lambda: chain(store),
            title=f"consume-transform-produce, {RECORD_COUNT:,} records, {TRANSACTION_RECORD_COUNT} a transaction",
            count=RECORD_COUNT,
            peers={"broker": broker.asked(kafkas)},
            floor=writing_each(tmp_path / "floor", sizes),
            hashed=lambda _: last_values(store.log("to", 0), RECORD_COUNT + RECORD_COUNT // TRANSACTION_RECORD_COUNT),
        )
        written = sum(map(len, store.log("to", 0).records().chunks()))
        assert written >= RECORD_COUNT
        assert written % RECORD_COUNT == 0
    assert found == RECORD_COUNT
