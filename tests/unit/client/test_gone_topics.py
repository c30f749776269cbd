"""Topics that are deleted, and made anew under their name, while groups, consumers and producers know them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest

from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import AbortRequiredError, NoOffsetForPartitionError, UnknownTopicOrPartitionError
from logstore.model import TopicPartition
from tests.support.stores import begun, values_of

TOPICS = {"t": 1, "other": 1}

T0, OTHER = TopicPartition("t", 0), TopicPartition("other", 0)


def fill(store: Store, count: int, text: bytes = b"old", topic: str = "t") -> None:
    store.log(topic, 0).append_records([text] * count)


def make_anew(store: Store, count: int) -> None:
    store.delete_topic("t")
    store.create_topic("t")
    fill(store, count, b"new")


def values(consumer: Consumer, **how: int) -> list[bytes]:
    return [record.value for records in consumer.poll(**how).values() for record in records]


@pytest.mark.parametrize("place", [("t", 1), ("nowhere", 0)])
def test_no_offset_is_committed_of_what_is_not_there(store: Store, place: tuple[str, int]) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match=f"does not host.*{place[0]}-{place[1]}"):
        store.groups.commit(ConsumerGroupMetadata("g"), {place: OffsetAndMetadata(1), T0: OffsetAndMetadata(2)})
    assert set(store.groups.fetch("g")) == {T0}


def test_a_transaction_with_an_offset_of_nothing_has_to_be_aborted(store: Store) -> None:
    producer = begun(store)
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send_offsets_to_transaction({T0: 1, ("nowhere", 0): 1}, "g")
    with pytest.raises(AbortRequiredError):
        producer.commit_transaction()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({T0: 2}, "g")
    producer.commit_transaction()
    assert store.consumer(group_id="g").committed(T0) == {T0: OffsetAndMetadata(2)}


def test_a_group_is_assigned_nothing_of_a_deleted_topic(store: Store) -> None:
    consumer = store.consumer("t", "other", group_id="g", auto_offset_reset="earliest")
    assert consumer.poll() == {}
    store.delete_topic("t")
    fill(store, 1, topic="other")
    assert len(values(consumer)) == 1
    assert consumer.assignment() == {OTHER}
    consumer.commit()
    assert consumer.committed(T0, OTHER) == {T0: None, OTHER: OffsetAndMetadata(1, leader_epoch=0)}


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_listener_hears_of_a_deleted_topic_and_the_other_is_committed(store: Store, assignor: str) -> None:
    told = list[TopicPartition]()

    class Listener:
        def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
            told.extend(revoked)

        def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
            pass

    fill(store, 1)
    fill(store, 2, topic="other")
    consumer = store.consumer(
        group_id="g",
        auto_offset_reset="earliest",
        partition_assignment_strategy=[assignor],
        auto_commit_interval_ms=60_000,
    )
    consumer.subscribe(pattern="t|other", listener=Listener())
    assert len(values(consumer)) == 3
    store.delete_topic("t")
    fill(store, 1, topic="other")
    assert len(values(consumer)) == 1
    assert told == ([T0] if assignor == "cooperative-sticky" else [OTHER, T0])
    assert consumer.committed(OTHER) == {OTHER: OffsetAndMetadata(2, leader_epoch=0)}


def test_a_group_reads_all_of_a_topic_that_was_made_anew(store: Store) -> None:
    fill(store, 100)
    fill(store, 1, topic="other")
    first = store.consumer("t", "other", group_id="g", auto_offset_reset="earliest")
    assert len(values(first)) == 101
    store.delete_topic("t")
    first.close()
    assert set(store.groups.fetch("g")) == {OTHER}  # the others are committed all the same
    store.create_topic("t")
    fill(store, 150, b"new")
    second = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    assert values(second) == [b"new"] * 150


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_consumer_begins_anew_in_a_topic_that_was_made_anew(store: Store, is_shared: bool) -> None:
    fill(store, 100)
    consumer = store.consumer("t", group_id="g" if is_shared else None, auto_offset_reset="earliest")
    assert len(values(consumer)) == 100
    make_anew(store, 150)
    assert values(consumer, timeout_ms=1000) == [b"new"] * 150


def test_no_position_in_the_old_topic_is_committed_for_the_new_one(store: Store) -> None:
    fill(store, 100)
    consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    assert len(values(consumer)) == 100
    make_anew(store, 150)
    consumer.commit()
    assert consumer.committed(T0) == {T0: None}
    assert consumer.position(T0) == 0


def test_without_a_reset_policy_a_topic_made_anew_is_an_error(store: Store) -> None:
    fill(store, 100)
    consumer = store.consumer(auto_offset_reset="none")
    consumer.assign([T0])
    consumer.seek(T0, 99)
    assert values(consumer) == [b"old"]
    make_anew(store, 150)
    with pytest.raises(NoOffsetForPartitionError):
        consumer.poll(timeout_ms=1000)
    consumer.seek(T0, 149)  # which is in the new one
    assert values(consumer) == [b"new"]


def test_enough_is_counted_without_a_deleted_topic(store: Store) -> None:
    consumer = store.consumer("t", "other", group_id="g", fetch_min_bytes=1000, fetch_max_wait_ms=100_000)
    consumer.poll()
    store.delete_topic("t")
    fill(store, 1, topic="other")
    assert consumer.poll() == {}
    fill(store, 200, topic="other")
    assert len(values(consumer)) == 201


def test_a_topic_that_is_deleted_before_it_was_read_does_not_keep_others(store: Store) -> None:
    fill(store, 1, topic="other")
    consumer = store.consumer("t", "other", group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    consumer._member.poll(None)  # type: ignore[union-attr] # it has its partitions, and no positions yet
    store.delete_topic("t")
    assert values(consumer) == [b"old"]


@pytest.mark.parametrize("is_read_before", [False, True])
@pytest.mark.parametrize("min_bytes", [1, 10])
def test_an_assigned_topic_that_is_deleted_keeps_nobody_from_the_others(
    store: Store, is_read_before: bool, min_bytes: int
) -> None:
    consumer = store.consumer(auto_offset_reset="earliest", fetch_min_bytes=min_bytes)
    consumer.assign([T0, OTHER])
    if is_read_before:
        consumer.poll()
    store.delete_topic("t")
    fill(store, 1, topic="other")
    found = []
    for _ in range(2):
        with suppress(UnknownTopicOrPartitionError):
            found += values(consumer)
            continue
        found.append("gone")
    assert b"old" in found
    assert "gone" in found


def test_a_transaction_goes_on_in_the_new_log(store: Store) -> None:
    producer = begun(store)
    gone = producer.send("t", b"gone")
    producer.flush()
    store.delete_topic("t")
    store.create_topic("t", 1)
    kept = [producer.send("t", b"first"), producer.send("t", b"second")]
    producer.commit_transaction()
    assert [one.get().offset for one in (gone, *kept)] == [0, 0, 1]
    log = store.log("t", 0)
    assert log.last_stable_offset == log.log_end_offset == 3
    assert values_of(store, "t") == [b"first", b"second"]


def test_sequences_begin_at_0_in_the_new_log(store: Store) -> None:
    producer = store.producer()
    for value in (b"1", b"2"):
        producer.send("t", value)
    producer.flush()
    store.delete_topic("t")
    store.create_topic("t", 1)
    assert producer.send("t", b"3").get().offset == 0
    (entry,) = store.log("t", 0).state.producers.state
    assert [(batch.first_sequence, batch.last_offset) for batch in entry.batches] == [(0, 0)]
