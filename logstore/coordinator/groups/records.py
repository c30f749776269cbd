"""Records of classic groups in `__consumer_offsets` (`GroupCoordinatorRecordHelpers`).

The subscriptions and assignments in them are encoded by the consumer protocol (`ConsumerProtocol`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ...errors import SchemaError
from ...messages.schema import Value
from ...model import TopicPartition
from ...topics.consumer_offsets import GroupKey, GroupMember, GroupMetadata, decode_embedded, encode_embedded
from .membership import CONSUMER_PROTOCOL_TYPE, GroupMembership, GroupState, Joining, Member

_SUBSCRIPTION, _ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
#: as the Java client of 4.3.1
_CONSUMER_PROTOCOL_VERSION = 3
_CLIENT_HOST = "/127.0.0.1"


def group_record(group: GroupMembership) -> tuple[GroupKey, GroupMetadata]:
    """Return key and value of a group's record; log it with every new generation."""
    members = tuple(_member_record(member) for member in group.members.values())
    value = GroupMetadata(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        state_timestamp_ms=group.state_timestamp_ms,
        members=members,
    )
    return GroupKey(group.group_id), value


def group_from_record(key: GroupKey, value: GroupMetadata, *, ticks_ms: int) -> GroupMembership:
    """Return the group of a record, with the last heartbeat of all members at `ticks_ms`.

    Assignors are not in the record. A member has no topics or no partitions if its bytes are of another protocol type
    than `consumer`, or do not parse: clients write them as they like (`ClassicGroup.computeSubscribedTopics`).
    """
    group = GroupMembership(key.group_id)
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.generation = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol = value.protocol
    group.leader = value.leader
    group.state_timestamp_ms = value.state_timestamp_ms
    is_consumer = value.protocol_type == CONSUMER_PROTOCOL_TYPE
    for member in value.members:
        subscription: Value = {"topics": []}
        assignment: Value = {}
        if is_consumer:
            with suppress(SchemaError):
                subscription = decode_embedded(_SUBSCRIPTION, member.subscription)
            with suppress(SchemaError):
                assignment = decode_embedded(_ASSIGNMENT, member.assignment)
        joining = Joining(
            member_id=member.member_id,
            topics=tuple(subscription["topics"]),
            assignors={},
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            session_timeout_ms=member.session_timeout_ms,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
        )
        partitions = _flat(assignment.get("assignedPartitions", []))
        group.members[member.member_id] = Member(joining, ticks_ms, partitions=partitions, generation=value.generation)
    return group


def _member_record(member: Member) -> GroupMember:
    joining, version = member.joining, _CONSUMER_PROTOCOL_VERSION
    subscription: Value = {
        "topics": sorted(joining.topics),
        "userData": None,
        "ownedPartitions": _nested(member.partitions),
        "generationId": member.generation,
        "rackId": None,
    }
    assignment: Value = {"assignedPartitions": _nested(member.partitions), "userData": None}
    return GroupMember(
        member_id=joining.member_id,
        group_instance_id=joining.group_instance_id,
        client_id=joining.client_id,
        client_host=_CLIENT_HOST,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        session_timeout_ms=joining.session_timeout_ms,
        subscription=encode_embedded(_SUBSCRIPTION, subscription, version=version),
        assignment=encode_embedded(_ASSIGNMENT, assignment, version=version),
    )


def _nested(partitions: tuple[TopicPartition, ...]) -> list[dict[str, Any]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]


def _flat(topics: list[dict[str, Any]]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic["topic"], number) for topic in topics for number in topic["partitions"])
