"""Internal topics belong to the store: a record of somebody else's in one of them, and it could not be opened again."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, Joining
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import InvalidPartitionsError, InvalidTopicError, LogstoreError, UnknownTopicOrPartitionError
from logstore.store.partitions import Partitions
from tests.support.stores import begun

INTERNAL = ["__transaction_state", "__consumer_offsets"]


def test_the_metadata_topic_cannot_be_made(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data") as store:
        with pytest.raises(InvalidTopicError, match="Creation of internal topic __cluster_metadata is prohibited"):
            store.create_topic("__cluster_metadata")
        assert "__cluster_metadata" not in store.topics
    with logstore.open(tmp_path / "data") as store:
        assert list(store.topics) == []


@pytest.mark.parametrize("topic", INTERNAL)
def test_producers_do_not_write_into_internal_topics(tmp_path: Path, topic: str) -> None:
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("t")
        with begun(store, "one") as producer:  # both topics are there
            producer.send_offsets_to_transaction({("t", 0): 0}, "group")
            producer.commit_transaction()
        with store.producer() as producer:
            with pytest.raises(InvalidTopicError, match=f"Cannot append to internal topic {topic}"):
                producer.send(topic, b"value", key=b"hello")
            with pytest.raises(InvalidTopicError, match=f"Cannot append to internal topic {topic}"):
                producer.send_columns(topic, [b"value"])
    logstore.open(tmp_path / "data").close()


@pytest.mark.parametrize("topic", INTERNAL)
def test_topics_of_coordinators_are_neither_deleted_nor_given_partitions(tmp_path: Path, topic: str) -> None:
    config = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
    with logstore.open(tmp_path, config=config) as store:
        store.create_topic("t")
        identity = store.transactions.init_producer_id("one", 60_000)
        store.groups.commit(ConsumerGroupMetadata("group"), {("t", 0): OffsetAndMetadata(17)})
        with pytest.raises(InvalidTopicError, match=f"Deletion of internal topic {topic} is prohibited"):
            store.delete_topic(topic)
        with pytest.raises(InvalidPartitionsError, match=f"of internal topic {topic} cannot be changed"):
            store.add_partitions(topic, 2)
        assert store.topics[topic].partition_count == 1
        assert store.transactions.init_producer_id("one", 60_000) == (identity[0], identity[1] + 1)
        assert len(store.groups.fetch("group")) == 1


@pytest.mark.parametrize("topic", INTERNAL)
def test_a_topic_of_a_coordinator_that_is_not_there_is_unknown(tmp_path: Path, topic: str) -> None:
    with logstore.open(tmp_path) as store, pytest.raises(UnknownTopicOrPartitionError):
        store.delete_topic(topic)


def test_a_thread_waits_for_the_internal_topic_that_another_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata knows the topic before its partitions are there."""
    begins, open_all = threading.Event(), Partitions.open_all
    errors: list[LogstoreError] = []

    def slowly(partitions: Partitions, *arguments: Any, **named: Any) -> None:
        begins.set()
        time.sleep(0.3)
        open_all(partitions, *arguments, **named)

    def join(group: str) -> None:
        try:
            store.groups.join(group, Joining(member_id="m", topics=(), assignors=ASSIGNORS))
        except LogstoreError as error:
            errors.append(error)

    with logstore.open(tmp_path / "data") as store:
        monkeypatch.setattr(Partitions, "open_all", slowly)
        first = threading.Thread(target=join, args=["a"])
        first.start()
        assert begins.wait(60)
        join("b")
        first.join()
    assert errors == []
