"""What `import logstore` offers, and what only a store in the same process has beside Kafka's clients."""

from __future__ import annotations

import logging
import subprocess
import sys
from types import ModuleType

import pytest

import logstore
from logstore import OffsetAndMetadata, Store
from logstore.client.producer.states import TransactionManagerState
from logstore.errors import (
    AbortRequiredError,
    IllegalStateError,
    KafkaStorageError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from tests.support.stores import begun

TOPICS = {"t": 2}


def test_all_names_are_there_and_none_is_imported_before_it_is_asked_for() -> None:
    assert len(logstore.__all__) <= 28
    for name in logstore.__all__:
        value = getattr(logstore, name)
        assert isinstance(value, ModuleType) or name == getattr(value, "__name__", name)
    with pytest.raises(AttributeError, match="no attribute 'EmbeddedStore'"):
        logstore.EmbeddedStore  # type: ignore[attr-defined] # noqa: B018
    code = "import logstore, sys; print([name for name in sys.modules if name.startswith('logstore.')])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert answer == "['logstore.clock']\n"


def test_things_say_what_they_are_and_where_they_stand(store: Store) -> None:
    producer, plain = store.producer(transactional_id="x"), store.producer(enable_idempotence=False)
    consumer = store.consumer(client_id="c")
    assert repr(store) == f"<Store {store.path}: 1 topics>"
    assert repr(producer) == "<Producer producer-x: UNINITIALIZED>"
    assert repr(plain) == "<Producer producer-2: not idempotent>"
    assert repr(consumer) == "<Consumer c: no partitions>"
    consumer.assign([("t", 0), ("t", 1)])
    consumer.seek(("t", 1), 0)
    assert repr(consumer) == "<Consumer c: t-0 at ?, t-1 at 0>"
    future, log = plain.send("t", b"v", partition=0), store.log("t", 0)
    assert repr(future) == "<RecordFuture for t-0: pending>"
    plain.flush()
    assert repr(future) == "<RecordFuture for t-0: at offset 0>"
    assert repr(log) == "<PartitionLog t-0: offsets 0 to 1>"
    assert repr(reader := log.records()) == "<RecordReader t-0: at 0>"
    assert list(map(repr, reader.chunks())) == ["<1 records, offsets 0 to 0>"]
    assert repr(reader) == "<RecordReader t-0: at 1>"
    with logstore.open(store.path, read_only=True) as looked_at:
        assert repr(looked_at) == f"<ReadOnlyStore {store.path}: 1 topics>"
        assert repr(looked_at.log("t", 0)) == "<PartitionReader t-0: offsets 0 to 1>"
    store.close()
    assert repr(plain) == "<Producer producer-2: closed>"
    assert repr(log) == "<PartitionLog t-0: closed, offsets 0 to 1>"
    assert repr(store) == f"<Store {store.path}: closed>"
    assert repr(consumer) == "<Consumer c: closed>"


def test_a_topic_is_read_from_its_beginning_to_its_end(store: Store) -> None:
    with store.producer() as producer:
        for number in range(1200):
            producer.send("t", b"%d" % number, partition=number % 2)
    records = store.read("t", value_deserializer=int)
    store.producer(linger_ms=0).send("t", b"-1", partition=1).result()
    assert [record.value for record in records] == [*range(0, 1200, 2), *range(1, 1200, 2)]
    assert len(list(store.read("t"))) == 1201
    with pytest.raises(UnknownTopicOrPartitionError):
        store.read("nowhere")


def test_what_is_read_ends_before_an_open_transaction(store: Store) -> None:
    producer = store.producer(transactional_id="x")
    producer.init_transactions()
    for value in (b"kept", b"open"):
        producer.begin_transaction()
        producer.send("t", value, partition=0)
        producer.flush()
        if value == b"kept":
            producer.commit_transaction()
    assert [record.value for record in store.read("t", isolation_level="read_committed")] == [b"kept"]
    assert [record.value for record in store.read("t")] == [b"kept", b"open"]


def test_a_future_answers_to_the_names_of_the_standard_library(store: Store) -> None:
    producer = store.producer(linger_ms=60_000)
    future = producer.send("t", b"x", partition=1)
    assert not future.done()
    with pytest.raises(RequestTimedOutError):
        future.result(timeout=0)
    producer.flush()
    assert future.done()
    assert future.result() == future.get()


def test_a_transaction_counts_if_its_block_ends_well(store: Store) -> None:
    producer = store.producer(transactional_id="x")
    producer.init_transactions()
    with producer.transaction():
        producer.send("t", b"1", partition=0)
        producer.send_offsets_to_transaction({("t", 1): OffsetAndMetadata(0)}, group_id="g")

    def interrupted() -> None:
        with producer.transaction():
            producer.send("t", b"2", partition=0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with pytest.raises(RecordTooLargeError), producer.transaction():
        producer.send("t", bytes(2_000_000), partition=0)
    with pytest.raises(AbortRequiredError), producer.transaction(), pytest.raises(UnknownTopicOrPartitionError):
        producer.send("nowhere", b"3")
    with producer.transaction():
        producer.send("t", b"4", partition=0)
    assert producer.state is TransactionManagerState.READY
    assert [record.value for record in store.read("t", isolation_level="read_committed")] == [b"1", b"4"]
    reader = store.consumer(group_id="g")
    assert reader.committed(("t", 1)) == {("t", 1): OffsetAndMetadata(0)}


def test_a_block_leaves_a_transaction_that_it_has_not_begun(store: Store) -> None:
    producer = begun(store)
    with pytest.raises(IllegalStateError), producer.transaction():
        pass
    assert producer.state is TransactionManagerState.IN_TRANSACTION


def test_an_abort_that_fails_is_a_note_of_the_error_before(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = store.producer(transactional_id="x")
    producer.init_transactions()

    def end_transaction(*_: object, **__: object) -> None:
        raise KafkaStorageError("disk full")

    def fail() -> None:
        with producer.transaction():
            producer.send("t", b"1", partition=0)
            producer.flush()
            monkeypatch.setattr(store.transactions, "end_transaction", end_transaction)
            raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program") as raised:
        fail()
    assert raised.value.__notes__[0].startswith("Then aborting the transaction failed: KafkaStorageError")
    monkeypatch.undo()


@pytest.mark.parametrize("client", ["producer", "consumer"])
def test_configurations_of_a_network_are_refused_together_or_ignored(
    store: Store, client: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"bootstrap_servers": "localhost:9092", "security.protocol": "SSL", "ssl.key.password": "secret"}
    text = "no network to configure: bootstrap.servers, security.protocol, ssl.key.password; leave them out"
    with pytest.raises(UsageError, match=text):
        getattr(store, client)(**config)
    with caplog.at_level(logging.WARNING, "logstore"):
        made = getattr(store, client)(**config, ignore_network_config=True)
    assert [record.message for record in caplog.records] == [
        f"A {client} in one process with its store has no network and ignores bootstrap.servers, security.protocol, "
        "ssl.key.password"
    ]
    assert not made.config.keys() & {"bootstrap.servers", "security.protocol"}
    with pytest.raises(UsageError, match=f"Unknown {client} config name: group_idd"):
        getattr(store, client)(group_idd="g", ignore_network_config=True)
