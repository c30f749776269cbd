"""Records of `__consumer_offsets`: committed offsets, classic groups, and the records of the newer group protocols.

Committed offsets and groups of the classic protocol are decoded to dataclasses, all other records to dicts of the
fields in `tables/consumer_offsets.txt`.

>>> key = decode_key(bytes.fromhex("0001 0003 677270 0001 74 00000003"))
>>> key
OffsetKey(group_id='grp', topic='t', partition=3, is_legacy=False)
>>> decode_value(key, bytes.fromhex("0003 000000000000002a 00000005 0001 6d 00000174876e8000")).offset
42
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..layout.kafka_uuid import ZERO_UUID, format_uuid
from ..messages.cursor import Cursor, errors_at, underflow
from ..messages.reader import read_from
from ..messages.schema import Value
from ..messages.writer import write
from . import family
from .frames import (
    CoordinatorKey,
    DecodedValue,
    read_key,
    read_value,
    write_key,
    write_value,
)

TOPIC = "__consumer_offsets"

_TABLE = "consumer_offsets"
_LEGACY_OFFSET_COMMIT, _OFFSET_COMMIT, _GROUP_METADATA = 0, 1, 2
_OFFSET_COMMIT_VERSION, _OFFSET_COMMIT_VERSION_WITH_EXPIRY, _GROUP_METADATA_VERSION = 4, 1, 3
_NO_TOPIC_ID = format_uuid(ZERO_UUID)

# attribute: field in the table
_OFFSET_FIELDS = {
    "offset": "offset",
    "leader_epoch": "leaderEpoch",
    "metadata": "metadata",
    "commit_timestamp_ms": "commitTimestamp",
    "expire_timestamp_ms": "expireTimestamp",
}
_LEGACY_DEFAULTS = {"leaderEpoch": -1, "expireTimestamp": -1, "topicId": _NO_TOPIC_ID}
_GROUP_FIELDS = {
    "protocol_type": "protocolType",
    "generation": "generation",
    "protocol": "protocol",
    "leader": "leader",
    "state_timestamp_ms": "currentStateTimestamp",
}
_MEMBER_FIELDS = {
    "member_id": "memberId",
    "group_instance_id": "groupInstanceId",
    "client_id": "clientId",
    "client_host": "clientHost",
    "rebalance_timeout_ms": "rebalanceTimeout",
    "session_timeout_ms": "sessionTimeout",
    "subscription": "subscription",
    "assignment": "assignment",
}


@dataclass(frozen=True, slots=True)
class OffsetKey:
    """Key of a group's committed offset of a partition; `is_legacy` is for record type 0, which means the same as 1."""

    group_id: str
    topic: str
    partition: int
    is_legacy: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class GroupKey:
    """Key of a group of the classic protocol."""

    group_id: str


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Value of a committed offset, which is the next offset to read; timestamps are ms since 1970.

    `leader_epoch` and `expire_timestamp_ms` are -1 and `topic_id` None where the record does not have them.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a classic group; the protocol type says what the bytes of `subscription` and `assignment` mean."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """Value of a classic group after a rebalance; `state_timestamp_ms` is -1 where the record does not have it."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[GroupMember, ...]


def decode_key(key: bytes, *, offset: int | None = None) -> OffsetKey | GroupKey | CoordinatorKey:
    """Decode the key of a record; SchemaError names `offset` for an unknown record type and a broken body."""
    with errors_at(offset):
        found = read_key(_TABLE, key)
    fields = found.fields
    if found.record_type in (_LEGACY_OFFSET_COMMIT, _OFFSET_COMMIT):
        is_legacy = found.record_type == _LEGACY_OFFSET_COMMIT
        return OffsetKey(fields["group"], fields["topic"], fields["partition"], is_legacy)
    if found.record_type == _GROUP_METADATA:
        return GroupKey(fields["group"])
    return found


