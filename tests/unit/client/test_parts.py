"""Pure parts of the clients: the sticky partition, names of configurations, combinations that exclude each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import logstore
from logstore.client.consumer.config import parse_consumer_config
from logstore.client.producer.config import parse_producer_config
from logstore.client.producer.queues import KEY_CACHE_COUNT, TopicQueues, partition_for_key
from logstore.client.producer.retry import Attempts
from logstore.errors import UsageError


def test_a_sticky_partition_lasts_for_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draws = iter([2, 0])
    monkeypatch.setattr("random.choice", lambda queues: queues[next(draws)])
    with logstore.open(tmp_path) as store:
        store.create_topic("t", partitions=4)
        queues = TopicQueues("t", store, parse_producer_config({"batch.size": 100}), 0.0)
        chosen = []
        for size in (99, 1, 0):
            queue = queues.queue(None, None)
            chosen.append(queue.topic_partition.partition)
            queues.batch_sealed(queue, size)
    assert chosen == [2, 2, 0]


def test_a_full_cache_of_keys_forgets_the_oldest_alone(tmp_path: Path) -> None:
    """It forgot all of them, so that with more keys than it holds most were hashed again."""
    with logstore.open(tmp_path) as store:
        store.create_topic("t", partitions=4)
        queues = TopicQueues("t", store, parse_producer_config({"batch.size": 100}), 0.0)
        keys = [b"%d" % number for number in range(KEY_CACHE_COUNT + 1)]
        for key in keys:
            assert queues.queue(key, None).topic_partition.partition == partition_for_key(key, 4)
        assert len(queues.by_key) > KEY_CACHE_COUNT * 3 // 4
        assert queues.by_key.keys() == set(keys[-len(queues.by_key) :])


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"delivery.timeout.ms": 1}, "delivery.timeout.ms should be equal to or larger than linger.ms"),
        ({"bootstrap.server": "x"}, "Unknown producer config name: bootstrap.server"),
        ({"linger.ms": 1, "linger_ms": 2}, "linger.ms is given twice"),
    ],
)
def test_producer_configurations_that_exclude_each_other_are_refused(values: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        parse_producer_config(values)


def test_a_consumer_without_a_group_commits_nothing_by_itself() -> None:
    assert parse_consumer_config({})["enable.auto.commit"] is False
    assert parse_consumer_config({"group_id": "g"})["enable.auto.commit"] is True
    assert parse_consumer_config({"group.id": "g", "group.instance.id": "i"})["client.id"] == "consumer-g-i"


def test_assignors_are_named() -> None:
    config = parse_consumer_config({"partition_assignment_strategy": ["sticky", "range"]})
    assert config["partition.assignment.strategy"] == ["sticky", "range"]
    for strategy in (["mine"], []):
        with pytest.raises(UsageError, match="expected some of range, roundrobin"):
            parse_consumer_config({"partition.assignment.strategy": strategy})


def test_the_first_retry_of_a_call_does_not_wait() -> None:
    config = parse_producer_config({"retry.backoff.ms": 100_000, "retry.backoff.max.ms": 100_000})
    attempts = Attempts(config, 1e9)
    first_s, second_s = attempts.next_s(), attempts.next_s()
    assert first_s is not None
    assert second_s is not None
    assert second_s - first_s >= 80
    assert Attempts(config, 0.0).next_s() is None
