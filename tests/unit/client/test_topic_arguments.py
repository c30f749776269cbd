"""Arguments of a store's calls about topics: what is no argument is named, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import logstore
from logstore.client.store import Store
from logstore.errors import InvalidConfigurationError, UsageError

TOPICS = {"t": 2}


@pytest.mark.parametrize("partitions", [2.0, 2.5, "3"])
@pytest.mark.parametrize("call", [
    lambda store, partitions: store.create_topic("new", partitions),
    lambda store, partitions: store.add_partitions("t", partitions),
], ids=["create_topic", "add_partitions"])  # fmt: skip
def test_a_number_of_partitions_that_is_not_whole_is_refused(
    store: Store, call: Callable[[Store, Any], object], partitions: Any
) -> None:
    with pytest.raises(
        UsageError, match=f"The number of partitions is no whole number; expected an int, found {partitions!r}"
    ):
        call(store, partitions)
    assert {name: topic.partition_count for name, topic in store.topics.items()} == TOPICS


def test_a_whole_number_of_numpy_is_a_number_of_partitions(store: Store) -> None:
    assert type(store.create_topic("new", np.int64(2)).partition_count) is int  # type: ignore[arg-type]
    assert store.add_partitions("t", np.int32(3)).partition_count == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [5, ["t"]])
@pytest.mark.parametrize("call", [
    lambda store, name: store.create_topic(name),
    lambda store, name: store.delete_topic(name),
    lambda store, name: store.add_partitions(name, 3),
    lambda store, name: store.alter_config(name, {}),
    lambda store, name: store.describe_topic(name),
    lambda store, name: store.read(name),
    lambda store, name: store.consumer(name),
], ids=["create", "delete", "add_partitions", "alter_config", "describe", "read", "consumer"])  # fmt: skip
def test_a_topic_whose_name_is_no_text_is_refused(
    store: Store, call: Callable[[Store, Any], object], name: Any
) -> None:
    with pytest.raises(UsageError, match="A topic is given by its name"):
        call(store, name)


@pytest.mark.parametrize("config", [5, ["retention.ms"], {5: "retention.ms"}])
@pytest.mark.parametrize("call", [
    lambda store, config: store.create_topic("new", 1, config),
    lambda store, config: store.alter_config("t", config),
], ids=["create_topic", "alter_config"])  # fmt: skip
def test_configurations_that_are_not_given_by_name_are_refused(
    store: Store, call: Callable[[Store, Any], object], config: Any
) -> None:
    with pytest.raises(UsageError, match="Configurations are given by name"):
        call(store, config)
    assert store.topics.keys() == TOPICS.keys()


@pytest.mark.parametrize("call", [
    lambda store: store.log([], 0),
    lambda store: store.log("t", "0"),
    lambda store: store.feature([]),
    lambda store: store.update_features(5),
    lambda store: store.create_topic("new", 1, {"retention.ms": [5, 6]}),
    lambda store: store.producer(linger_ms=[5, 6]),
    lambda store: store.producer(key_serializer="utf-8"),
    lambda store: store.producer(value_serializer=b""),
    lambda store: store.consumer(key_deserializer="utf-8"),
    lambda store: store.read("t", value_deserializer="utf-8"),
    lambda store: logstore.open(store.path, read_only=True).read("t", value_deserializer="utf-8"),
    lambda store: store.consumer(consumer_timeout_ms="5"),
    lambda store: store.consumer(consumer_timeout_ms=float("nan")),
    lambda store: store.schedule("mine", "1000", list),
    lambda store: store.schedule("mine", -1, list),
    lambda store: store.schedule("mine", 1000, 5),
    lambda store: store.schedule(["mine"], 1000, list),
])  # fmt: skip
def test_calls_of_a_store_name_a_wrong_argument(store: Store, call: Callable[[Any], object]) -> None:
    with pytest.raises((UsageError, InvalidConfigurationError), match=r"found|Not a number"):
        call(store)
    assert store.topics.keys() == TOPICS.keys()
    assert "mine" not in store.run_due()


@pytest.mark.parametrize("call", [
    lambda store: store.log([], 0),
    lambda store: store.log("t", "0"),
    lambda store: store.feature([]),
    lambda store: store.describe_topic([]),
])  # fmt: skip
def test_calls_of_a_read_only_store_name_a_wrong_argument(store: Store, call: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match="found"):
        call(logstore.open(store.path, read_only=True))


def test_nothing_is_scheduled_in_a_closed_store(store: Store) -> None:
    store.close()
    with pytest.raises(UsageError, match="The store is closed"):
        store.schedule("mine", 1000, list)
