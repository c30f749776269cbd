"""The state after the records of `__cluster_metadata`, as far as a store needs it (`MetadataImage`).

Records of quotas, ACLs, tokens and credentials concern a broker only: they stay in the log and are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...coordinator.producer_ids import ProducerIds
from ...errors import SchemaError
from ...messages.schema import Value
from ...topics.cluster_metadata import decode_value
from ...topics.frames import MetadataRecord

BROKER_RESOURCE, TOPIC_RESOURCE = 4, 2  # of a ConfigRecord
METADATA_VERSION = "metadata.version"
NO_LEADER_CHANGE = -2

_NO_OP = bytes.fromhex("01140000")  # a broker writes two a second


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """The replicas of a partition, its leader and the epoch of that."""

    replicas: tuple[int, ...]
    directories: tuple[str, ...]
    leader: int
    leader_epoch: int

    @classmethod
    def of(cls, fields: Value) -> PartitionImage:
        """Return the image of a PartitionRecord."""
        directories = tuple(fields.get("directories") or ())
        return cls(tuple(fields["replicas"]), directories, fields["leader"], fields["leaderEpoch"])

    def changed(self, fields: Value) -> PartitionImage:
        """Return the image after a PartitionChangeRecord (`PartitionRegistration.merge`)."""
        replicas, directories = fields.get("replicas"), fields.get("directories")
        is_elected = fields["leader"] != NO_LEADER_CHANGE
        return PartitionImage(
            self.replicas if replicas is None else tuple(replicas),
            self.directories if directories is None else tuple(directories),
            fields["leader"] if is_elected else self.leader,
            self.leader_epoch + is_elected,
        )


@dataclass(slots=True)
class TopicImage:
    """A topic and its partitions by number."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionImage] = field(default_factory=dict)


@dataclass(slots=True)
class BrokerImage:
    """A registered broker: the epoch of its registration, and the ids of its data directories."""

    broker_epoch: int
    directories: tuple[str, ...]


@dataclass(slots=True)
class MetadataImage:
    """The state after the last record.

    Attributes:
        topics, topics_by_id: the same topics, by name and by id.
        removed_topic_ids: of topics that were deleted, as far back as the log goes.
        configs: from (resource type, name) to the configurations that are set; the default of all brokers has the
            name "".
        features: finalized levels by name; a level of 0 is left out.
        brokers: the registered ones, by id.
        transaction_start_offset: of an open metadata transaction (KIP-868); None without one.
    """

    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[str, TopicImage] = field(default_factory=dict)
    removed_topic_ids: set[str] = field(default_factory=set)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    producer_ids: ProducerIds = field(default_factory=ProducerIds)
    transaction_start_offset: int | None = None
    _pending: list[tuple[int, MetadataRecord]] = field(default_factory=list)

    def replay(self, value: bytes | None, offset: int) -> None:
        """Apply a record; those of a metadata transaction wait for its end.

        Raises:
            SchemaError: a value that is no metadata record, or contradicts those before.
        """
        if value == _NO_OP:
            return
        if value is None:
            raise SchemaError("A metadata record has no value", offset=offset)
        record = decode_value(value, offset=offset)
        kind = record.message.name
        if kind == "BeginTransactionRecord":
            self.transaction_start_offset = offset
        elif kind in ("EndTransactionRecord", "AbortTransactionRecord"):
            self.transaction_start_offset = None
            pending, self._pending = self._pending, []
            if kind == "EndTransactionRecord":
                for pending_offset, pending_record in pending:
                    self._apply(pending_record, pending_offset)
        elif self.transaction_start_offset is not None:
            self._pending.append((offset, record))
        else:
            self._apply(record, offset)

    def topic_config(self, name: str) -> dict[str, str]:
        """Return the configurations that are set for a topic."""
        return dict(self.configs.get((TOPIC_RESOURCE, name), {}))

    def _apply(self, record: MetadataRecord, offset: int) -> None:
        apply = getattr(self, _METHODS.get(record.message.name, ""), None)
        if apply is None:
            return
        try:
            apply(record.fields)
        except KeyError as error:
            raise SchemaError(
                f"A {record.message.name} is of something that is not there", offset=offset, found=error.args[0]
            ) from error

    def _topic(self, fields: Value) -> None:
        topic = TopicImage(fields["name"], fields["topicId"])
        self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic

    def _remove_topic(self, fields: Value) -> None:
        topic = self.topics_by_id.pop(fields["topicId"])
        del self.topics[topic.name]
        self.configs.pop((TOPIC_RESOURCE, topic.name), None)
        self.removed_topic_ids.add(topic.topic_id)

    def _partition(self, fields: Value) -> None:
        self.topics_by_id[fields["topicId"]].partitions[fields["partitionId"]] = PartitionImage.of(fields)

    def _partition_change(self, fields: Value) -> None:
        partitions = self.topics_by_id[fields["topicId"]].partitions
        number = fields["partitionId"]
        partitions[number] = partitions[number].changed(fields)

    def _config(self, fields: Value) -> None:
        resource = fields["resourceType"], fields["resourceName"]
        config = self.configs.setdefault(resource, {})
        if fields["value"] is None:
            config.pop(fields["name"], None)
        else:
            config[fields["name"]] = fields["value"]

    def _feature(self, fields: Value) -> None:
        if fields["featureLevel"] == 0:
            self.features.pop(fields["name"], None)
        else:
            self.features[fields["name"]] = fields["featureLevel"]

    def _register_broker(self, fields: Value) -> None:
        directories = tuple(fields.get("logDirs") or ())
        self.brokers[fields["brokerId"]] = BrokerImage(fields["brokerEpoch"], directories)

    def _broker_change(self, fields: Value) -> None:
        broker = self.brokers[fields["brokerId"]]
        if fields.get("logDirs"):
            broker.directories = tuple(fields["logDirs"])

    def _unregister_broker(self, fields: Value) -> None:
        del self.brokers[fields["brokerId"]]

    def _producer_ids(self, fields: Value) -> None:
        self.producer_ids.replay(fields)


_METHODS = {
    "TopicRecord": "_topic",
    "RemoveTopicRecord": "_remove_topic",
    "PartitionRecord": "_partition",
    "PartitionChangeRecord": "_partition_change",
    "ConfigRecord": "_config",
    "FeatureLevelRecord": "_feature",
    "RegisterBrokerRecord": "_register_broker",
    "BrokerRegistrationChangeRecord": "_broker_change",
    "UnregisterBrokerRecord": "_unregister_broker",
    "ProducerIdsRecord": "_producer_ids",
}