def decode_value(
    key: OffsetKey | GroupKey | CoordinatorKey, value: bytes | None, *, offset: int | None = None
) -> CommittedOffset | GroupMetadata | DecodedValue | None:
    """Decode the value of a record with this decoded `key`; return None for a tombstone; raises as `decode_key`."""
    if value is None:
        return None
    with errors_at(offset):
        found = read_value(_TABLE, _record_type(key), value)
    if isinstance(key, OffsetKey):
        return _committed_offset(found.fields)
    if isinstance(key, GroupKey):
        return _group_metadata(found.fields)
    return found


def encode_key(key: OffsetKey | GroupKey) -> bytes:
    """Encode the key of a committed offset or of a classic group; a tombstone has the same key and no value."""
    if isinstance(key, GroupKey):
        return write_key(_TABLE, _GROUP_METADATA, {"group": key.group_id})
    fields = {"group": key.group_id, "topic": key.topic, "partition": key.partition}
    return write_key(_TABLE, _record_type(key), fields)


def encode_value(value: CommittedOffset | GroupMetadata) -> bytes:
    """Encode the value of a committed offset or of a classic group, in the version that Kafka 4.3.1 writes.

    That is 4 for an offset, 1 for an offset with an expiry (version 1 has no leader epoch and no topic id), and 3 for
    a group. Raises SchemaError for values that the schema refuses.
    """
    if isinstance(value, GroupMetadata):
        return write_value(_TABLE, _GROUP_METADATA, _GROUP_METADATA_VERSION, _group_fields(value))
    has_expiry = value.expire_timestamp_ms != -1
    version = _OFFSET_COMMIT_VERSION_WITH_EXPIRY if has_expiry else _OFFSET_COMMIT_VERSION
    return write_value(_TABLE, _OFFSET_COMMIT, version, _offset_fields(value))


def decode_embedded(message_name: str, data: bytes) -> Value:
    """Decode a member's `ConsumerProtocolSubscription` or `ConsumerProtocolAssignment`, of a group of type `consumer`.

    A version beyond the last is read as the last, because later versions only add fields. Raises SchemaError.
    """
    if len(data) < 2:
        raise underflow()
    version = int.from_bytes(data[:2], signed=True)
    return read_from(Cursor(data, version, position=2), family("consumer_protocol")[message_name])


def encode_embedded(message_name: str, fields: Value, *, version: int) -> bytes:
    """Encode what `decode_embedded` decodes; raises SchemaError."""
    body = write(family("consumer_protocol")[message_name], version, fields)
    return version.to_bytes(2, signed=True) + body


def _record_type(key: OffsetKey | GroupKey | CoordinatorKey) -> int:
    if isinstance(key, OffsetKey):
        return _LEGACY_OFFSET_COMMIT if key.is_legacy else _OFFSET_COMMIT
    return _GROUP_METADATA if isinstance(key, GroupKey) else key.record_type


def _committed_offset(fields: Value) -> CommittedOffset:
    fields = {**_LEGACY_DEFAULTS, **fields}
    topic_id = fields["topicId"]
    values = {name: fields[field_name] for name, field_name in _OFFSET_FIELDS.items()}
    return CommittedOffset(**values, topic_id=None if topic_id == _NO_TOPIC_ID else topic_id)


def _offset_fields(value: CommittedOffset) -> Value:
    fields = {field_name: getattr(value, name) for name, field_name in _OFFSET_FIELDS.items()}
    return {**fields, "topicId": _NO_TOPIC_ID if value.topic_id is None else value.topic_id}


def _group_metadata(fields: Value) -> GroupMetadata:
    members = [
        GroupMember(**{name: member[field_name] for name, field_name in _MEMBER_FIELDS.items()})
        for member in fields["members"]
    ]
    values = {name: fields[field_name] for name, field_name in _GROUP_FIELDS.items()}
    return GroupMetadata(**values, members=tuple(members))


def _group_fields(value: GroupMetadata) -> Value:
    members = [
        {field_name: getattr(member, name) for name, field_name in _MEMBER_FIELDS.items()} for member in value.members
    ]
    return {**{field_name: getattr(value, name) for name, field_name in _GROUP_FIELDS.items()}, "members": members}
