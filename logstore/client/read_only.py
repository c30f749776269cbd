"""A store open for reading, as `logstore.open(…, read_only=True)` returns it: with consumers outside of groups."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

from ..disk.names import child
from ..disk.paths import is_directory
from ..errors import UsageError
from ..model import name_of, topic_partition
from ..replay.metadata_state import metadata_damage
from ..store.data_directory import DataDirectory
from ..store.metadata.log import DIRECTORY_NAME
from ..store.metadata.topics import TopicDescription
from ..store.read_only import ReadOnlyDirectory
from ..view.partition_reader import PartitionReader
from .consumer import Consumer
from .consumer.config import parse_consumer_config
from .consumer.consumer_records import ConsumerRecord
from .serializers import Deserializer
from .whole_topics import partitions_of, read_topic

_LOGGER = logging.getLogger("logstore")


class ReadOnlyStore(ReadOnlyDirectory):
    """A data directory as of the last `refresh`, with its consumers; all methods may be called from any thread."""

    def __init__(self, path: str, now_ms: Callable[[], int]) -> None:
        """Read the directory for the first time; raises as `refresh`.

        Log a warning if a newer Kafka wrote it, or if its metadata log is damaged.
        """
        super().__init__(path, now_ms)
        if self._image.newer_kafka is not None:
            _LOGGER.warning("%s was %s; the rest of it is read", self.path, self._image.newer_kafka)
        directory = child(self.path, DIRECTORY_NAME)
        damage = metadata_damage(directory) if is_directory(directory) else None
        if damage is not None:
            _LOGGER.warning("%s", damage)
        self._numbers = itertools.count(1)

    def log(self, topic: str, partition: int) -> PartitionReader:
        """Return the reader of a partition, always the same one; the caller refreshes it.

        Raises:
            UsageError: what is given is no partition.
            UnknownTopicOrPartitionError: there is no such partition, or its directory is not here (yet); a stray one of
                its name, with another topic id, does not count.
            LogstoreError: it cannot be read.
        """
        return super().log(*topic_partition((topic, partition)))

    def feature(self, name: str) -> int:
        """Return the finalized level of a feature, such as `transaction.version`; 0 if it is off."""
        return super().feature(name_of("feature", name))

    def describe_topic(self, name: str) -> TopicDescription:
        """Return a topic; raises UnknownTopicOrPartitionError."""
        return super().describe_topic(name_of("topic", name))

    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        consumer_timeout_ms: float | None = None,
        ignore_network_config: bool = False,
        **config: Any,
    ) -> Consumer:
        """Return a new consumer of all partitions of the topics; as `Store.consumer` without `group_id`.

        It reads the files for itself, whatever this store has seen. Another process tells of no append, so it looks for
        new records each second.

        Raises:
            UsageError: as `Store.consumer`; or a `group_id`, as nothing can be committed here.
            UnknownTopicOrPartitionError: there is no such topic.
        """
        parsed = parse_consumer_config(config, client_number=next(self._numbers), ignores_network=ignore_network_config)
        if parsed["group.id"] is not None:
            raise UsageError(
                "A read_only store has no groups: joining and committing would write",
                found=f"group.id {parsed['group.id']}",
                advice="leave group_id out, or open the store for writing",
            )
        files = ReadOnlyDirectory(self.path, self.now_ms)  # its own: a reader is refreshed by one thread at a time
        consumer = Consumer(
            cast("DataDirectory", files),  # a consumer without a group only looks up topics and reads logs
            parsed,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            consumer_timeout_ms=consumer_timeout_ms,
        )
        if topics:
            consumer.assign(partition for topic in topics for partition in partitions_of(files, topic))
        return consumer

    def read(
        self,
        topic: str,
        *,
        isolation_level: str = "read_uncommitted",
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> Iterator[ConsumerRecord]:
        """Return an iterator over all present records of a topic; as `Store.read`."""
        files = ReadOnlyDirectory(self.path, self.now_ms)
        return read_topic(files, topic, isolation_level, key_deserializer, value_deserializer)
