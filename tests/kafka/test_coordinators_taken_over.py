"""What the coordinators of a store wrote, seen by an unmodified broker; and the same work done by both, compared."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.consumer.assignors import ASSIGNORS
from logstore.client.store import Store
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, Joining
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.coordinator.transactions.transaction import from_record
from logstore.replay.internal_topic import ControlBatch, ReplayedRecord, replayed
from logstore.topics.consumer_offsets import decode_key, decode_value
from tests.support.broker import Broker
from tests.support.judges import judged
from tests.support.oracle import Oracle
from tests.support.small_store import TransactionalClient
from tests.support.take_over import ask, warnings

pytestmark = pytest.mark.kafka

#: the broker's settings in `broker.SETTINGS` that its coordinators would make topics by
SETTINGS = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
#: a broker that is elected twice while it starts says this of its own partitions, too
OF_A_SLOW_START = "the partition is not online or is no longer the leader"
INTERNAL = ("__consumer_offsets", "__transaction_state")


def work(store: Store) -> None:
    """As `TakeOver work`, in the same order."""
    store.create_topic("ledger", 2, {"cleanup.policy": "compact", "min.insync.replicas": "1"})
    producer_id, epoch = store.transactions.init_producer_id(None, 0)
    for number, value in enumerate((b"plain", b"p1")):
        log = store.log("ledger", number)
        log.append_records([value], [b"k"], producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
    store.groups.commit(ConsumerGroupMetadata("audit"), {("ledger", 0): OffsetAndMetadata(1, metadata="half")})
    billing = TransactionalClient(store, "billing")
    store.transactions.add_partitions("billing", billing.identity, [("ledger", 0), ("ledger", 1)])  # in one request
    send(billing, 0, b"paid")
    send(billing, 1, b"q")
    store.transactions.commit_offsets(
        "billing", billing.identity, ConsumerGroupMetadata("readers"), {("ledger", 1): OffsetAndMetadata(2)}
    )
    billing.end(is_commit=True)
    send(billing, 0, b"never")
    billing.end(is_commit=False)
    send(TransactionalClient(store, "left-open"), 0, b"pending")


def send(client: TransactionalClient, number: int, value: bytes) -> None:
    client.send("ledger", value, partition=number, key=b"k")


def described(store: Store) -> list[list[Any]]:
    """The internal topics record by record, without times and producer ids."""
    lines = []
    for topic in INTERNAL:
        for number in range(2):
            for one in replayed(store.log(topic, number)):
                lines.append([topic, number, *(_marker(one) if isinstance(one, ControlBatch) else _record(topic, one))])
    return lines


def _marker(one: ControlBatch) -> list[Any]:
    return ["marker", one.is_commit()]


def _record(topic: str, one: ReplayedRecord) -> list[Any]:
    assert one.key is not None
    assert one.value is not None
    if topic == INTERNAL[1]:
        state = from_record(one.key, one.value)
        version, partitions = one.value[:2].hex(), sorted(state.partitions)
        has_start, client_version = state.start_timestamp_ms > 0, state.client_transaction_version
        numbers = (state.producer_epoch, state.producer_id - state.previous_producer_id, state.next_producer_id)
        return [state.transactional_id, version, state.state.name, *numbers, has_start, client_version, partitions]
    key = decode_key(one.key)
    value = decode_value(key, one.value)
    is_transactional = one.producer_id >= 0
    has_topic_id = getattr(value, "topic_id", None) is not None
    fields = (getattr(value, name) for name in ("offset", "leader_epoch", "metadata", "expire_timestamp_ms"))
    return [str(key), one.value[:2].hex(), is_transactional, *fields, has_topic_id]


@pytest.mark.by_newest
@pytest.mark.slow
def test_a_broker_goes_on_with_what_the_coordinators_wrote(oracle: Oracle, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    kafka = judged().name
    with logstore.open(ours, config=SETTINGS, kafka_version=kafka) as store:
        work(store)
        our_records = described(store)
        store.groups.join("members", Joining(member_id="m1", topics=("ledger",), assignors=ASSIGNORS))
        assert store.groups.sync("members", "m1") is not None
    with logstore.open(theirs, config=SETTINGS, kafka_version=kafka):
        pass
    broker = Broker(oracle, theirs, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [expected] = ask(oracle, address, tmp_path, "work", "state")
    with logstore.open(theirs, config=SETTINGS, kafka_version=kafka) as store:
        assert our_records == described(store)
    broker = Broker(oracle, ours, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        found, finished = ask(oracle, address, tmp_path, "state", "finish")
    assert [line for line in warnings(broker) if OF_A_SLOW_START not in line] == []
    assert without_ids(found) == without_ids(expected)
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)
    assert max(finished["producerIds"]) >= 1000


def without_ids(state: dict[str, Any]) -> dict[str, Any]:
    """Topic ids are drawn by chance, and producer ids depend on how many were taken before."""
    topics = {name: {**topic, "id": None} for name, topic in state["topics"].items()}
    transactions = {name: text.split()[0] for name, text in state["transactions"].items()}
    return {**state, "topics": topics, "transactions": transactions}
