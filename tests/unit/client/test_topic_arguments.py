"""Arguments of a store's calls about topics: what is no argument is named, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from logstore.client.store import Store
from logstore.errors import UsageError

TOPICS = {"t": 2}


@pytest.mark.parametrize("partitions", [2.0, 2.5, "3"])
@pytest.mark.parametrize("call", [
    lambda store, partitions: store.create_topic("new", partitions),
    lambda store, partitions: store.add_partitions("t", partitions),
], ids=["create_topic", "add_partitions"])  # fmt: skip
def test_a_number_of_partitions_that_is_not_whole_is_refused(
    store: Store, call: Callable[[Store, Any], object], partitions: Any
) -> None:
    with pytest.raises(UsageError, match=f"expected partitions as an int, found {partitions!r}"):
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
], ids=["create_topic", "delete_topic", "add_partitions", "alter_config", "describe_topic"])  # fmt: skip
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
