"""The partitions of `__consumer_offsets`, each loaded when the first of its groups is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..topics.consumer_offsets import TOPIC
from .groups.partition import GroupPartition
from .internal_topic import CoordinatorTopic

if TYPE_CHECKING:
    from .store import Store


class GroupPartitions:
    """Where each group is kept."""

    def __init__(self, store: Store) -> None:
        """Nothing is made or read yet."""
        self._store = store
        self._topic = CoordinatorTopic(store, TOPIC)
        self._loaded: dict[int, GroupPartition] = {}
        self._loading = threading.Lock()

    def number_of(self, group_id: str) -> int:
        """The number of the partition of a group; the topic is made for the first one."""
        if self._topic.partition_count == 0:
            self._topic.make()
        return self._topic.partition_of(group_id)

    def of(self, group_id: str) -> GroupPartition:
        """The partition of a group; the topic is made for the first one."""
        return self[self.number_of(group_id)]

    def find(self, group_id: str) -> GroupPartition | None:
        """The partition of a group; None before there is any."""
        return self[self._topic.partition_of(group_id)] if self._topic.partition_count else None

    def __getitem__(self, number: int) -> GroupPartition:
        """A partition by number, loaded.

        Raises:
            LogstoreError: as `GroupPartition.load`; it is tried again the next time.
        """
        partition = self._loaded.get(number)
        if partition is None:
            with self._loading:
                partition = self._loaded.get(number)
                if partition is None:
                    partition = GroupPartition(self._topic, number)
                    partition.load(self._store.now_ms())
                    self._loaded[number] = partition
        partition.settle(self._store.now_ms)
        return partition

    def loaded(self) -> list[GroupPartition]:
        """Those that a group was asked of; no other has members."""
        return [self[number] for number in list(self._loaded)]

    def __iter__(self) -> Iterator[GroupPartition]:
        """All of them, loaded; none before the topic is made."""
        for number in self.numbers():
            yield self[number]

    def numbers(self) -> range:
        """Of all of them; none before the topic is made."""
        return range(self._topic.partition_count)
