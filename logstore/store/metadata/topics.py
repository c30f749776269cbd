"""Changes of topics as records of the metadata log, after Kafka's checks (`ReplicationControlManager`).

Each function returns the records of one change, which the caller appends as one batch.

>>> from logstore.replay.metadata_image import MetadataImage
>>> node = NodeDirectory(1, "dqEnd-x7SkKckvU0_kJgLQ")
>>> create_topic_records(MetadataImage(), node, "a/b", "wpbL9QuzSw6JQCrXAbQsfg", 1, {}, defaults={})
Traceback (most recent call last):
logstore.errors.InvalidTopicError: Topic name is invalid: 'a/b' contains one or more characters other than ASCII \
alphanumerics, '.', '_' and '-'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...config.kafka_version import METADATA_VERSION
from ...errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from ...layout.file_names import METADATA_TOPIC
from ...messages.schema import Value
from ...replay.metadata_image import MetadataImage, TopicImage
from ...topics import consumer_offsets, transaction_state
from ...topics.cluster_metadata import encode_value
from .topic_configs import config_records, config_text, known_configs, no_config_records, require_valid_config

NAME_LENGTH_MAX = 249
PARTITION_COUNT_MAX = 10_000  # in one request
COORDINATED_TOPICS = frozenset({consumer_offsets.TOPIC, transaction_state.TOPIC})
_ELR_METADATA_VERSION, _DIRECTORY_METADATA_VERSION = 23, 17  # levels that introduced record versions 2 and 1


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic: its name and id, its partition count, and the configurations set for it."""

    name: str
    topic_id: str
    partition_count: int
    config: Mapping[str, str]


class NodeDirectory(NamedTuple):
    """The node, and the data directory of all its partitions."""

    node_id: int
    directory_id: str


def describe(image: MetadataImage, topic: TopicImage) -> TopicDescription:
    """Return the topic as users see it."""
    return TopicDescription(topic.name, topic.topic_id, len(topic.partitions), image.topic_config(topic.name))


def create_topic_records(
    image: MetadataImage,
    node: NodeDirectory,
    name: str,
    topic_id: str,
    partition_count: int,
    config: Mapping[str, Any],
    *,
    defaults: Mapping[str, str],
) -> list[bytes]:
    """Return the records of a new topic; `defaults` are the broker's, see `broker_defaults`.

    Raises Kafka's errors: InvalidTopicError, also for a name that differs from another only in dots and underscores,
    TopicExistsError, InvalidPartitionsError, InvalidConfigurationError, PolicyViolationError.
    """
    if partition_count > PARTITION_COUNT_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.", found=partition_count)
    require_valid_name(name)
    if name == METADATA_TOPIC:  # its record would send every load to the metadata log's directory (`ControllerApis`)
        raise InvalidTopicError(f"Creation of internal topic {name} is prohibited.", found=name)
    _require_no_collision(image, name)
    if name in image.topics:
        raise TopicExistsError(f"Topic '{name}' already exists.")
    text = config_text(config)
    require_valid_config(name, text, defaults=defaults, present={})
    if partition_count <= 0:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value.", found=partition_count
        )
    return [
        encode_value("TopicRecord", {"name": name, "topicId": topic_id}),
        *config_records(image, name, {**dict.fromkeys(image.removed_configs.get(name, {})), **text}),
        *partition_records(image, node, topic_id, dict.fromkeys(range(partition_count), 0)),
    ]


def delete_topic_records(image: MetadataImage, name: str) -> list[bytes]:
    """Return the records that remove a topic, and its configurations before it.

    Raises UnknownTopicOrPartitionError if there is no such topic, and InvalidTopicError for a coordinator's: a broker
    deletes it, and forgets fenced producers and decisions.
    """
    if name in COORDINATED_TOPICS and name in image.topics:
        raise InvalidTopicError(
            f"Deletion of internal topic {name} is prohibited.",
            found=name,
            advice="groups are removed with store.groups.delete; transactional ids that nobody uses expire",
        )
    removal = encode_value("RemoveTopicRecord", {"topicId": topic_of(image, name).topic_id})
    return [*no_config_records(image, name), removal]


