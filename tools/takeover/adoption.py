"""Adoption of a directory of partitions: a metadata log for it, so that it can be opened as a store.

The partitions were copied, restored or salvaged without the metadata of their cluster. Topics keep the ids of
`partition.metadata`; their configurations are unknown, except those of Kafka's internal topics, so all others keep
their records for ever (`AdoptedTopic.config`). Leader epochs and producer ids go on above the highest in the logs
(`HighestInLogs`). The epochs of the transaction coordinator's partitions also go on above the highest of all markers,
as a partition refuses markers of an earlier epoch (TRANSACTION_COORDINATOR_FENCED), and those of any partition above
what groups have committed, as the records of that epoch may be lost (KIP-320).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from logstore.config.broker import parse_broker_config
from logstore.config.kafka_version import OF_NEW_STORES
from logstore.disk.directory import partition_directories
from logstore.disk.lock import DataDirectoryLock
from logstore.disk.names import absolute_path, child
from logstore.disk.seam import Seam
from logstore.disk.side_files import topic_id_of
from logstore.errors import (
    CheckpointFormatError,
    DataDirectoryError,
    InconsistentTopicIdError,
    InvalidTopicError,
)
from logstore.layout import meta_properties, partition_metadata
from logstore.layout.file_names import METADATA_TOPIC, DirectoryKind
from logstore.layout.kafka_uuid import random_uuid
from logstore.layout.meta_properties import MetaProperties
from logstore.log.maintain.retain import RETENTION_MS
from logstore.replay.metadata_image import TOPIC_RESOURCE, MetadataImage, PartitionImage, TopicImage
from logstore.replay.metadata_state import MetadataState, read_metadata
from logstore.store.checkpoints import take_clean_shutdown
from logstore.store.directories import require_kafkas_name
from logstore.store.internal_topic import internal_config
from logstore.store.metadata.log import DIRECTORY_NAME, MetadataLog
from logstore.store.metadata.suitability import require_suitable
from logstore.store.metadata.topic_configs import config_records
from logstore.store.metadata.topics import NodeDirectory, partition_records, require_valid_name
from logstore.store.opening.formatting import NODE_ID, owner, write_bootstrap, write_properties
from logstore.store.opening.registration import begin, require_known_bootstrap
from logstore.topics import consumer_offsets, transaction_state
from logstore.topics.cluster_metadata import encode_value

from .highest_in_logs import HighestInLogs

Directories = Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class AdoptedTopic:
    """A topic, known from the `paths` of its partitions, by number; the id is None if no directory has it."""

    name: str
    topic_id: str | None
    paths: Mapping[int, str]

    @property
    def partition_count(self) -> int:
        return max(self.paths) + 1

    @property
    def config(self) -> dict[str, str]:
        """The configuration that it gets: Kafka's for an internal topic; any other keeps everything.

        Nobody knows the configuration that it had. It may have been compacted, or kept for ever, and by the default of
        a week most records of a backup would be deleted at once.
        """
        return internal_config(self.name, parse_broker_config({})) or {RETENTION_MS: "-1"}


def adoptable_topics(path: str, image: MetadataImage) -> list[AdoptedTopic]:
    """Return the topics of the directories at `path` that the metadata does not have, ordered by name.

    Raises:
        InconsistentTopicIdError: partitions of one topic have different ids, or two topics have one.
        InvalidTopicError: a name that no topic may have.
        LogstoreError: as `live_partitions`.
    """
    by_topic: dict[str, dict[int, str]] = {}
    for (topic, partition), directory in sorted(_adoptable_partitions(path).items()):
        if topic not in image.topics and _id_or_none(directory) not in image.removed_topic_ids:
            try:
                require_valid_name(topic)
            except InvalidTopicError as error:
                error.path, error.advice = directory, "rename the directory, or move it away"
                raise
            by_topic.setdefault(topic, {})[partition] = directory
    topics = [AdoptedTopic(topic, _common_id(topic, paths), paths) for topic, paths in by_topic.items()]
    _require_different_ids(topics, image)
    return topics


def plan_adoption(path: str) -> tuple[MetadataState, list[AdoptedTopic]]:
    """Return what `adopt` would make of the directory at `path`: its metadata as it would be, and the new topics in it.

    Raises:
        DataDirectoryError: the metadata log is not of one node alone.
        LogstoreError: as `adoptable_topics`; or the metadata log cannot be read.
    """
    directory = child(path, DIRECTORY_NAME)
    state = read_metadata(directory) if os.path.isdir(directory) else MetadataState()
    topics, node = adoptable_topics(path, state.image), _node_in(state)
    if node is None:
        node = NodeDirectory(NODE_ID, "")
    else:
        require_suitable(state, directory, node, has_partitions=False)
    for topic in topics:
        image = TopicImage(topic.name, topic.topic_id or f"of {topic.name}")
        replicas = PartitionImage((node.node_id,), (node.node_id,), (node.directory_id,), node.node_id, 0)
        image.partitions = dict.fromkeys(range(topic.partition_count), replicas)
        state.image.topics[topic.name] = state.image.topics_by_id[image.topic_id] = image
        state.image.configs[TOPIC_RESOURCE, topic.name] = topic.config
    return state, topics


def adopt(path: str, *, seam: Seam, now_ms: Callable[[], int]) -> None:
    """Make a store of a directory of partitions without owner; the partitions stay as they are.

    A metadata log of an interrupted adoption or of a lost owner is continued. A mark of a clean shutdown is removed:
    nobody knows whether it is of these partitions.

    Raises:
        DataDirectoryError: it has an owner or nothing to adopt, another process has its lock, or a file cannot be read
            or written.
        LogstoreError: as `adoptable_topics`; or something cannot be read.
    """
    path = absolute_path(path)
    if not _adoptable_partitions(path) and not os.path.isdir(child(path, DIRECTORY_NAME)):
        raise DataDirectoryError("There is no partition to adopt", path=path, advice="logstore.open makes a new store")
    lock = DataDirectoryLock(path)
    try:
        if owner(path) is not None:
            raise DataDirectoryError("The directory has an owner already", path=path, advice="open it")
        require_known_bootstrap(path)
        state, topics = plan_adoption(path)
        highest = _highest_in_logs(path, state.image)
        take_clean_shutdown(seam, path)
        node = _node_in(state)
        if node is None:
            node = NodeDirectory(NODE_ID, random_uuid())
            if not state.bootstrap:
                write_bootstrap(seam, path, node, now_ms(), OF_NEW_STORES)
        metadata = MetadataLog(path, node, seam, now_ms, has_partitions=False)
        try:
            begin(path, metadata, node)
            for topic in topics:
                if topic.name in metadata.image.topics:
                    continue
                metadata.append(_records(metadata.image, node, topic, highest[topic.name].leader_epochs))
            metadata.skip_producer_ids(max((known.producer_id for known in highest.values()), default=-1))
        finally:
            metadata.close()
        write_properties(seam, path, MetaProperties(1, random_uuid(), node.node_id, node.directory_id), now_ms())
    finally:
        lock.release()


def live_partitions(path: str) -> Directories:
    """Return the directories of partitions, except the metadata log and those set aside."""
    found = {}
    for name, directory in partition_directories(path):
        if name.kind is DirectoryKind.LIVE and name.topic != METADATA_TOPIC:
            require_kafkas_name(name, directory)
            found[name.topic, name.partition] = directory
    return found


def _adoptable_partitions(path: str) -> Directories:
    """Return the directories of partitions, also of those that were moving here and are nowhere else."""
    moving = {
        (name.topic, name.partition): directory
        for name, directory in partition_directories(path)
        if name.kind is DirectoryKind.FUTURE and name.topic != METADATA_TOPIC and _id_or_none(directory) is not None
    }
    return moving | dict(live_partitions(path))


def _node_in(state: MetadataState) -> NodeDirectory | None:
    """Return the node and directory of the only voter of the metadata log, or of its only broker; None without one."""
    if len(state.voters) == 1:
        return NodeDirectory(state.voters[0]["voterId"], state.voters[0]["voterDirectoryId"])
    directories = [
        NodeDirectory(node_id, directory_id)
        for node_id, broker in state.image.brokers.items()
        for directory_id in broker.directories
    ]
    if len(directories) == 1 and len(state.image.brokers) == 1:
        return directories[0]
    if state.next_offset > 0 and state.image.brokers:
        raise DataDirectoryError(
            "The metadata log does not say which node and directory this was",
            expected="one broker with one directory",
            found=f"brokers {', '.join(map(str, sorted(state.image.brokers)))} with {len(directories)} directories",
            advice=f"put {meta_properties.FILE_NAME} back; or move {DIRECTORY_NAME} away, so that a new one is made",
        )
    return None


def _highest_in_logs(path: str, image: MetadataImage) -> dict[str, HighestInLogs]:
    """Return the highest epochs and producer ids by topic, for topics that the metadata has, or is going to have."""
    paths: dict[str, dict[int, str]] = {}
    for (topic, number), directory in _adoptable_partitions(path).items():
        if topic in image.topics and number in image.topics[topic].partitions:
            paths.setdefault(topic, {})[number] = directory
    found = {
        name: HighestInLogs.of(name, len(image.topics[name].partitions), by_number) for name, by_number in paths.items()
    }
    if transaction_state.TOPIC in found:
        found[transaction_state.TOPIC].raise_epochs(max(known.coordinator_epoch for known in found.values()))
    if consumer_offsets.TOPIC in found:  # what groups have read of an epoch may be lost
        for (topic, number), epoch in found[consumer_offsets.TOPIC].committed_epochs.items():
            if topic in found and (known := found[topic].leader_epochs.get(number)) is not None:
                found[topic].leader_epochs[number] = max(epoch, known)
    return found


def _records(
    image: MetadataImage, node: NodeDirectory, topic: AdoptedTopic, leader_epochs: Mapping[int, int]
) -> list[bytes]:
    topic_id = topic.topic_id or random_uuid()
    return [
        encode_value("TopicRecord", {"name": topic.name, "topicId": topic_id}),
        *config_records(image, topic.name, topic.config),
        *partition_records(image, node, topic_id, leader_epochs),
    ]


def _common_id(topic: str, paths: Mapping[int, str]) -> str | None:
    ids = {topic_id for path in paths.values() if (topic_id := _id_or_none(path)) is not None}
    if len(ids) > 1:
        raise InconsistentTopicIdError(
            f"The partitions of topic {topic} say that they are of different topics",
            path=paths[min(paths)],
            expected="one topic id in every partition.metadata",
            found=", ".join(sorted(ids)),
            advice="move away those that do not belong together",
        )
    return next(iter(ids), None)


def _id_or_none(path: str) -> str | None:
    """Return the topic id in the directory at `path`; None without one, or if the file does not parse."""
    try:
        return topic_id_of(path)
    except CheckpointFormatError:
        return None


def _require_different_ids(topics: Sequence[AdoptedTopic], image: MetadataImage) -> None:
    """Raise InconsistentTopicIdError if a topic has the id of another one: a broker serves one of them only."""
    by_id = {topic_id: topic.name for topic_id, topic in image.topics_by_id.items()}
    for topic in topics:
        other = by_id.setdefault(topic.topic_id, topic.name) if topic.topic_id is not None else topic.name
        if other != topic.name:
            raise InconsistentTopicIdError(
                f"Topics {other} and {topic.name} have the same id",
                path=topic.paths[min(topic.paths)],
                expected="an id of its own for each topic",
                found=topic.topic_id,
                advice=f"move the copy away; or delete {partition_metadata.FILE_NAME} in each of its directories, so "
                "that it gets an id of its own",
            )
