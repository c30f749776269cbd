"""Topics read as a whole: all partitions, and all records that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from ..model import TopicPartition
from ..store.data_directory import DataDirectory
from ..store.read_only import ReadOnlyDirectory
from .consumer import Consumer
from .consumer.consumer_records import ConsumerRecord


def partitions_of(directory: DataDirectory | ReadOnlyDirectory, topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic; raises UnknownTopicOrPartitionError."""
    return [TopicPartition(topic, number) for number in range(directory.describe_topic(topic).partition_count)]


def read_topic(consumer: Consumer) -> Iterator[ConsumerRecord]:
    """Iterate over the present records of the assigned partitions, one partition after the other; then close."""
    return _records_before(consumer, consumer.end_offsets(sorted(consumer.assignment())))


def _records_before(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> Iterator[ConsumerRecord]:
    """Iterate over records of each partition up to its end; later ones are left out."""
    with consumer:
        for partition, end_offset in ends.items():
            consumer.assign([partition])
            while consumer.position(partition) < end_offset:
                for record in chain.from_iterable(consumer.poll().values()):
                    if record.offset < end_offset:
                        yield record
