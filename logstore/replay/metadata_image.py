"""State after the records of `__cluster_metadata`, as far as a store or an audit needs it (`MetadataImage`).

Of ACLs, credentials and tokens, which matter to a broker only, it is known which there are; quotas are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..config.kafka_version import METADATA_VERSION, unknown_levels
from ..errors import SchemaError
from ..layout.file_names import METADATA_TOPIC
from ..messages.schema import Value
from ..topics.cluster_metadata import decode_value
from ..topics.frames import DecodedValue, is_newer_record

BROKER_RESOURCE, TOPIC_RESOURCE = 4, 2  # of a ConfigRecord
NO_LEADER_CHANGE = -2

_NO_OP = bytes.fromhex("01140000")  # a broker writes two a second
#: the fields with the id and the epoch of a broker that is registered
_OF_REGISTRATION = {
    **dict.fromkeys(("BrokerRegistrationChangeRecord", "UnregisterBrokerRecord"), ("brokerId", "brokerEpoch")),
    **dict.fromkeys(("FenceBrokerRecord", "UnfenceBrokerRecord"), ("id", "epoch")),
}


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """The replicas of a partition, its leader (-1: none) and the epoch of that.

    Attributes:
        isr: in sync with the leader.
        elr: left the ISR when it was smallest, so they have all that was committed (KIP-966).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[str, ...]
    leader: int
    leader_epoch: int
    elr: tuple[int, ...] = ()

    @classmethod
    def of(cls, fields: Value) -> PartitionImage:
        """Return the image of a PartitionRecord."""
        directories = tuple(fields.get("directories") or ())
        replicas, isr = tuple(fields["replicas"]), tuple(fields["isr"])
        elr = tuple(fields.get("eligibleLeaderReplicas") or ())
        return cls(replicas, isr, directories, fields["leader"], fields["leaderEpoch"], elr)

    def changed(self, fields: Value) -> PartitionImage:
        """Return the image after a PartitionChangeRecord (`PartitionRegistration.merge`)."""
        replicas, isr, directories = fields.get("replicas"), fields.get("isr"), fields.get("directories")
        elr = fields.get("eligibleLeaderReplicas")
        is_elected = fields["leader"] != NO_LEADER_CHANGE
        return PartitionImage(
            self.replicas if replicas is None else tuple(replicas),
            self.isr if isr is None else tuple(isr),
            self.directories if directories is None else tuple(directories),
            fields["leader"] if is_elected else self.leader,
            self.leader_epoch + is_elected,
            self.elr if elr is None else tuple(elr),
        )


@dataclass(slots=True)
class TopicImage:
    """A topic and its partitions by number.

    Attributes:
        created_ms: creation time; 0 if it precedes the oldest record at hand.
    """

    name: str
    topic_id: str
    created_ms: int = 0
    partitions: dict[int, PartitionImage] = field(default_factory=dict)


@dataclass(slots=True)
class BrokerImage:
    """A registered broker: the fields of its registration, and the ids of its data directories since."""

    registration: Value
    directories: tuple[str, ...]

    @property
    def broker_epoch(self) -> int:
        """The epoch of the registration."""
        epoch: int = self.registration["brokerEpoch"]
        return epoch

    @property
    def listeners(self) -> list[tuple[str, int]]:
        """Its listeners: the name of each, and the code of its security protocol."""
        return [(point["name"], point["securityProtocol"]) for point in self.registration["endPoints"]]


