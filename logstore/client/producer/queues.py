"""Queues of batches for the partitions of a topic, and the choice of a record's partition (`RecordAccumulator`).

All queues belong to one producer, whose mutex is held for all work on them. Partitions are chosen as by the Java
producer (`BuiltInPartitioner`).

>>> partition_for_key(b"42", 12), partition_for_key(b"100:48069", 12)
(4, 9)
"""

from __future__ import annotations

import random
from collections import deque
from itertools import islice

from ...columns.batch_table import Int64Array
from ...columns.record_columns import BytesColumn
from ...errors import InvalidTopicError, UnknownTopicOrPartitionError
from ...kernels.table.key_hashes import murmur2_key
from ...layout.record import SEQUENCE_MAX
from ...log.partition_log import PartitionLog
from ...model import TopicPartition
from ...store.data_directory import DataDirectory
from ...topics import INTERNAL_TOPICS
from .batch import Batch
from .config import ProducerConfig

KEY_CACHE_COUNT = 8192  # a lookup takes a tenth of the time of the hash
KEY_CACHE_SIZE_MAX = 256

_hash = murmur2_key.bound().run


def murmur2(key: bytes) -> int:
    """Return the 32-bit hash of a key, as a signed int (`Utils.murmur2`).

    >>> murmur2(b"21"), murmur2(b"foobar")
    (-973932308, -790332482)
    """
    return _hash(key, len(key))


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Return the partition of all records with this serialized key, while the topic has this many partitions."""
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
    """Batches for one partition, and the sequences that their producer has used in it.

    Attributes:
        topic_partition, log: the destination.
        batches: written in this order; the last one may be open.
        open: the batch that takes records; None without one.
        transaction: number of the last transaction that the partition joined.
    """

    log: PartitionLog

    def __init__(self, topic_partition: TopicPartition, store: DataDirectory) -> None:
        self.topic_partition = topic_partition
        self.batches: deque[Batch] = deque()
        self.open: Batch | None = None
        self._bind(store)

    def _bind(self, store: DataDirectory) -> None:
        log = store.log(*self.topic_partition)
        self._sequence: tuple[object, int] = (None, 0)
        self.transaction = 0
        self.log = log  # last: after an interrupt `rebind_log` sees the old log, and binds again

    def rebind_log(self, store: DataDirectory) -> bool:
        """Bind the present log of the partition; return True if it is another one, of a recreated topic.

        Raises UnknownTopicOrPartitionError if the partition is gone.
        """
        if store.log(*self.topic_partition) is self.log:
            return False
        self._bind(store)
        return True

    def next_sequence(self, identity: object) -> int:
        """Return the sequence of the next record; sequences restart with another identity."""
        known, sequence = self._sequence
        return sequence if known == identity else 0

    def advance(self, identity: object, sequence: int) -> None:
        """Note that the log has all records below `sequence`; 0 follows 2147483647."""
        self._sequence = (identity, sequence & SEQUENCE_MAX)


class TopicQueues:
    """The queues of one topic, and the choice among them.

    Attributes:
        sticky: the queue of records without key, until it got as many bytes as a batch; None to draw another.
        by_key: cached choices of the partitioner.
        ignores_keys: records with a key go to `sticky` too.
        known_s: monotonic time at which the partitions were counted.
    """

    def __init__(self, topic: str, store: DataDirectory, config: ProducerConfig, now_s: float) -> None:
        if topic in INTERNAL_TOPICS:  # what they hold decides whether the store opens again
            raise InvalidTopicError(f"Cannot append to internal topic {topic}", found=topic)
        self._topic, self._store = topic, store
        self._batch_size, self._sticky_size = max(config["batch.size"], 1), 0
        self.ignores_keys: bool = config["partitioner.ignore.keys"]
        self._queues: list[PartitionQueue] = []
        self.by_key: dict[bytes, PartitionQueue] = {}
        self.sticky: PartitionQueue | None = None
        self.count(now_s)

    @property
    def partition_count(self) -> int:
        """The number of partitions when they were last counted."""
        return len(self._queues)

    def count(self, now_s: float) -> None:
        """Update the queues if the topic has more partitions, or was recreated with fewer.

        Raises UnknownTopicOrPartitionError if there is no such topic.
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
                self.sticky = None  # with an open batch it stays until that is sealed: a `send` may be filling it
        self.known_s = now_s

    def queue(self, key: bytes | None, partition: int | None) -> PartitionQueue:
        """Return the queue of a record with this key, or for this partition; raises as `of_partition`."""
        if partition is not None:
            return self.of_partition(partition)
        if key is None or self.ignores_keys:
            if self.sticky is None:
                self._sticky_size = 0
                self.sticky = random.choice(self._queues)
            return self.sticky
        queue = self.by_key.get(key)
        if queue is None:
            queue = self._queues[partition_for_key(key, len(self._queues))]
            if len(self.by_key) >= KEY_CACHE_COUNT:
                # the oldest few: without any of them the next thousands of records would all be hashed
                for old_key in list(islice(self.by_key, KEY_CACHE_COUNT // 8)):
                    del self.by_key[old_key]
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
        """Count a complete batch of `size` bytes: the moment to draw another sticky partition."""
        if queue is self.sticky:
            self._sticky_size += size
            if self._sticky_size >= self._batch_size or queue not in self._queues:
                self.sticky = None
