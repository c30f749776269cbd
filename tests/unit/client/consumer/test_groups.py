"""Consumers of one group: who reads what, what is committed, and what becomes of those who are shut out."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable
from contextlib import suppress

import pytest

from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    NoOffsetForPartitionError,
    RebalanceInProgressError,
    RequestTimedOutError,
)
from logstore.model import TopicPartition
from tests.support.clock import Clock
from tests.support.group_members import member, settle
from tests.support.stores import begun

TOPICS = {"t": 4}

PARTITIONS = [TopicPartition("t", number) for number in range(4)]
MINUTE_MS = 60_000


def fill(store: Store, count: int = 1) -> None:
    for partition in range(4):
        store.log("t", partition).append_records([b"x"] * count)


class Listener:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.told.append(("revoked", [one.partition for one in revoked]))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.told.append(("lost", [one.partition for one in lost]))

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.told.append(("assigned", [one.partition for one in assigned]))


def test_members_share_the_partitions(store: Store) -> None:
    first, listener = store.consumer(group_id="g"), Listener()
    first.subscribe(["t"], listener=listener)
    assert settle(first) == [[0, 1, 2, 3]]
    second = member(store)
    assert settle(first, second) == [[0, 1], [2, 3]]
    assert first.subscription() == {"t"}
    second.close()
    assert settle(first) == [[0, 1, 2, 3]]
    first.close()
    assert listener.told == [
        ("assigned", [0, 1, 2, 3]),
        ("revoked", [0, 1, 2, 3]),
        ("assigned", [0, 1]),
        ("revoked", [0, 1]),
        ("assigned", [0, 1, 2, 3]),
        ("revoked", [0, 1, 2, 3]),
    ]


def test_a_member_goes_on_from_committed_offsets(store: Store) -> None:
    fill(store, 3)
    first = member(store, enable_auto_commit=False)
    assert first.group_metadata() == ConsumerGroupMetadata("g")
    assert sum(map(len, first.poll(max_records=5).values())) == 5
    assert first.group_metadata().generation_id == 1
    first.commit()
    first.commit({PARTITIONS[3]: OffsetAndMetadata(1, "so far", 0), PARTITIONS[2]: OffsetAndMetadata(2, None)})  # type: ignore[arg-type]
    assert first.committed(*PARTITIONS[2:]) == {
        PARTITIONS[2]: OffsetAndMetadata(2),
        PARTITIONS[3]: OffsetAndMetadata(1, "so far", 0),
    }
    first.close()
    second = member(store, enable_auto_commit=False)
    places = {partition: records[0].offset for partition, records in second.poll().items()}
    assert places[PARTITIONS[2]] == 2
    assert places[PARTITIONS[3]] == 1
    assert store.consumer(group_id="other").committed(PARTITIONS[0]) == {PARTITIONS[0]: None}


def test_a_negative_offset_that_another_client_committed_is_none(store: Store) -> None:
    store.groups.commit(ConsumerGroupMetadata("g"), {PARTITIONS[0]: OffsetAndMetadata(-1)})
    consumer = store.consumer(group_id="g", auto_offset_reset="none")
    consumer.assign(PARTITIONS[:1])
    assert consumer.committed(PARTITIONS[0]) == {PARTITIONS[0]: None}
    with pytest.raises(NoOffsetForPartitionError):
        consumer.poll()


def test_offsets_are_committed_automatically(store: Store) -> None:
    fill(store)
    seen = store.consumer(group_id="g")
    first = member(store, auto_commit_interval_ms=0)
    assert len(first.poll()) == 4
    assert set(seen.committed(*PARTITIONS).values()) == {None}
    first.poll()
    assert set(seen.committed(*PARTITIONS).values()) == {OffsetAndMetadata(1, leader_epoch=0)}
    fill(store)
    later = member(store, auto_commit_interval_ms=MINUTE_MS)
    settle(first, later)
    later.close()
    assert set(seen.committed(*PARTITIONS).values()) == {OffsetAndMetadata(2, leader_epoch=0)}


def test_a_consumer_with_its_own_partitions_commits_as_well(store: Store) -> None:
    fill(store)
    with store.consumer(group_id="alone", auto_offset_reset="earliest") as consumer:
        consumer.assign(PARTITIONS[:1])
        consumer.poll()
    assert store.consumer(group_id="alone").committed(PARTITIONS[0]) == {
        PARTITIONS[0]: OffsetAndMetadata(1, leader_epoch=0)
    }


def test_nobody_commits_between_two_generations(store: Store) -> None:
    first, second = member(store, enable_auto_commit=False), member(store, enable_auto_commit=False)
    first.poll()
    second.poll()  # waits for the first one to join again
    first.commit({PARTITIONS[0]: 1})  # which may finish what it has
    with pytest.raises(RebalanceInProgressError, match="the consumer is undergoing a rebalance"):
        second.commit({PARTITIONS[0]: 2})
    settle(first, second)
    second.commit({PARTITIONS[3]: 2})


def test_a_silent_member_is_shut_out(store: Store, clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    fill(store)
    silent, listener = store.consumer(group_id="g", auto_offset_reset="earliest"), Listener()
    silent.subscribe(["t"], listener=listener)
    other = member(store)
    settle(silent, other)
    clock.now_ms += 4 * MINUTE_MS
    other.poll()
    clock.now_ms += 2 * MINUTE_MS
    store.groups.remove_silent()
    assert settle(other) == [[0, 1, 2, 3]]
    with pytest.raises(
        CommitFailedError, match="the group has already rebalanced and assigned the partitions to anoth"
    ):
        silent.commit({PARTITIONS[0]: 1})
    with caplog.at_level(logging.WARNING, "logstore"):
        assert sorted(settle(silent, other)) == [[0, 1], [2, 3]]
    assert listener.told[-2][0] == "lost"
    assert listener.told[-1][0] == "assigned"


def cooperative(store: Store, listener: Listener, **config: object) -> Consumer:
    consumer = store.consumer(
        group_id="g", auto_offset_reset="earliest", partition_assignment_strategy=["cooperative-sticky"], **config
    )
    consumer.subscribe(["t"], listener=listener)
    return consumer


def test_cooperative_members_read_on_and_hand_over_in_two_rebalances(store: Store) -> None:
    fill(store, 6)
    listeners = [Listener(), Listener()]
    first = cooperative(store, listeners[0], max_poll_records=1)
    first.poll()
    assert listeners[0].told == [("assigned", [0, 1, 2, 3])]
    second = cooperative(store, listeners[1])
    second.poll()
    assert len(first.poll()) == 1
    assert listeners[0].told[1:] == [("revoked", [2, 3]), ("assigned", [])]
    generation = store.groups.describe("g").generation
    second.poll()
    assert not second.assignment(), "nobody has them until the first has joined again"
    assert len(first.poll()) == 1, "it joins, and reads on while the second has yet to do so"
    assert settle(first, second) == [[0, 1], [2, 3]]
    assert listeners[0].told[3:] == [("assigned", [])]
    assert listeners[1].told == [("assigned", []), ("assigned", [2, 3])]
    assert store.groups.describe("g").generation == generation + 1


def test_cooperative_members_commit_what_they_hand_over(store: Store) -> None:
    fill(store, 3)
    first = cooperative(store, Listener())
    settle(first)
    second = cooperative(store, Listener())
    found = [record for _ in range(6) for one in (second, first) for rows in one.poll().values() for record in rows]
    assert [len(one.assignment()) for one in (first, second)] == [2, 2]
    assert found == []
    assert second.position(PARTITIONS[3]) == 3


def test_members_change_from_eager_to_cooperative_one_by_one(store: Store) -> None:
    fill(store, 40)
    both, seen, protocols = ["range", "cooperative-sticky"], list[tuple[int, int]](), list[str | None]()
    steps = [[both, ["range"]], [both, both], [["cooperative-sticky"], both], [["cooperative-sticky"]] * 2]
    members = [member(store, max_poll_records=3, partition_assignment_strategy=names) for names in steps[0]]
    for names in steps:
        for number, consumer in enumerate(members):
            if consumer.config["partition.assignment.strategy"] != names[number]:
                consumer.close()
                strategy = names[number]
                members[number] = member(store, max_poll_records=3, partition_assignment_strategy=strategy)
        for _ in range(6 if names is not steps[-1] else 40):
            for consumer in members:
                seen += [(one.partition, one.offset) for records in consumer.poll().values() for one in records]
        protocols.append(store.groups.describe("g").protocol)
    assert protocols == ["range", "range", "cooperative-sticky", "cooperative-sticky"]
    assert sorted(seen) == [(partition, offset) for partition in range(4) for offset in range(40)]


def test_a_cooperative_member_that_was_silent_loses_all(store: Store, clock: Clock) -> None:
    listeners = [Listener(), Listener()]
    silent = cooperative(store, listeners[0])
    settle(silent)
    clock.now_ms += 5 * MINUTE_MS
    store.groups.remove_silent()
    other = cooperative(store, listeners[1])
    assert settle(other) == [[0, 1, 2, 3]]
    silent.poll()
    assert listeners[0].told[-1] == ("lost", [0, 1, 2, 3])
    assert sorted(map(len, settle(silent, other))) == [2, 2]


def test_a_cooperative_member_revokes_topics_that_it_leaves(store: Store) -> None:
    store.create_topic("u", 1)
    consumer, listener = cooperative(store, Listener()), Listener()
    consumer.subscribe(["t", "u"], listener=listener)
    settle(consumer)
    consumer.subscribe(["u"], listener=listener)
    settle(consumer)
    assert consumer.assignment() == {TopicPartition("u", 0)}
    assert ("revoked", [0, 1, 2, 3]) in listener.told
    assert listener.told[-1] == ("assigned", [])


def test_a_static_member_keeps_its_place(store: Store) -> None:
    first = member(store, group_instance_id="a")
    second = member(store, group_instance_id="b")
    before = settle(first, second)
    again = member(store, group_instance_id="a")
    again.poll()
    with pytest.raises(FencedInstanceIdError):
        first.poll()
    assert settle(again, second) == before
    assert store.groups.describe("g").generation == 2


def test_a_pattern_finds_topics_that_come_later(store: Store) -> None:
    consumer = store.consumer(group_id="g")
    consumer.subscribe(pattern="t|t[0-9]|__.*")
    assert settle(consumer) == [[0, 1, 2, 3]]
    store.create_topic("t2", 1)
    store.create_topic("x2", 1)
    settle(consumer)
    assert consumer.subscription() == {"t", "t2"}
    assert TopicPartition("t2", 0) in consumer.assignment()


def test_more_partitions_are_shared_anew(store: Store) -> None:
    consumer = member(store)
    settle(consumer)
    store.add_partitions("t", 5)
    assert settle(consumer) == [[0, 1, 2, 3, 4]]


def test_who_assigns_itself_partitions_beside_members_is_told_why_it_cannot_commit(store: Store) -> None:
    """Kafka's words advise to poll more often, which changes nothing."""
    subscribed = member(store)
    settle(subscribed)
    assigned = store.consumer(group_id="g")
    assigned.assign([PARTITIONS[0]])
    with pytest.raises(CommitFailedError, match="give it another group_id"):
        assigned.commit({PARTITIONS[0]: 1})
    subscribed.close()
    assigned.commit({PARTITIONS[0]: 1})


