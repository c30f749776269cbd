"""What the coordinators need of the store that they run in.

They call it with locks of their own held, so it calls them only when it holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..log.partition_log import PartitionLog
from .topics import TopicDescription


class CoordinatedStore(Protocol):
    """A data directory that is open for writing, by this process alone."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The broker's configuration, every name with its value, see `broker_config`."""

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics as they are now, internal ones included, by name; not to be asked for often."""

    def describe_topic(self, name: str) -> TopicDescription:
        """A topic as it is now; raises UnknownTopicOrPartitionError."""

    def create_topic(self, name: str, *, partitions: int, config: Mapping[str, Any]) -> TopicDescription:
        """Make a topic; raises TopicExistsError."""

    def log(self, topic: str, partition: int) -> PartitionLog:
        """A partition; raises UnknownTopicOrPartitionError."""

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The epoch that a partition is written in."""

    def next_producer_id(self) -> int:
        """A producer id that was never given; raises CoordinatorError."""

    def feature(self, name: str) -> int:
        """The finalized level of a feature, 0 without one."""

    def now_ms(self) -> int:
        """The time, ms since 1970."""

    def schedule(self, name: str, interval_ms: int, function: Callable[[], object]) -> object:
        """Have `function` called again and again, by another thread, until the store closes."""
