"""What a consumer answers of topics and partitions, whether it reads them or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...errors import UnknownTopicOrPartitionError, UsageError
from ...log.partition_log import PartitionLog
from ...model import FetchIsolation, TopicPartition, name_of, topic_partition, topic_partitions, whole_number
from ...store.data_directory import DataDirectory
from ...topics import INTERNAL_TOPICS
from ..arguments import (
    ILLEGAL_ARGUMENT,
    OffsetAndTimestamp,
    by_partition,
)

Partition = tuple[str, int]
Times = Mapping[tuple[str, int], int] | Mapping[TopicPartition, int]  # a mapping's type of keys is invariant


class PartitionQueries:
    """The questions of a consumer that need no position."""

    def __init__(self, store: DataDirectory, isolation: FetchIsolation) -> None:
        self._store, self._isolation = store, isolation

    def topics(self) -> set[str]:
        """Return the names of all topics but the internal ones."""
        return set(self._store.topics) - set(INTERNAL_TOPICS)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the numbers of a topic's partitions; None if there is no such topic."""
        try:
            return set(range(self._store.describe_topic(name_of("topic", topic)).partition_count))
        except UnknownTopicOrPartitionError:
            return None

    def highwater(self, partition: Partition) -> int:
        """Return the high watermark, behind the last record that any consumer may see.

        Raises:
            UnknownTopicOrPartitionError: there is no such partition.
        """
        return self._log(topic_partition(partition)).high_watermark

    def beginning_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """Return each log's start offset; raises UnknownTopicOrPartitionError."""
        return {partition: self._log(partition).log_start_offset for partition in topic_partitions(partitions)}

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """Return the offset before which a consumer of this `isolation.level` reads.

        Raises:
            UnknownTopicOrPartitionError: there is no such partition.
        """
        isolation = self._isolation
        return {partition: isolation.end_offset(self._log(partition)) for partition in topic_partitions(partitions)}

    def offsets_for_times(self, timestamps: Times) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return by partition the first record at or after a time (ms); None where there is none.

        Raises:
            UsageError: a negative time, or times that are not given by partition.
            UnknownTopicOrPartitionError: there is no such partition.
        """
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for partition, timestamp in by_partition("Times", timestamps).items():
            if whole_number("time", timestamp) < 0:
                raise UsageError(
                    f"The target time for partition {partition} is {timestamp}. The target time cannot be negative.",
                    java_class=ILLEGAL_ARGUMENT,
                )
            place = self._log(partition).offset_for_timestamp(timestamp, self._isolation)
            found[partition] = place and OffsetAndTimestamp(place.offset, place.timestamp, place.leader_epoch)
        return found

    def _log(self, partition: TopicPartition) -> PartitionLog:
        return self._store.log(*partition)
