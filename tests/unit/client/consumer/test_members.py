"""Members of a group that go without a word, are silent, or have a listener that fails."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest

from logstore.client.consumer.membership import RebalanceListener
from logstore.client.store import Store
from logstore.errors import CommitFailedError, FencedInstanceIdError, IllegalStateError, RebalanceInProgressError
from logstore.model import TopicPartition
from logstore.store.groups.coordinator import GroupCoordinator
from tests.support.clock import Clock
from tests.support.group_members import member, settle

TOPICS = {"t": 4}


class Inheriting(RebalanceListener):
    """A listener that inherits what it says nothing of."""

    def __init__(self) -> None:
        self.revoked: list[list[TopicPartition]] = []

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.revoked.append(list(revoked))


class OldListener:
    """As kafka-python's, which knows nothing of lost partitions."""

    def __init__(self, error: Exception | None = None) -> None:
        self.revoked: list[list[TopicPartition]] = []
        self.error = error

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self.revoked.append(list(revoked))
        if self.error is not None:
            raise self.error

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        pass


class NewListener(OldListener):
    """Hears of lost partitions too."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[list[TopicPartition]] = []

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        self.lost.append(list(lost))


class Leaving(OldListener):
    """Closes its consumer, or unsubscribes it, when partitions go."""

    def __init__(self, leave: Callable[[], None]) -> None:
        super().__init__()
        self.leave = leave

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        super().on_partitions_revoked(revoked)
        self.leave()


@pytest.mark.parametrize("how", ["close", "unsubscribe"])
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("is_rebalance", [False, True])
def test_a_listener_leaves_the_group_when_partitions_go(
    store: Store, how: str, assignor: str, is_rebalance: bool
) -> None:
    consumer = store.consumer(group_id="g", partition_assignment_strategy=[assignor])
    listener = Leaving(getattr(consumer, how))
    consumer.subscribe(["t"], listener=listener)
    settle(consumer)
    if is_rebalance:
        other = member(store, partition_assignment_strategy=[assignor])
        for _ in range(5):
            other.poll()
            with suppress(IllegalStateError):  # closed, or without a subscription
                consumer.poll()
        assert settle(other) == [[0, 1, 2, 3]]
    else:
        getattr(consumer, how)()
    told = [partition for partitions in listener.revoked for partition in partitions]
    assert set(told) == {("t", number) for number in range(4)}
    assert len(store.groups.describe("g").members) == is_rebalance


def test_a_listener_that_subscribes_to_others_reads_no_more_of_the_former(store: Store) -> None:
    store.create_topic("other")
    consumer = store.consumer(group_id="g", auto_offset_reset="earliest")
    listener = Leaving(lambda: consumer.subscribe(["other"]))
    consumer.subscribe(["t"], listener=listener)
    settle(consumer)
    store.groups.topic_changed("t")
    consumer.poll()
    assert consumer.assignment() == {("other", 0)}


@pytest.mark.parametrize("how", ["close", "unsubscribe"])
def test_who_goes_with_a_failing_listener_is_gone(store: Store, how: str) -> None:
    consumer, listener = store.consumer(group_id="g"), OldListener(ValueError("of the program"))
    consumer.subscribe(["t"], listener=listener)
    settle(consumer)
    with pytest.raises(ValueError, match="of the program"):
        getattr(consumer, how)()
    assert not store.groups.describe("g").members
    consumer.close()
    assert len(listener.revoked) == 1


def test_a_listener_that_fails_in_a_rebalance_is_told_once(store: Store) -> None:
    consumer, listener = store.consumer(group_id="g"), OldListener(ValueError("of the program"))
    consumer.subscribe(["t"], listener=listener)
    settle(consumer)
    other = member(store)
    other.poll()
    with pytest.raises(ValueError, match="of the program"):
        consumer.poll()
    assert consumer.assignment() == set()
    assert settle(consumer, other) == [[0, 1], [2, 3]]
    assert len(listener.revoked) == 1
    listener.error = None


@pytest.mark.parametrize("kind", [OldListener, Inheriting])
def test_lost_partitions_are_told_as_revoked_to_who_does_not_know_better(
    store: Store, clock: Clock, kind: type[Inheriting]
) -> None:
    consumer, listener = store.consumer(group_id="g"), kind()
    consumer.subscribe(["t"], listener=listener)
    settle(consumer)
    clock.now_ms += 300_000
    store.groups.remove_silent()
    assert settle(consumer) == [[0, 1, 2, 3]]
    assert [len(revoked) for revoked in listener.revoked] == [4]


@pytest.mark.parametrize("how", ["close", "unsubscribe"])
def test_partitions_that_others_have_are_told_as_lost_at_the_end(store: Store, clock: Clock, how: str) -> None:
    consumer, listener = store.consumer(group_id="g"), NewListener()
    consumer.subscribe(["t"], listener=listener)
    settle(consumer)
    clock.now_ms += 300_000
    store.groups.remove_silent()
    getattr(consumer, how)()
    assert [len(lost) for lost in listener.lost] == [4]
    assert not listener.revoked


@pytest.mark.parametrize("interval_ms", [1_000, 300_000])
def test_a_member_is_out_when_it_has_not_polled_for_its_interval(store: Store, clock: Clock, interval_ms: int) -> None:
    consumer = member(store, max_poll_interval_ms=interval_ms, session_timeout_ms=10)
    settle(consumer)
    clock.now_ms += interval_ms - 1
    store.groups.remove_silent()
    consumer.commit({("t", 0): 1})
    consumer.poll()
    clock.now_ms += interval_ms
    store.groups.remove_silent()
    assert not store.groups.describe("g").members
    with pytest.raises(CommitFailedError):
        consumer.commit({("t", 0): 2})


def test_a_consumer_that_is_dropped_leaves_its_group(store: Store) -> None:
    dropped, other = member(store), member(store)
    assert settle(dropped, other) == [[0, 1], [2, 3]]
    del dropped
    gc.collect()
    assert settle(other) == [[0, 1, 2, 3]]
    del other
    gc.collect()
    store.groups.remove_silent()
    assert not store.groups.describe("g").members


def test_a_static_member_keeps_its_partitions_when_it_is_closed_or_dropped(store: Store, clock: Clock) -> None:
    first, second = member(store, group_instance_id="a"), member(store, group_instance_id="b")
    assert settle(first, second) == [[0, 1], [2, 3]]
    first.close()
    assert settle(second) == [[2, 3]]
    first = member(store, group_instance_id="a")
    assert settle(first, second) == [[0, 1], [2, 3]]
    clock.now_ms += 45_000
    store.groups.remove_silent()
    assert settle(first, second) == [[0, 1], [2, 3]]
    del first
    gc.collect()
    assert settle(second) == [[2, 3]]
    clock.now_ms += 44_999
    second.poll()
    store.groups.remove_silent()
    assert settle(second) == [[2, 3]]
    clock.now_ms += 1
    store.groups.remove_silent()
    assert settle(second) == [[0, 1, 2, 3]]


@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
def test_the_older_of_two_with_one_instance_id_is_fenced_while_both_wait_for_others(
    store: Store, topics: tuple[str, ...]
) -> None:
    store.create_topic("u", 4)
    other = member(store)
    other.poll()
    older, newer = member(store, group_instance_id="a"), member(store, *topics, group_instance_id="a")
    older.poll()
    newer.poll()
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError):
            older.poll()
    settle(other, newer)
    assert len(other.assignment()) == 2
    assert len(newer.assignment()) == 2 + 4 * ("u" in topics)
    assert store.groups.describe("g").generation == 2
    with pytest.raises(FencedInstanceIdError):
        older.poll()


def test_one_that_joins_again_does_not_take_its_instance_id_back(store: Store) -> None:
    other = member(store)
    other.poll()
    older, newer = member(store, group_instance_id="a"), member(store, group_instance_id="a")
    older.poll()
    newer.poll()
    older.subscribe(["t", "u"])  # so that its next poll joins before it asks for its partitions
    with pytest.raises(FencedInstanceIdError):
        older.poll()
    assert sorted(settle(other, newer)) == [[0, 1], [2, 3]]


def test_a_new_consumer_whose_join_was_interrupted_still_takes_the_instance_id(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer = member(store, group_instance_id="a"), member(store, group_instance_id="a")
    settle(older)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store.groups, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        newer.poll()
    monkeypatch.undo()
    assert settle(newer) == [[0, 1, 2, 3]]
    with pytest.raises(FencedInstanceIdError):
        older.poll()


def test_a_member_whose_group_rebalances_meanwhile_joins_again_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors, sync = [RebalanceInProgressError()], GroupCoordinator.sync

    def interrupted(*arguments: Any) -> Any:
        if errors:
            raise errors.pop()
        return sync(*arguments)

    monkeypatch.setattr(GroupCoordinator, "sync", interrupted)
    consumer = store.consumer("t", group_id="g")
    consumer.poll(0)
    assert len(consumer.assignment()) == 4
