"""What an idle log keeps of consumers that have read it: nothing of those that were closed or dropped."""

from __future__ import annotations

import gc

from logstore.client.store import Store

TOPICS = {"t": 2}


def watcher_count(store: Store) -> int:
    return sum(len(store.log("t", number).watchers) for number in range(2))


def test_reading_again_and_again_leaves_nothing_at_the_log(store: Store) -> None:
    store.log("t", 0).append_records([b"v"])
    for _ in range(50):
        assert [record.value for record in store.read("t")] == [b"v"]
    assert watcher_count(store) == 0


def test_consumers_that_are_closed_or_dropped_are_forgotten(store: Store) -> None:
    for number in range(20):
        consumer = store.consumer("t")
        consumer.poll()
        assert watcher_count(store) >= 2
        if number % 2:
            consumer.close()
        del consumer
        gc.collect()
    assert watcher_count(store) <= 4  # an idle consumer's two, and those of the one dropped last


def test_partitions_that_are_not_read_any_more_are_forgotten(store: Store) -> None:
    consumer = store.consumer("t")
    consumer.poll()
    consumer.assign([("t", 1)])
    consumer.poll()
    assert [len(store.log("t", number).watchers) for number in range(2)] == [0, 1]
    store.log("t", 1).append_records([b"v"])
    assert len(consumer.poll(30_000)) == 1