def add_partitions_records(image: MetadataImage, node: NodeDirectory, name: str, partition_count: int) -> list[bytes]:
    """Return the records that raise a topic's number of partitions to `partition_count`.

    Raises InvalidPartitionsError if it has as many or more, or belongs to a coordinator, whose keys would move;
    UnknownTopicOrPartitionError; PolicyViolationError for too many at once.
    """
    topic = topic_of(image, name)
    if name in COORDINATED_TOPICS:  # a broker accepts it, and then loads nothing of it (`TransactionStateManager`)
        raise InvalidPartitionsError(
            f"The number of partitions of internal topic {name} cannot be changed.", found=partition_count
        )
    present_count = len(topic.partitions)
    if partition_count == present_count:
        raise InvalidPartitionsError(f"Topic already has {present_count} partition(s).")
    if partition_count < present_count:
        raise InvalidPartitionsError(
            f"The topic {name} currently has {present_count} partition(s); {partition_count} would not be an increase."
        )
    if partition_count - present_count > PARTITION_COUNT_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.", found=partition_count)
    return partition_records(image, node, topic.topic_id, dict.fromkeys(range(present_count, partition_count), 0))


def alter_config_records(
    image: MetadataImage, name: str, changes: Mapping[str, Any], *, defaults: Mapping[str, str]
) -> list[bytes]:
    """Return the records that set configurations of a topic or, with None, unset them; empty if nothing changes.

    Raises UnknownTopicOrPartitionError, and InvalidConfigurationError for a name or value, alone or with the others.
    """
    topic_of(image, name)
    present = image.topic_config(name)
    text = config_text({key: value for key, value in changes.items() if value is not None})
    removed = {key: None for key, value in changes.items() if value is None and key in present}
    kept = {key: value for key, value in known_configs(present, defaults).items() if key not in removed}
    require_valid_config(name, {**kept, **text}, defaults=defaults, present=present)
    changed = {key: value for key, value in text.items() if present.get(key) != value}
    return config_records(image, name, {**changed, **removed})


def partition_records(
    image: MetadataImage, node: NodeDirectory, topic_id: str, leader_epochs: Mapping[int, int]
) -> list[bytes]:
    """Return the records of new partitions, by number with their leader epoch."""
    version = _partition_record_version(image)
    fields: Value = {
        "topicId": topic_id,
        "replicas": [node.node_id],
        "isr": [node.node_id],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": node.node_id,
        "partitionEpoch": 0,
    }
    if version > 0:
        fields["directories"] = [node.directory_id]
    return [
        encode_value("PartitionRecord", {**fields, "partitionId": number, "leaderEpoch": epoch}, version=version)
        for number, epoch in leader_epochs.items()
    ]


def next_epoch_records(image: MetadataImage, node_id: int) -> list[bytes]:
    """Return the records that make the node leader of each partition anew, in the next epoch (`electLeader`)."""
    version = _partition_record_version(image)
    return [
        encode_value(
            "PartitionChangeRecord",
            {"partitionId": number, "topicId": topic.topic_id, "leader": node_id},
            version=version,
        )
        for topic in image.topics.values()
        for number in topic.partitions
    ]


def topic_of(image: MetadataImage, name: str) -> TopicImage:
    """Return a topic; raises UnknownTopicOrPartitionError."""
    topic = image.topics.get(name)
    if topic is None:
        raise unknown_topic(name)
    return topic


def unknown_topic(name: str) -> UnknownTopicOrPartitionError:
    """Return the error for a topic or partition that does not exist."""
    return UnknownTopicOrPartitionError("This server does not host this topic-partition.", found=name)


def require_valid_name(name: str) -> None:
    """Raise InvalidTopicError for a name that no topic may have (`Topic.validate`)."""
    problem = None
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        problem = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not re.fullmatch("[a-zA-Z0-9._-]+", name):
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if problem is not None:
        raise InvalidTopicError(f"Topic name is invalid: {problem}")


def _require_no_collision(image: MetadataImage, name: str) -> None:
    """Raise for a name that differs from another only in dots and underscores, which metrics cannot distinguish."""
    if "." not in name and "_" not in name:
        return
    unified = name.replace(".", "_")
    for other in image.topics:
        if other != name and other.replace(".", "_") == unified:
            raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")


def _partition_record_version(image: MetadataImage) -> int:
    """Return the version of records of partitions: 1 may have directories, 2 eligible leaders too."""
    level = image.features.get(METADATA_VERSION, 0)
    return (level >= _DIRECTORY_METADATA_VERSION) + (level >= _ELR_METADATA_VERSION)
