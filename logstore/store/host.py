"""What the coordinators of a data directory stand on: its configuration, clocks, topics, logs and producer ids."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .. import clock
from ..calls import TOPICS, alone
from ..config.broker import BrokerConfig
from ..errors import DataDirectoryError, LogstoreError, UsageError
from ..layout.meta_properties import MetaProperties
from ..log.partition_log import PartitionLog
from ..model import TopicPartition
from .metadata.log import MetadataLog
from .metadata.topic_changes import TopicChanges
from .metadata.topics import TopicDescription, describe, topic_of, unknown_topic
from .opening.formatting import node_of
from .partitions import Partitions


class Host:
    """A data directory without coordinators; attributes that are not here are those of `Store`. Usable from any thread.

    Attributes:
        lock: held while topics change; taken before the lock of a log, never after it.
        ticks_ms: a clock for intervals that never goes back; a clock given by the program serves for both.
        is_closed: the close has begun.
        is_after_fork: this process is a fork of the one that opened the store; it must not read or write here.
    """

    def __init__(
        self,
        path: str,
        properties: MetaProperties,
        config: BrokerConfig,
        metadata: MetadataLog,
        partitions: Partitions,
        now_ms: Callable[[], int],
    ) -> None:
        assert properties.cluster_id is not None
        node = node_of(properties)
        self.path, self.config, self.now_ms = path, config, now_ms
        self.ticks_ms = clock.ticks_of(now_ms)
        self.cluster_id, (self.node_id, self.directory_id) = properties.cluster_id, node
        self.lock = threading.RLock()
        self.is_after_fork = self.is_closed = False
        self._metadata, self._partitions, self._timers = metadata, partitions, partitions.timers
        self._changes = TopicChanges(metadata, partitions, node, config)

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics by name, the internal ones too."""
        return self._changes.topics

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return the log of a partition; raises UnknownTopicOrPartitionError."""
        log = self._partitions.get(TopicPartition(topic, partition))
        if log is None:
            self.require_open()
            raise unknown_topic(f"{topic}-{partition}")
        return log

    def leader_epoch_before(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the epoch of the leader that wrote the record before `offset`; None if there is none at hand."""
        with suppress(LogstoreError):  # the commit of the offset raises it
            log = self._partitions.get(partition)
            return None if log is None else log.leader_epoch_before(offset)
        return None

    def feature(self, name: str) -> int:
        """Return the finalized level of a feature, such as `transaction.version`; 0 if it is off."""
        return self._metadata.levels.get(name, 0)

    def create_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, Any] | None = None
    ) -> TopicDescription:
        """See `Store.create_topic`."""
        with alone(TOPICS), self.lock:
            self._begin_change()
            self._changes.create(name, partitions, config or {})
            return self.describe_topic(name)

    def describe_topic(self, name: str) -> TopicDescription:
        """Return a topic; raises UnknownTopicOrPartitionError."""
        self.require_same_process()
        image = self._metadata.image
        return describe(image, topic_of(image, name))

    def next_producer_id(self) -> int:
        """Return a new producer id; raises KafkaStorageError if the next block of them cannot be logged."""
        with alone(TOPICS), self.lock:
            self.require_open()
            self._metadata.reload_if_cut_off()
            producer_id = next(self._metadata.producer_ids, None)
            if producer_id is None:
                self._changes.follow_metadata()  # before a record with which a snapshot may come
                self._metadata.take_producer_id_block()
                producer_id = next(self._metadata.producer_ids)
            return producer_id

    def schedule(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        """Call a short function of the store every `interval_ms` from the timer thread; `failures` keeps its error."""
        self.require_same_process()
        self._timers.add(name, interval_ms, function)

    def require_same_process(self) -> None:
        """Raise DataDirectoryError in the child of a fork."""
        if self.is_after_fork:
            raise self.of_parent()

    def of_parent(self) -> DataDirectoryError:
        """Return the error for a call in the child of a fork."""
        return DataDirectoryError(
            "The store was opened by another process, of which this one was forked",
            path=self.path,
            advice="open it anew in this process, when the other one has closed it",
        )

    def require_open(self) -> None:
        """Raise in the child of a fork, and after the close."""
        self.require_same_process()
        if self.is_closed:
            raise UsageError("The store is closed", path=self.path, advice="open it anew")

    def refresh(self) -> None:
        """Do nothing: no other process changes the topics of an open store."""

    def _begin_change(self) -> None:
        self.require_open()
        self._changes.follow_metadata()
