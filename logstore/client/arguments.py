"""Arguments of producers and consumers: partitions, offsets, groups; checked before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from operator import index as as_index
from typing import Any, NamedTuple

from ..coordinator.groups.membership import ConsumerGroupMetadata
from ..coordinator.groups.offsets import OffsetAndMetadata
from ..errors import UsageError
from ..model import TopicPartition

ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time (`OffsetAndTimestamp`); timestamp in ms."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


#: by partition the offset of the next record to read, with or without metadata
Offsets = Mapping[tuple[str, int], int | OffsetAndMetadata] | Mapping[TopicPartition, int | OffsetAndMetadata]


def topic_name(given: Any) -> str:
    """Return a topic's name; raise UsageError if it is not text."""
    if isinstance(given, str):
        return given if type(given) is str else str.__str__(given)  # a subclass may have a hash of the caller's
    raise UsageError("A topic is given by its name", expected="a str", found=repr(given))


def partition_count(given: Any) -> int:
    """Return a number of partitions as an int; raise UsageError if it is not a whole number."""
    if isinstance(given, Integral):
        return int(given)
    raise UsageError("The number of partitions is a whole number", expected="partitions as an int", found=repr(given))


def topic_configs(given: Any) -> Mapping[str, Any]:
    """Return a topic's configurations; raise UsageError unless they are given by name."""
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return given
    raise UsageError("Configurations are given by name", expected="a dict with names as keys", found=repr(given))


def topic_partition(given: Any) -> TopicPartition:
    """Return a partition as `TopicPartition`; raise UsageError unless it is a topic name and a number."""
    if isinstance(given, tuple | list) and len(given) == 2:
        topic, number = given
        if isinstance(topic, str) and isinstance(number, Integral):
            return TopicPartition(topic, int(number))
    raise UsageError("A partition is a TopicPartition", expected="a topic's name and a number", found=repr(given))


def topic_partitions(given: Any) -> list[TopicPartition]:
    """Return several partitions; raise UsageError as `topic_partition` does, and if they are not a list."""
    if isinstance(given, Iterable):
        return [topic_partition(partition) for partition in given]
    raise UsageError("Partitions are given as a list", expected="a list", found=repr(given))


def whole_offset(given: Any) -> int:
    """Return an offset or a time as an int; raise UsageError if it is not a whole number."""
    if isinstance(given, Integral):
        return int(given)
    raise UsageError("Offsets and times are whole numbers", expected="an int", found=repr(given))


def not_negative(name: str, value: Any, maximum: int) -> int:
    """Return `value` as an int; raise UsageError unless it is from 0 to `maximum` (`ProducerRecord`)."""
    try:
        number = as_index(value)
    except TypeError:
        number = -1
    if 0 <= number <= maximum:
        return number
    what = "Partition number" if name == "partition" else name.capitalize()
    raise UsageError(
        f"Invalid {name}: {value}. {what} should always be non-negative or null.",
        expected=f"an int from 0 to {maximum}",
        found=repr(value),
        java_class=ILLEGAL_ARGUMENT,
    )


def offset_commits(offsets: Offsets) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets in the form that coordinators take.

    Raises:
        UsageError: a negative offset, or anything but partitions with offsets.
    """
    if not isinstance(offsets, Mapping):
        raise UsageError("Offsets are given by partition", expected="a dict", found=repr(offsets))
    commits: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, given in offsets.items():
        value = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        offset = whole_offset(value.offset)
        if offset < 0:
            raise UsageError("Invalid negative offset", found=offset, java_class=ILLEGAL_ARGUMENT)
        metadata = "" if value.metadata is None else value.metadata  # as Java's, and kafka-python's, constructor
        if not isinstance(metadata, str):
            raise UsageError("The metadata of an offset is a text", expected="a str", found=repr(metadata))
        commits[topic_partition(partition)] = value._replace(offset=offset, metadata=metadata)
    return commits


def checked_group(group: ConsumerGroupMetadata | str | None) -> ConsumerGroupMetadata:
    """Return a group given by id or by `Consumer.group_metadata` (`KafkaProducer.throwIfInvalidGroupMetadata`).

    Raises:
        UsageError: no group, or a generation without a member.
    """
    if group is None:
        raise UsageError("Consumer group metadata could not be null", java_class=ILLEGAL_ARGUMENT)
    known = ConsumerGroupMetadata(group) if isinstance(group, str) else group
    if not isinstance(known, ConsumerGroupMetadata):
        raise UsageError("A group is given by its id or by Consumer.group_metadata", found=repr(group))
    if known.generation_id > 0 and not known.member_id:
        raise UsageError(
            f"Passed in group metadata GroupMetadata(groupId = {known.group_id}, generationId = {known.generation_id}, "
            f"memberId = {known.member_id}, groupInstanceId = {known.group_instance_id or ''}) has generationId > 0 "
            "but the member.id is unknown",
            java_class=ILLEGAL_ARGUMENT,
        )
    return known
