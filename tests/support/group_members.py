"""Consumers that share the partitions of topic `t` in one group."""

from __future__ import annotations

from typing import Any

from logstore.client.consumer import Consumer
from logstore.client.store import Store


def member(store: Store, *topics: str, **config: Any) -> Consumer:
    """Add a consumer of group `g`."""
    return store.consumer(*(topics or ["t"]), **{"group_id": "g", "auto_offset_reset": "earliest", **config})


def settle(*consumers: Consumer) -> list[list[int]]:
    """Let all poll until nothing changes; the partitions of each."""
    for _ in range(4):
        for consumer in consumers:
            consumer.poll()
    return [sorted(partition.partition for partition in consumer.assignment()) for consumer in consumers]