@dataclass(slots=True)
class MetadataImage:
    """The state after the last replayed record.

    Attributes:
        topics, topics_by_id: the same topics, by name and by id.
        removed_topic_ids: of deleted topics, as far back as the log goes.
        removed_configs: topic name to configurations that a deleted topic of this name had, and none was set or unset
            since. A broker of 4.3.1 or 4.4.0 that replays all of it in one go takes them for the next topic's.
        compacted_topics: names of topics whose `cleanup.policy` has, or once had, compact.
        compacts_by_default: `log.cleanup.policy` of the brokers, or of one, has, or once had, compact.
        only_compacted_topics: names of topics that were made with `cleanup.policy=compact` and always had it since, so
            that their log start never was raised.
        tiered_topics: names of topics whose older segments are, or once were, in remote storage (KIP-405).
        configs: (resource type, name) to configurations; the default of all brokers has the name "".
        features: finalized levels above 0, by name.
        lowest_level: of `metadata.version`, of all that it ever had; 0 before its first record.
        brokers: registered brokers by id.
        registration_count: how often brokers registered, as each does when it starts.
        log_directories: broker and id of each data directory that was ever registered; "" for one without an id.
        acls, tokens: their ids.
        credentials: of SCRAM, name and mechanism.
        next_producer_id: the first id that belongs to no block.
        transaction_start_offset: of an open metadata transaction (KIP-868); None without one.
        is_partial: earlier records are missing, so a record may refer to something unknown.
        newer_offsets: of records that a newer Kafka wrote: of an unknown type or version, or with unknown tags. What
            does not parse as the newest known version is left out.
    """

    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[str, TopicImage] = field(default_factory=dict)
    removed_topic_ids: set[str] = field(default_factory=set)
    removed_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    compacted_topics: set[str] = field(default_factory=set)
    compacts_by_default: bool = False
    only_compacted_topics: set[str] = field(default_factory=set)
    tiered_topics: set[str] = field(default_factory=set)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    lowest_level: int = 0
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    registration_count: int = 0
    log_directories: set[tuple[int, str]] = field(default_factory=set)
    acls: set[str] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    credentials: set[tuple[str, int]] = field(default_factory=set)
    next_producer_id: int = 0
    transaction_start_offset: int | None = None
    is_partial: bool = False
    newer_offsets: list[int] = field(default_factory=list)
    _pending: list[tuple[DecodedValue, int, int]] = field(default_factory=list)

    def replay(self, value: bytes | None, offset: int, timestamp_ms: int = 0) -> None:
        """Apply a record; those of a metadata transaction wait for its end. Raises SchemaError for nonsense."""
        if value == _NO_OP:
            return
        if value is None:
            raise SchemaError("A metadata record has no value", offset=offset)
        try:
            record = decode_value(value, offset=offset)
        except SchemaError:
            if not is_newer_record("cluster_metadata", value):
                raise
            self.newer_offsets.append(offset)
            return
        if record.is_newer:
            self.newer_offsets.append(offset)
        kind = record.message.name
        if kind == "BeginTransactionRecord":
            self.transaction_start_offset = offset
        elif kind in ("EndTransactionRecord", "AbortTransactionRecord"):
            self.transaction_start_offset = None
            pending, self._pending = self._pending, []
            if kind == "EndTransactionRecord":
                for entry in pending:
                    self._apply(*entry)
        elif self.transaction_start_offset is not None:
            self._pending.append((record, offset, timestamp_ms))
        else:
            self._apply(record, offset, timestamp_ms)

    @property
    def newer_kafka(self) -> str | None:
        """What says that a newer Kafka than any known here wrote the metadata, in words; None if nothing does."""
        count, signs = len(self.newer_offsets), unknown_levels(self.features)
        if count:
            signs.append(f"{count} metadata {'record is' if count == 1 else 'records are'} not known here")
        return f"written by a newer Kafka ({', '.join(signs)})" if signs else None

    def topic_config(self, name: str) -> dict[str, str]:
        """Return the configurations set for a topic."""
        return dict(self.configs.get((TOPIC_RESOURCE, name), {}))

    def _apply(self, record: DecodedValue, offset: int, timestamp_ms: int) -> None:
        kind = record.message.name
        try:
            self._require_registered(kind, record.fields)
            self._change(kind, record.fields, timestamp_ms)
        except KeyError as error:
            if not self.is_partial and not self.newer_offsets:  # what it is of may have been left out
                text = f"A {kind} is of something that is not there"
                advice = f"no broker starts on it: put {METADATA_TOPIC}-0 back from a copy"
                raise SchemaError(text, offset=offset, found=error.args[0], advice=advice) from error

    def _require_registered(self, kind: str, fields: Value) -> None:
        """Raise KeyError unless a broker is registered as its record says (`ClusterDelta.getBrokerOrThrow`)."""
        if kind in _OF_REGISTRATION:
            broker_id, epoch = (fields[name] for name in _OF_REGISTRATION[kind])
            known = self.brokers[broker_id].broker_epoch
            if known != epoch:
                raise KeyError(f"epoch {epoch} of broker {broker_id}, which is registered with {known}")

    def _change(self, kind: str, fields: Value, timestamp_ms: int) -> None:
        match kind:
            case "TopicRecord":
                topic = TopicImage(fields["name"], fields["topicId"], timestamp_ms)
                self.topics[topic.name] = self.topics_by_id[topic.topic_id] = topic
            case "RemoveTopicRecord":
                topic = self.topics_by_id.pop(fields["topicId"])
                del self.topics[topic.name]
                config = self.configs.pop((TOPIC_RESOURCE, topic.name), {})
                self.removed_configs[topic.name] = {**self.removed_configs.get(topic.name, {}), **config}
                self.compacted_topics.discard(topic.name)
                self.only_compacted_topics.discard(topic.name)
                self.tiered_topics.discard(topic.name)
                self.removed_topic_ids.add(topic.topic_id)
            case "PartitionRecord":
                partitions = self.topics_by_id[fields["topicId"]].partitions
                partitions[fields["partitionId"]] = PartitionImage.of(fields)
            case "PartitionChangeRecord":
                partitions = self.topics_by_id[fields["topicId"]].partitions
                partitions[fields["partitionId"]] = partitions[fields["partitionId"]].changed(fields)
            case "ConfigRecord":
                self._set_config(fields["resourceType"], fields["resourceName"], fields["name"], fields["value"])
            case "FeatureLevelRecord":
                self._set_level(fields["name"], fields["featureLevel"])
            case "RegisterBrokerRecord":
                directories = tuple(fields.get("logDirs") or ())
                self.registration_count += 1
                self.brokers[fields["brokerId"]] = BrokerImage(fields, directories)
                self.log_directories |= {(fields["brokerId"], directory) for directory in directories or ("",)}
            case "BrokerRegistrationChangeRecord":
                broker = self.brokers[fields["brokerId"]]
                broker.directories = tuple(fields.get("logDirs") or broker.directories)
                self.log_directories |= {(fields["brokerId"], directory) for directory in broker.directories}
            case "UnregisterBrokerRecord":
                del self.brokers[fields["brokerId"]]
            case "AccessControlEntryRecord":
                self.acls.add(fields["id"])
            case "RemoveAccessControlEntryRecord":
                self.acls.discard(fields["id"])
            case "DelegationTokenRecord":
                self.tokens.add(fields["tokenId"])
            case "RemoveDelegationTokenRecord":
                self.tokens.discard(fields["tokenId"])
            case "UserScramCredentialRecord":
                self.credentials.add((fields["name"], fields["mechanism"]))
            case "RemoveUserScramCredentialRecord":
                self.credentials.discard((fields["name"], fields["mechanism"]))
            case "ProducerIdsRecord":
                self._move_producer_ids(fields["nextProducerId"])

    def _set_level(self, feature: str, level: int) -> None:
        self.features[feature] = level
        if level == 0:
            del self.features[feature]
        if feature == METADATA_VERSION:
            self.lowest_level = min(self.lowest_level or level, level)

    def _set_config(self, resource_type: int, resource: str, name: str, value: str | None) -> None:
        config = self.configs.setdefault((resource_type, resource), {})
        if resource_type == TOPIC_RESOURCE and resource in self.removed_configs:
            self.removed_configs[resource].pop(name, None)
        if resource_type == TOPIC_RESOURCE and name == "cleanup.policy":
            self._note_policy(resource, value)
        if resource_type == BROKER_RESOURCE and name == "log.cleanup.policy" and "compact" in (value or ""):
            self.compacts_by_default = True
        if value is None:
            config.pop(name, None)
            return
        config[name] = value
        if resource_type == TOPIC_RESOURCE and name == "remote.storage.enable" and value == "true":
            self.tiered_topics.add(resource)

    def _note_policy(self, topic: str, policy: str | None) -> None:
        """Note what a topic was subject to; the configurations of a new one come before its partitions."""
        if "compact" in (policy or ""):
            self.compacted_topics.add(topic)
        is_new = topic in self.topics and not self.topics[topic].partitions
        if policy == "compact" and is_new:
            self.only_compacted_topics.add(topic)
        elif policy != "compact":
            self.only_compacted_topics.discard(topic)

    def _move_producer_ids(self, following: int) -> None:
        """Move the start of the next block as `ProducerIdControlManager.replay` does."""
        if self.next_producer_id and following <= self.next_producer_id:
            raise SchemaError(
                f"Next Producer ID from replayed record ({following}) is not greater than current next Producer ID "
                f"in block ({self.next_producer_id})",
                expected=f"above {self.next_producer_id}",
                found=following,
            )
        self.next_producer_id = following
