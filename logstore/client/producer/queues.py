"""The records on their way into each partition of a topic, and which partition a record takes (`RecordAccumulator`).

All queues belong to one producer, whose mutex is held wherever something is done with them. Partitions are chosen as
the Java producer chooses them (`BuiltInPartitioner`).

>>> partition_for_key(b"42", 12)
4
"""

from __future__ import annotations

import random
from collections import deque

from ...columns.batch_table import Int64Array
from ...columns.record_columns import BytesColumn
from ...errors import UnknownTopicOrPartitionError
from ...kernels.table.key_hashes import murmur2_key
from ...layout.record import SEQUENCE_MAX
from ...log.partition_log import PartitionLog
from ...model import TopicPartition
from ...store.append import refuse_internal
from ...store.data_directory import DataDirectory
from .batch import Batch

KEY_CACHE_COUNT = 8192  # to look a key up takes a tenth of the time of its hash
KEY_CACHE_SIZE_MAX = 256

_hash = murmur2_key.bound().run


def murmur2(key: bytes) -> int:
    """Return the 32-bit hash of a key, as a signed int (`Utils.murmur2`).

    >>> murmur2(b"21"), murmur2(b"foobar")
    (-973932308, -790332482)
    """
    return _hash(key, len(key))


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition of every record with this serialized key, as long as the topic keeps its size."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def partitions_for_keys(keys: BytesColumn, partition_count: int) -> Int64Array:
    """Return `partition_for_key` of each: int64[n]; -1 for null.

    >>> partitions_for_keys(BytesColumn.of_values([b"42", None, b""]), 12).tolist()
    [4, -1, 9]
    """
    partitions = (keys.murmur2_hashes() & 0x7FFFFFFF) % partition_count
    partitions[keys.is_null] = -1
    return partitions


class PartitionQueue:
    """The batches on their way into one partition, and the sequences that their producer has used up in it.

    Attributes:
        topic_partition, log, leader_epoch: where they go.
        batches: to be written in this order; the last one may be open.
        open: the batch that takes records; None if none does.
        transaction: number of the last transaction that the partition was put into.
    """

    log: PartitionLog
    leader_epoch: int

    def __init__(self, topic_partition: TopicPartition, store: DataDirectory) -> None:
        self.topic_partition = topic_partition
        self.batches: deque[Batch] = deque()
        self.open: Batch | None = None
        self._bind(store)

    def _bind(self, store: DataDirectory) -> None:
        log = store.log(*self.topic_partition)
        self.leader_epoch = log.leader_epoch
        self._sequence: tuple[object, int] = (None, 0)
        self.transaction = 0
        self.log = log

    def rebind_log(self, store: DataDirectory) -> bool:
        """Go into the log that the partition has now; return whether it is another, of a topic that was made anew.

        Raises:
            UnknownTopicOrPartitionError: it is gone.
        """
        if store.log(*self.topic_partition) is self.log:
            return False
        self._bind(store)
        return True

    def next_sequence(self, identity: object) -> int:
        """Return the sequence of the next record; with another identity than before they begin anew."""
        known, sequence = self._sequence
        return sequence if known == identity else 0

    def advance(self, identity: object, sequence: int) -> None:
        """Note that the log has taken all records below `sequence`; 0 follows 2147483647."""
        self._sequence = (identity, sequence & SEQUENCE_MAX)


class TopicQueues:
    """The queues of one topic, and which of them a record takes.

    Attributes:
        sticky: the queue of records without a key, until it got a batch's worth of bytes; None when it is time to draw
            another.
        by_key: the queues of some keys, as the partitioner has chosen them.
        known_s: when the partitions were counted, by the monotonic clock.
    """

    def __init__(self, topic: str, store: DataDirectory, *, batch_size: int, ignores_keys: bool, now_s: float) -> None:
        """Raises UnknownTopicOrPartitionError, InvalidTopicError."""
        refuse_internal(topic)
        self._topic, self._store = topic, store
        self._batch_size, self._sticky_size = batch_size, 0
        self._ignores_keys = ignores_keys
        self._queues: list[PartitionQueue] = []
        self.by_key: dict[bytes, PartitionQueue] = {}
        self.sticky: PartitionQueue | None = None
        self.count(now_s)

    @property
    def partition_count(self) -> int:
        """How many partitions there were when they were counted."""
        return len(self._queues)

    def count(self, now_s: float) -> None:
        """Look whether the topic has got more partitions, or was made anew with fewer.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
        """
        topic = self._store.topics.get(self._topic)
        if topic is None:
            raise UnknownTopicOrPartitionError(
                f"Topic {self._topic} not present in metadata", found=self._topic, advice="make it with create_topic"
            )
        if topic.partition_count != len(self._queues):
            self.by_key.clear()
            new = range(len(self._queues), topic.partition_count)
            queues = self._queues[: topic.partition_count]
            queues += [PartitionQueue(TopicPartition(self._topic, partition), self._store) for partition in new]
            self._queues = queues
            if self.sticky not in queues and self.sticky is not None and self.sticky.open is None:
                self.sticky = None  # with an open batch it stays until that is sealed: `send` may be filling it
        self.known_s = now_s

    def queue(self, key: bytes | None, partition: int | None) -> PartitionQueue:
        """Return the queue of a record that has this key, or is for this partition.

        Raises:
            UnknownTopicOrPartitionError: there is no such partition.
        """
        if partition is not None:
            return self.of_partition(partition)
        if key is None or self._ignores_keys:
            if self.sticky is None:
                self._sticky_size = 0
                self.sticky = random.choice(self._queues)
            return self.sticky
        queue = self.by_key.get(key)
        if queue is None:
            queue = self._queues[partition_for_key(key, len(self._queues))]
            if len(self.by_key) >= KEY_CACHE_COUNT:
                self.by_key.clear()
            if len(key) <= KEY_CACHE_SIZE_MAX:
                self.by_key[key] = queue
        return queue

    def of_partition(self, partition: int) -> PartitionQueue:
        """Return the queue of a partition; raises UnknownTopicOrPartitionError."""
        if not 0 <= partition < len(self._queues):
            self.count(self.known_s)
        if not 0 <= partition < len(self._queues):
            raise UnknownTopicOrPartitionError(
                f"Partition {partition} of topic {self._topic} with partition count {len(self._queues)} is not present",
                found=f"{self._topic}-{partition}",
            )
        return self._queues[partition]

    def batch_sealed(self, queue: PartitionQueue, size: int) -> None:
        """Count a batch of `size` bytes that is complete: a good moment for another sticky partition."""
        if queue is self.sticky:
            self._sticky_size += size
            if self._sticky_size >= self._batch_size or queue not in self._queues:
                self.sticky = None
