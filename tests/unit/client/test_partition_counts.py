"""A producer's count of partitions: it follows a topic that gets more, or is made anew with fewer."""

from __future__ import annotations

import pytest

from logstore.client.store import Store
from logstore.errors import UnknownTopicOrPartitionError

TOPICS: dict[str, int] = {}

KEYS = [b"%d" % number for number in range(50)]


def test_more_partitions_are_told_and_taken_at_once(store: Store) -> None:
    store.create_topic("t", partitions=1)
    producer = store.producer()
    assert producer.partitions_for("t") == range(1)
    store.add_partitions("t", 4)
    written = producer.send_columns("t", KEYS, KEYS)
    assert {one.partition for one in written} == {0, 1, 2, 3}
    store.add_partitions("t", 5)
    assert producer.partitions_for("t") == range(5)


def test_partitions_of_a_topic_made_anew_with_fewer_are_gone(store: Store) -> None:
    store.create_topic("t", partitions=4)
    producer = store.producer()
    producer.send_columns("t", KEYS, KEYS)
    store.delete_topic("t")
    store.create_topic("t", partitions=1)
    [written] = producer.send_columns("t", KEYS, KEYS)
    assert (written.partition, written.record_count) == (0, len(KEYS))
    assert producer.partitions_for("t") == range(1)
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.send("t", b"v", partition=3)


def test_a_sticky_partition_that_is_gone_keeps_its_open_batch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.choice", lambda queues: queues[-1])
    store.create_topic("t", partitions=4)
    producer = store.producer(linger_ms=600_000)
    lost = [producer.send("t", b"first"), producer.send("t", b"quick")]
    store.delete_topic("t")
    store.create_topic("t", partitions=1)
    assert producer.partitions_for("t") == range(1)
    lost += [producer.send("t", b"quick"), producer.send("t", b"not quick", headers=[("h", b"")])]
    assert len({id(future._batch) for future in lost}) == 1  # a `send` in another thread may be filling it
    with pytest.raises(UnknownTopicOrPartitionError):
        producer.flush()
    assert all(isinstance(future.exception, UnknownTopicOrPartitionError) for future in lost)
    assert producer.send("t", b"after").get(0 if producer.flush() else None).partition == 0