def test_a_consumer_that_waited_for_a_transaction_is_gone_once_it_is_dropped(store: Store) -> None:
    """Else the close of the store commits its positions, though its group has gone on."""
    producer = begun(store, "w")
    producer.send_offsets_to_transaction({PARTITIONS[0]: 1}, group_id="g")
    consumer = store.consumer(group_id="g", isolation_level="read_committed", default_api_timeout_ms=5)
    consumer.assign([PARTITIONS[0]])
    with suppress(RequestTimedOutError):
        consumer.position(PARTITIONS[0])
    dropped = weakref.ref(consumer)
    del consumer
    assert dropped() is None


def test_offsets_of_an_open_transaction_are_waited_for(store: Store) -> None:
    fill(store, 2)
    producer = begun(store, "w")
    producer.send_offsets_to_transaction({PARTITIONS[0]: 1}, group_id="g")
    stable = member(store, isolation_level="read_committed", default_api_timeout_ms=5)
    assert PARTITIONS[0] not in stable.poll()
    holder = f"found an open transaction of producer {store.transactions.describe('w').producer_id}, which"
    with pytest.raises(RequestTimedOutError, match=f"expired before the last committed offset for part.*{holder}"):
        stable.committed(PARTITIONS[0])
    with pytest.raises(RequestTimedOutError, match=f"before the position for partition t-0 could be det.*{holder}"):
        stable.position(PARTITIONS[0])
    hasty = store.consumer(group_id="g")
    assert hasty.committed(PARTITIONS[0]) == {PARTITIONS[0]: None}
    producer.commit_transaction()
    assert [record.offset for record in stable.poll()[PARTITIONS[0]]] == [1]
