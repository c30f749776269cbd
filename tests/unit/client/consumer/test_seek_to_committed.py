"""Abort, then go on: the inputs of an aborted transaction are read again; and what else a consumer is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import (
    CheckpointFormatError,
    IllegalStateError,
    InvalidGroupIdError,
    LogstoreError,
    UnknownTopicOrPartitionError,
)
from logstore.model import TopicPartition
from tests.support.stores import open_store

TOPICS = {"in": 2, "out": 1}
T0 = TopicPartition("in", 0)


def consumer_of(store: Store, **config: Any) -> Consumer:
    return store.consumer("in", **{"group_id": "g", "enable_auto_commit": False, **config})


def polled(consumer: Consumer) -> list[bytes]:
    return [record.value for records in consumer.poll(0).values() for record in records]


def test_after_an_abort_its_inputs_come_again(store: Store) -> None:
    log = store.log("in", 0)
    log.append_records([b"before the group"])
    consumer = consumer_of(store)
    assert polled(consumer) == []  # begins at the end
    producer = store.producer(transactional_id="x")
    producer.init_transactions()
    for attempt in range(3):
        log.append_records([b"%d" % attempt])
        expected = [b"0", b"1"] if attempt == 1 else [b"%d" % attempt]
        assert polled(consumer) == expected
        producer.begin_transaction()
        producer.send("out", b"%d" % attempt)
        producer.send_offsets_to_transaction({T0: consumer.position(T0)}, consumer.group_metadata())
        if attempt == 0:
            producer.abort_transaction()
            consumer.seek_to_committed()
        else:
            producer.commit_transaction()
    consumer.seek_to_committed(T0)
    assert polled(consumer) == []
    assert consumer.position(T0) == 4


def test_only_partitions_that_are_read_are_sought(store: Store) -> None:
    consumer = consumer_of(store)
    with pytest.raises(IllegalStateError):
        consumer.seek_to_committed(T0)
    with pytest.raises(InvalidGroupIdError):
        store.consumer("in").seek_to_committed()


def test_a_commit_without_waiting_tells_its_callback(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    consumer = consumer_of(store)
    consumer.poll()
    told: list[tuple[Any, LogstoreError | None]] = []
    consumer.commit_async({T0: 0}, lambda offsets, error: told.append((offsets, error)))
    assert told == [({T0: OffsetAndMetadata(0)}, None)]
    consumer.commit_async({("nowhere", 0): 0}, lambda offsets, error: told.append((offsets, error)))
    assert isinstance(told[1][1], UnknownTopicOrPartitionError)
    consumer.commit_async({("nowhere", 0): 0})
    assert "Offsets were not committed" in caplog.text
    consumer.commit_async()
    assert consumer.committed(T0) == {T0: OffsetAndMetadata(0)}


def test_a_partition_that_does_not_open_is_told_by_the_commit(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.create_topic("in", partitions=2)
    (tmp_path / "in-1" / "leader-epoch-checkpoint").write_text("junk")
    with open_store(tmp_path) as store, store.consumer(group_id="g", enable_auto_commit=False) as consumer:
        consumer.assign([T0])
        told: list[LogstoreError | None] = []
        consumer.commit_async({("in", 1): 0}, lambda offsets, error: told.append(error))
        assert [type(error) for error in told] == [CheckpointFormatError]


def test_topics_and_partitions_are_looked_up(store: Store) -> None:
    consumer = consumer_of(store)
    consumer.poll()
    store.log("in", 1).append_records([b"v"])
    assert consumer.topics() == {"in", "out"}
    assert (consumer.partitions_for_topic("in"), consumer.partitions_for_topic("nowhere")) == ({0, 1}, None)
    assert [consumer.highwater(("in", number)) for number in range(2)] == [0, 1]
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.highwater(("in", 2))
