"""Who waits for records is woken by the append, and hears of the partitions that got something only."""

from __future__ import annotations

import threading

import pytest

from logstore import clock
from logstore.client.store import Store
from logstore.model import TopicPartition
from logstore.store import fetch
from logstore.store.fetch import AppendWaiter

TOPICS = {"orders": 2}
A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def arrivals(store: Store) -> AppendWaiter:
    arrivals = AppendWaiter()
    for partition in (A, B):
        arrivals.expect(partition, store.log(*partition))
    return arrivals


def test_an_append_of_another_thread_ends_the_wait(
    store: Store, arrivals: AppendWaiter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "LOOK_AGAIN_S", 60.0)
    thread = threading.Timer(0.05, store.log(*B).append_records, [[b"v"]])
    begin_s = clock.monotonic_s()
    thread.start()
    assert arrivals.wait(60) == {B}
    assert clock.monotonic_s() - begin_s < 30
    thread.join()


def test_many_appends_are_told_once_until_the_partition_is_expected_again(store: Store, arrivals: AppendWaiter) -> None:
    log = store.log(*A)
    for _ in range(3):
        log.append_records([b"v"])
    assert arrivals.wait(0) == {A}
    log.append_records([b"v"])
    assert arrivals.wait(0) == set()
    assert [arrivals.expect(A, log) for _ in range(2)] == [True, False]
    log.append_records([b"v"])
    assert arrivals.wait(0) == {A}


def test_a_marker_is_told_as_well(store: Store, arrivals: AppendWaiter) -> None:
    identity = store.transactions.init_producer_id("t", 60_000)
    log = store.log(*A)
    guard = store.transactions.begin_append("t", identity, A, sequence=0)
    log.append_records(
        [b"v"],
        producer_id=identity[0],
        producer_epoch=identity[1],
        base_sequence=0,
        is_transactional=True,
        guard=guard,
    )
    assert arrivals.wait(0) == {A}
    arrivals.expect(A, log)
    store.transactions.end_transaction("t", identity, is_commit=True)
    assert arrivals.wait(0) == {A}


def test_a_wake_ends_the_wait_with_nothing(arrivals: AppendWaiter) -> None:
    threading.Timer(0.05, arrivals.wake).start()
    assert arrivals.wait(0.9) == set()


def test_the_wait_ends_now_and_then(arrivals: AppendWaiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "LOOK_AGAIN_S", 0.01)
    assert arrivals.wait(600) == set()
