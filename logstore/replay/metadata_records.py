"""The records that are left of a metadata log when what they overwrote or removed is dropped: those of a snapshot.

`MetadataImage.write` of Kafka writes an image in this order. Here each record stays as it was written, whatever it
means to a store; a change of a partition or a broker goes into the record that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import SchemaError
from ..messages.schema import Value
from ..topics.cluster_metadata import decode_value, encode_value
from ..topics.frames import DecodedValue
from .metadata_image import NO_LEADER_CHANGE, TOPIC_RESOURCE

Key = tuple[Any, ...]

#: kinds that last, in the order of a snapshot, with the fields that say which record a later one replaces
_KEYS: Mapping[str, tuple[str, ...]] = {
    "FeatureLevelRecord": ("name",),
    "RegisterBrokerRecord": ("brokerId",),
    "RegisterControllerRecord": ("controllerId",),
    "TopicRecord": ("topicId",),
    "PartitionRecord": ("topicId", "partitionId"),
    "ConfigRecord": ("resourceType", "resourceName", "name"),
    "ClientQuotaRecord": ("entity", "key"),
    "ProducerIdsRecord": (),
    "AccessControlEntryRecord": ("id",),
    "UserScramCredentialRecord": ("name", "mechanism"),
    "DelegationTokenRecord": ("tokenId",),
}
_REMOVALS: Mapping[str, str] = {
    "UnregisterBrokerRecord": "RegisterBrokerRecord",
    "UnregisterControllerRecord": "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord": "AccessControlEntryRecord",
    "RemoveUserScramCredentialRecord": "UserScramCredentialRecord",
    "RemoveDelegationTokenRecord": "DelegationTokenRecord",
}
_LISTS = (
    *("isr", "replicas", "removingReplicas", "addingReplicas"),
    *("directories", "eligibleLeaderReplicas", "lastKnownElr"),
)
_NO_CHANGE = -1  # of a recovery state
_LOG_DIRS_VERSION = 3  # of a RegisterBrokerRecord


class MetadataRecords:
    """The records that last, and those of an open metadata transaction, which wait for its end."""

    def __init__(self) -> None:
        self._records: dict[str, dict[Key, DecodedValue]] = {kind: {} for kind in _KEYS}
        self._pending: list[DecodedValue] | None = None

    @property
    def has_open_transaction(self) -> bool:
        """True in the middle of a metadata transaction: a snapshot would cut it in two."""
        return self._pending is not None

    def replay(self, value: bytes | None, offset: int, timestamp_ms: int = 0) -> None:
        """Apply a record, as `MetadataImage.replay`; raises SchemaError."""
        if value is None:
            raise SchemaError("A metadata record has no value", offset=offset)
        record = decode_value(value, offset=offset)
        kind = record.message.name
        if kind == "BeginTransactionRecord":
            self._pending = []
        elif kind in ("EndTransactionRecord", "AbortTransactionRecord"):
            pending, self._pending = self._pending or [], None
            for waiting in pending if kind == "EndTransactionRecord" else ():
                self._apply(waiting, offset)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record, offset)

    def values(self) -> Iterator[bytes]:
        """Yield the records of a snapshot; partitions follow their topic."""
        for kind, records in self._records.items():
            for key, record in records.items():
                if kind != "PartitionRecord":
                    yield _encoded(record)
                if kind == "TopicRecord":
                    yield from map(_encoded, self._partitions(key[0]))

    def _partitions(self, topic_id: str) -> list[DecodedValue]:
        # by number from 0 on: a topic has them all
        known, partitions = self._records["PartitionRecord"], list[DecodedValue]()
        while (record := known.get((topic_id, len(partitions)))) is not None:
            partitions.append(record)
        return partitions

    def _apply(self, record: DecodedValue, offset: int) -> None:
        kind, fields = record.message.name, record.fields
        try:
            if kind in _KEYS:
                self._put(kind, record)
            elif kind in _REMOVALS:
                removed = _REMOVALS[kind]
                self._records[removed].pop(_key(removed, fields))
            elif kind == "RemoveTopicRecord":
                self._remove_topic(fields["topicId"])
            elif kind == "PartitionChangeRecord":
                self._change("PartitionRecord", fields, record.version, _changed_partition)
            elif kind == "BrokerRegistrationChangeRecord":
                self._change("RegisterBrokerRecord", fields, 0, _changed_broker)
            elif kind in ("FenceBrokerRecord", "UnfenceBrokerRecord"):
                changed = {"brokerId": fields["id"], "fenced": 1 if kind == "FenceBrokerRecord" else -1}
                self._change("RegisterBrokerRecord", changed, 0, _changed_broker)
            elif kind == "ClearElrRecord":
                self._clear_elr(fields["topicName"])
        except KeyError as error:
            text = f"A {kind} is of something that is not there"
            raise SchemaError(text, offset=offset, found=error.args[0]) from error

    def _put(self, kind: str, record: DecodedValue) -> None:
        key, records, fields = _key(kind, record.fields), self._records[kind], record.fields
        is_removal = (
            (kind == "ConfigRecord" and fields["value"] is None)
            or (kind == "ClientQuotaRecord" and fields["remove"])
            or (kind == "FeatureLevelRecord" and not fields["featureLevel"])
        )
        if is_removal:
            records.pop(key, None)
        else:
            records[key] = record

    def _remove_topic(self, topic_id: str) -> None:
        for number in range(len(self._partitions(topic_id))):
            del self._records["PartitionRecord"][topic_id, number]
        name = self._records["TopicRecord"].pop((topic_id,)).fields["name"]
        configs = self._records["ConfigRecord"]
        for key in [key for key in configs if key[:2] == (TOPIC_RESOURCE, name)]:
            del configs[key]

    def _change(self, kind: str, change: Value, version: int, changed: Any) -> None:
        key = _key(kind, change)
        known = self._records[kind][key]
        fields = changed(known.fields, change)
        if kind == "RegisterBrokerRecord" and fields.get("logDirs"):
            version = _LOG_DIRS_VERSION
        if kind == "RegisterBrokerRecord" and fields.get("cordonedLogDirs"):
            version = known.message.versions.high
        self._records[kind][key] = known._replace(version=max(version, known.version), fields=fields)

    def _clear_elr(self, topic_name: str) -> None:
        """Clear them of a topic, or of all topics for an empty name (`TopicsDelta.replay`)."""
        topics = self._records["TopicRecord"]
        ids = {key[0] for key, topic in topics.items() if topic_name in ("", topic.fields["name"])}
        for key, record in self._records["PartitionRecord"].items():
            if key[0] in ids:
                cleared = {**record.fields, "eligibleLeaderReplicas": None, "lastKnownElr": None}
                self._records["PartitionRecord"][key] = record._replace(fields=cleared)


def _key(kind: str, fields: Value) -> Key:
    return tuple(str(fields[name]) if name == "entity" else fields[name] for name in _KEYS[kind])


def _encoded(record: DecodedValue) -> bytes:
    return encode_value(record.message.name, record.fields, version=record.version)


def _changed_partition(fields: Value, change: Value) -> Value:
    """Return the fields of a PartitionRecord after a PartitionChangeRecord (`PartitionRegistration.merge`)."""
    lists = {name: change[name] for name in _LISTS if change.get(name) is not None}
    changed = {**fields, **lists, "partitionEpoch": fields["partitionEpoch"] + 1}
    if change["leader"] != NO_LEADER_CHANGE:
        changed |= {"leader": change["leader"], "leaderEpoch": fields["leaderEpoch"] + 1}
    if change["leaderRecoveryState"] != _NO_CHANGE:
        changed["leaderRecoveryState"] = change["leaderRecoveryState"]
    return changed


def _changed_broker(fields: Value, change: Value) -> Value:
    """Return the fields of a RegisterBrokerRecord after a change (`BrokerRegistration.cloneWith`)."""
    changed = dict(fields)
    if change["fenced"]:
        changed["fenced"] = change["fenced"] > 0
    if change.get("inControlledShutdown"):
        changed["inControlledShutdown"] = True
    for name in ("logDirs", "cordonedLogDirs"):
        if change.get(name):
            changed[name] = change[name]
    return changed
