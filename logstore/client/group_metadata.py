"""What groups and their offsets are called between a consumer and a producer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..coordinator.groups.membership import NO_GENERATION
from ..coordinator.groups.offsets import OffsetCommit
from ..errors import UsageError
from ..model import TopicPartition
from .arguments import topic_partition, whole_offset

ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
NO_LEADER_EPOCH = -1


class ConsumerGroupMetadata(NamedTuple):
    """Which member of a group, in which generation, read what a producer commits (`ConsumerGroupMetadata`).

    With the group id alone nobody is fenced when the group goes on without the reader.
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


class OffsetAndMetadata(NamedTuple):
    """A committed offset, which is the next to be read, and a text beside it (`OffsetAndMetadata`)."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time (`OffsetAndTimestamp`); timestamp in ms."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


#: what may be committed for a partition: the next offset to be read, with or without a text
Offsets = Mapping[tuple[str, int], int | OffsetAndMetadata] | Mapping[TopicPartition, int | OffsetAndMetadata]


def offset_commits(offsets: Offsets) -> dict[TopicPartition, OffsetCommit]:
    """Offsets as coordinators take them.

    Raises:
        UsageError: a negative offset, or something else than partitions with offsets.
    """
    if not isinstance(offsets, Mapping):
        raise UsageError("Offsets are given by partition", expected="a dict", found=repr(offsets))
    commits: dict[TopicPartition, OffsetCommit] = {}
    for partition, given in offsets.items():
        one = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)
        offset = whole_offset(one.offset)
        if offset < 0:
            raise UsageError("Invalid negative offset", found=offset, java_class=ILLEGAL_ARGUMENT)
        if not isinstance(one.metadata, str):
            raise UsageError("The metadata of an offset is a text", expected="a str", found=repr(one.metadata))
        epoch = NO_LEADER_EPOCH if one.leader_epoch is None else one.leader_epoch
        commits[topic_partition(partition)] = OffsetCommit(offset, leader_epoch=epoch, metadata=one.metadata)
    return commits


def checked_group(group: ConsumerGroupMetadata | str | None) -> ConsumerGroupMetadata:
    """What a producer is told of a group (`KafkaProducer.throwIfInvalidGroupMetadata`).

    Raises:
        UsageError: nothing, or a generation without a member.
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
