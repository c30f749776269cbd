"""Where records wait for others to be written together with them: a lane for each partition (`RecordAccumulator`).

A lane has one batch that is open for records, and before it those that are full, or due, and could not be written yet.
All lanes belong to one producer, whose lock is held wherever something is done with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..errors import InvalidTopicError, UnknownTopicOrPartitionError
from ..log.partition_log import PartitionLog
from ..model import TopicPartition
from ..store.store import Store
from ..store.topics import INTERNAL_TOPICS
from .partitioner import StickyPartitioner, partition_for_key
from .producer_batch import ProducerBatch

KEY_CACHE_SIZE = 8192  # to hash a key in Python takes longer than all else that is done with it


class Lane:
    """The records on their way into one partition.

    Attributes:
        topic_partition, log, leader_epoch: where they go.
        open: the batch that takes records; None if there is none.
        queue: batches before it, to be written in this order.
        identity: of the producer when its sequences here began; None before.
        next_sequence: of the next record that is written.
        transaction: number of the last transaction that the partition was put into.
    """

    __slots__ = ("identity", "leader_epoch", "log", "next_sequence", "open", "queue", "topic_partition", "transaction")

    log: PartitionLog
    leader_epoch: int

    def __init__(self, topic_partition: TopicPartition, store: Store) -> None:
        self.topic_partition = topic_partition
        self.open: ProducerBatch | None = None
        self.queue: deque[ProducerBatch] = deque()
        self.identity: object = None
        self.next_sequence = 0
        self.transaction = 0
        self.look_up(store)

    def look_up(self, store: Store) -> None:
        """Find the log of the partition, which is another one if the topic was made anew.

        Raises:
            UnknownTopicOrPartitionError: it is gone.
        """
        self.log = store.log(*self.topic_partition)
        self.leader_epoch = store.leader_epoch(*self.topic_partition)

    def has_moved(self, store: Store) -> bool:
        """Whether the partition has another log by now, because its topic was made anew; raises as `look_up`."""
        log = self.log
        self.look_up(store)
        if self.log is log:
            return False
        self.identity, self.transaction = None, 0
        return True


class TopicLanes:
    """The lanes of one topic, and which of them a record takes.

    Attributes:
        sticky: the lane of records without a key; None when it is time to choose another.
        known_s: when the partitions were counted, by the monotonic clock.
    """

    __slots__ = ("_ignores_keys", "_key_lanes", "_lanes", "_partitioner", "_store", "_topic", "known_s", "sticky")

    def __init__(
        self, topic: str, store: Store, partitioner: StickyPartitioner, *, ignores_keys: bool, now_s: float
    ) -> None:
        """Raises UnknownTopicOrPartitionError, InvalidTopicError."""
        if topic in INTERNAL_TOPICS:  # what is in them decides whether the store opens again (`ReplicaManager`)
            raise InvalidTopicError(f"Cannot append to internal topic {topic}", found=topic)
        self._topic, self._store = topic, store
        self._partitioner = partitioner
        self._ignores_keys = ignores_keys
        self._lanes: list[Lane] = []
        self._key_lanes: dict[bytes, Lane] = {}
        self.sticky: Lane | None = None
        self.count(now_s)

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._lanes)

    @property
    def partition_count(self) -> int:
        """How many partitions there were when they were counted."""
        return len(self._lanes)

    def count(self, now_s: float) -> None:
        """See whether the topic has got more partitions, or was made anew with fewer.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
        """
        self.known_s = now_s
        topic = self._store.topics.get(self._topic)
        if topic is None:
            raise unknown_topic(self._topic)
        if topic.partition_count == len(self._lanes):
            return
        for partition in range(len(self._lanes), topic.partition_count):
            self._lanes.append(Lane(TopicPartition(self._topic, partition), self._store))
        del self._lanes[topic.partition_count :]
        self._key_lanes.clear()
        if self.sticky not in self._lanes and self.sticky is not None and self.sticky.open is None:
            self.sticky = None  # with an open batch it stays until that is sealed: `send` may be filling it

    def lane(self, key: bytes | None, partition: int | None) -> Lane:
        """The lane of a record that has this key, or is for this partition.

        Raises:
            UnknownTopicOrPartitionError: there is no such partition.
        """
        if partition is not None:
            return self.of_partition(partition)
        if key is None or self._ignores_keys:
            return self.sticky or self._draw()
        lane = self._key_lanes.get(key)
        if lane is None:
            if len(self._key_lanes) >= KEY_CACHE_SIZE:
                self._key_lanes.clear()
            lane = self._key_lanes[key] = self._lanes[partition_for_key(key, len(self._lanes))]
        return lane

    def of_partition(self, partition: int) -> Lane:
        """The lane of a partition; raises UnknownTopicOrPartitionError."""
        if not 0 <= partition < len(self._lanes):
            self.count(self.known_s)
        if not 0 <= partition < len(self._lanes):
            raise UnknownTopicOrPartitionError(
                f"Partition {partition} of topic {self._topic} with partition count {len(self._lanes)} is not present",
                found=f"{self._topic}-{partition}",
            )
        return self._lanes[partition]

    def follow(self, lane: Lane) -> None:
        """Let a lane go into the log that its partition has now; raises UnknownTopicOrPartitionError."""
        lane.has_moved(self._store)

    def passed_on(self, lane: Lane, size: int) -> None:
        """A batch of `size` bytes is complete: a good moment for another sticky partition."""
        if lane is self.sticky:
            self._partitioner.appended(size, is_batch_full=True)
            self.sticky = None

    def _draw(self) -> Lane:
        self.sticky = self._lanes[self._partitioner.partition(len(self._lanes))]
        return self.sticky


def unknown_topic(topic: str) -> UnknownTopicOrPartitionError:
    """The error for a topic that is not there."""
    return UnknownTopicOrPartitionError(
        f"Topic {topic} not present in metadata", found=topic, advice="make it with create_topic"
    )
