"""Changes of topics: first the records, then the directories.

In Kafka the controller writes the records, and a broker follows them as far as it can, again when it starts. Here the
caller learns whether the change was made; what a failure left undone is done when a partition is asked for, or by the
next opening.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...config.broker import BrokerConfig, topic_defaults
from ...config.kafka_version import RAFT_VERSION
from ...config.topic import LogConfig, parse_config
from ...errors import LogstoreError, UsageError
from ...layout.kafka_uuid import random_uuid
from ...layout.offset_checkpoint import LOG_START_OFFSET_FILE_NAME, RECOVERY_POINT_FILE_NAME
from ...model import TopicPartition
from ...replay.metadata_image import MetadataImage, TopicImage
from ..partitions import Partitions, WantedPartition
from .batches import voter_fields
from .features import raised_levels, raising_records
from .log import MetadataLog
from .topic_configs import broker_defaults, topic_config
from .topics import (
    NodeDirectory,
    TopicDescription,
    add_partitions_records,
    alter_config_records,
    create_topic_records,
    delete_topic_records,
    describe,
    topic_of,
)

_LOGGER = logging.getLogger("logstore")


class TopicChanges:
    """Changes of the topics of a store, under its lock.

    Attributes:
        is_whole: the last change was made to its end, or undone; else see `follow_metadata`.
    """

    def __init__(
        self, metadata: MetadataLog, partitions: Partitions, node: NodeDirectory, config: BrokerConfig
    ) -> None:
        self._metadata, self._partitions, self._node, self._config = metadata, partitions, node, config
        self.is_whole = True
        self._described: tuple[int, Mapping[str, TopicDescription]] = -1, {}

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics by name, as of the last change; needs no lock."""
        change_count, topics = self._described
        if change_count != self._metadata.change_count:
            change_count, image = self._metadata.change_count, self._metadata.image
            topics = MappingProxyType({topic.name: describe(image, topic) for topic in list(image.topics.values())})
            self._described = change_count, topics
        return topics

    def follow_metadata(self) -> None:
        """After a change that was cut off, keep the partitions that the metadata log has, as an opening does."""
        if self.is_whole:
            return
        self._metadata.reload_if_cut_off()
        wanted = wanted_partitions(self._metadata.image, self._node.node_id, self._config)
        error = self._noted(self._partitions.keep_only(wanted))
        if error is not None:
            _LOGGER.warning("what is left of a deleted topic goes when the store is opened anew: %s", error)
        self.is_whole = True

    def create(self, name: str, partition_count: int | None, config: Mapping[str, Any]) -> None:
        """See `Store.create_topic`; a topic whose partitions cannot be made is removed again."""
        count = self._config["num.partitions"] if partition_count is None else partition_count
        image, node = self._metadata.image, self._node
        values = create_topic_records(image, node, name, random_uuid(), count, config, defaults=self._defaults)
        self.is_whole = False
        with self._partitions.changing():  # the metadata has the topic before its partitions can be opened
            self._metadata.append(values)
            try:
                self._partitions.open_all(self._wanted(name))
            except BaseException as error:
                self._take_back(name, error)
                raise
        self.is_whole = True

    def delete(self, name: str) -> LogstoreError | None:
        """See `Store.delete_topic`; return the error if a directory or checkpoint could not be removed."""
        image = self._metadata.image
        values = delete_topic_records(image, name)
        delay_ms, keys = self._effective_config(name)["file.delete.delay.ms"], _keys(image, name)
        self.is_whole = False
        self._metadata.append(values)
        error = self._noted(self._partitions.put_aside(keys, delay_ms))
        self.is_whole = True
        # without the deleted topic: a new one of its name must not start at its offsets
        try:
            for checkpoint in (RECOVERY_POINT_FILE_NAME, LOG_START_OFFSET_FILE_NAME):
                self._partitions.checkpoints.write(checkpoint, self._partitions.all)
        except LogstoreError as another:
            error = error or another
        if error is not None:
            error.add_note(f"topic {name} is deleted; what is left of it goes when the store is opened anew")
        return error

    def add_partitions(self, name: str, partition_count: int) -> LogstoreError | None:
        """See `Store.add_partitions`; return the error if some could not be created; they are when first asked for."""
        values = add_partitions_records(self._metadata.image, self._node, name, partition_count)
        count = len(self._wanted(name))
        self.is_whole = False
        failure = None
        with self._partitions.changing():
            self._metadata.append(values)
            try:
                self._partitions.open_all(self._wanted(name)[count:])
            except LogstoreError as error:
                self._partitions.update(self._wanted(name))
                error.add_note(
                    f"topic {name} has its partitions; each is made when it is asked for, or by the next opening"
                )
                failure = error
        self.is_whole = True
        return failure

    def alter_config(self, name: str, changes: Mapping[str, Any]) -> None:
        """See `Store.alter_config`."""
        values = alter_config_records(self._metadata.image, name, changes, defaults=self._defaults)
        if values:
            self.is_whole = False
            self._metadata.append(values)
            self._partitions.update(self._wanted(name))
            self.is_whole = True

    def raise_levels(self, wanted: Mapping[str, int], *, dry_run: bool) -> dict[str, int]:
        """See `Store.update_features`."""
        node_id, directory_id = self._node
        metadata, image = self._metadata, self._metadata.image
        levels = raised_levels(metadata.levels, wanted, node_id)
        if dry_run or not levels:
            return levels
        self.is_whole = False
        metadata.lead()
        if levels.keys() - {RAFT_VERSION}:
            min_isr = topic_defaults(self._config).get("min.insync.replicas", "1")
            metadata.append(raising_records(image, levels, self._node, metadata.next_offset, min_isr))
        if RAFT_VERSION in levels:
            metadata.make_quorum_dynamic(voter_fields(node_id, directory_id))
        self._partitions.update(wanted_partitions(metadata.image, node_id, self._config))
        self.is_whole = True
        return levels

    def _noted(self, error: LogstoreError | None) -> LogstoreError | None:
        """Return the error; after one the records that remove topics stay, by which the next opening finishes."""
        if error is not None:
            self._metadata.takes_snapshots = False
        return error

    @property
    def _defaults(self) -> dict[str, str]:
        return broker_defaults(self._metadata.image, self._node.node_id, self._config)

    def _effective_config(self, name: str) -> LogConfig:
        return topic_config(self._metadata.image, name, self._defaults)

    def _wanted(self, name: str) -> list[WantedPartition]:
        return _wanted(topic_of(self._metadata.image, name), self._effective_config(name))

    def _take_back(self, name: str, error: BaseException) -> None:
        """Remove a topic that could not be created; if that fails too, the next opening creates or removes it."""
        keys = _keys(self._metadata.image, name)
        try:
            self._metadata.append(delete_topic_records(self._metadata.image, name))
        except LogstoreError as another:
            error.add_note(f"topic {name} is in the metadata log, and is completed by the next opening: {another}")
            return
        failure = self._noted(self._partitions.put_aside(keys))
        self.is_whole = True
        if failure is not None:
            error.add_note(f"what there is of topic {name} goes when the store is opened anew: {failure}")


def wanted_partitions(image: MetadataImage, node_id: int, config: BrokerConfig) -> list[WantedPartition]:
    """Return all partitions of the metadata, as they must be opened.

    Raises UsageError for a topic with a configuration with which no broker of this version starts.
    """
    wanted, defaults = [], broker_defaults(image, node_id, config)
    for name, topic in image.topics.items():
        try:
            wanted += _wanted(topic, topic_config(image, name, defaults))
        except UsageError as error:
            parse_config(defaults)  # raises what is wrong with all topics
            error.found = f"topic {name}"
            error.advice = "change it with the Kafka that set it: no broker of this version starts with it either"
            raise
    return wanted


def _wanted(topic: TopicImage, config: LogConfig) -> list[WantedPartition]:
    return [
        WantedPartition(TopicPartition(topic.name, number), topic.topic_id, config, partition.leader_epoch)
        for number, partition in sorted(topic.partitions.items())
    ]


def _keys(image: MetadataImage, name: str) -> list[TopicPartition]:
    return [TopicPartition(name, number) for number in topic_of(image, name).partitions]
