"""Checkpoints and topic ids of a data directory, beside its partitions (`LogManager`, KIP-516)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...config.kafka_version import METADATA_VERSION
from ...disk.directory import DataDirectoryFiles, PartitionFiles
from ...disk.names import child, file_name
from ...disk.side_files import read_offset_checkpoint, read_partition_metadata
from ...errors import CheckpointFormatError, DataDirectoryError, LogstoreError
from ...layout import clean_shutdown, meta_properties, offset_checkpoint, partition_metadata
from ...layout.file_names import (
    METADATA_TOPIC,
    DirectoryKind,
    PartitionDirectory,
    directory_name,
    parse_partition_directory,
)
from ...layout.meta_properties import MetaProperties
from ...replay.directory_fates import Fate, directory_fates
from ...replay.metadata_image import MetadataImage
from ..cluster import Cluster, Known
from ..finding import Breach, Broken, Where
from ..log_pass import PassSize
from ..partition import SET_ASIDE, Partition, unless_gone
from .startup_files import startup_breaches

_OF_EACH_LOG = (offset_checkpoint.RECOVERY_POINT_FILE_NAME, offset_checkpoint.HIGH_WATERMARK_FILE_NAME)
_WRITTEN_ON_CLOSE = (offset_checkpoint.RECOVERY_POINT_FILE_NAME, offset_checkpoint.LOG_START_OFFSET_FILE_NAME)


class CheckpointedLog(NamedTuple):
    """A log's start and end offset.

    Attributes:
        is_open: a broker may be writing, so that a checkpoint may be older or newer than the log as it was read.
        is_of_first_life: see `Evidence.is_of_first_life`.
    """

    start: int
    end: int
    is_open: bool
    is_of_first_life: bool


class CheckpointEntry(NamedTuple):
    """An entry of an offset checkpoint.

    Attributes:
        has_directory: the partition has a directory, or may have had one a moment ago.
        log: the partition's log; None if it could not be read to its end.
        is_in_cluster: whether the cluster has the partition.
    """

    where: Where
    offset: int
    has_directory: bool
    log: CheckpointedLog | None
    is_in_cluster: Known

    @property
    def is_at_end(self) -> bool:
        """Whether it must be the end of the log.

        A clean shutdown flushes a log to its end. What one broker wrote in its first life is replicated to the end; a
        later one starts with the offset that was in the checkpoint, and may be stopped before it leads again.
        """
        name = file_name(str(self.where.path))
        if self.log is None or self.log.is_open:
            return False
        is_replicated = name == offset_checkpoint.HIGH_WATERMARK_FILE_NAME and self.log.is_of_first_life
        return is_replicated or name == offset_checkpoint.RECOVERY_POINT_FILE_NAME


class Surrounding:
    """Files around the partitions of a data directory, which was listed before they were read.

    Attributes:
        entries: of offset checkpoints.
        left_out: where an entry is missing, with what it should be; a broker that did not load all of its logs before
            it was stopped leaves out the others, but not in its first life.
        ids: of each partition whose topic exists: the place, the topic's id there (None without
            `partition.metadata`), the right id, and the path that says so. An empty log may have no id: the file is
            written before the first record (`LogManager.isStrayReplica`).
        twice: places of directories whose partition has another one, with what becomes of them.
        unknown: places of partitions that the cluster does not have.
        newer: closed logs with a producer id that the metadata log does not know yet.
        is_without_level: the metadata log has records, and none of `metadata.version`.
        foreign_ids: ids in `meta.properties` that the cluster's metadata contradicts.
        unreadable: files that do not parse, or do not belong there.
    """

    def __init__(
        self, directory: DataDirectoryFiles, passes: Iterable[tuple[Partition, PassSize]], cluster: Cluster
    ) -> None:
        """Read the files; `passes` are the partitions, each with the size of its log."""
        self.entries: list[CheckpointEntry] = []
        self.left_out: list[tuple[Where, str]] = []
        self.ids: list[tuple[Where, str | None, str, str]] = []
        self.unreadable: list[Breach] = []
        path = directory.path
        self.identity_path = child(path, meta_properties.FILE_NAME)
        self.foreign_ids = list(self._foreign_ids(cluster))
        self.is_without_level = self._is_without_level(cluster.image)
        self.metadata_path = child(path, directory_name(METADATA_TOPIC, 0))
        self.unreadable += [entry_breach(error, directory.path) for error in directory.errors]
        self.unreadable += [*startup_breaches(directory), *cluster.newer]
        is_closed = clean_shutdown.FILE_NAME in directory.files
        is_brokers = isinstance(cluster.identity, MetaProperties)
        passes = list(passes)
        self.newer = [found for one, size in passes for found in _newer(one, size, cluster)]
        self._empty = {one.files.path for one, size in passes if size.log_end_offset == one.base_offset}
        logs = {
            one.key: CheckpointedLog(
                one.base_offset,
                size.log_end_offset,
                not one.surroundings.was_closed,
                one.surroundings.was_closed and cluster.has_one_life,
            )
            for one, size in passes
            if one.is_live and size.is_end_known
        }
        known = {one.key for one in directory.partitions} | set(_refused(directory.errors))
        for name in offset_checkpoint.FILE_NAMES:
            # this one is written every few seconds, the others before the directory of a deleted partition is removed
            is_behind = name == offset_checkpoint.HIGH_WATERMARK_FILE_NAME and not is_closed
            self._read_checkpoint(directory.files.get(name), None if is_behind else known, logs, cluster)
            if is_closed and name in _WRITTEN_ON_CLOSE and name not in directory.files and is_brokers:
                breach = Where(child(path, name)), "a checkpoint, which a clean shutdown writes", "none"
                self.unreadable.append(Breach("checkpoint-format", breach))
        self.twice = self._find_twice(directory.partitions, cluster.image)
        topics = cluster.image.topics
        ids = {name: (topic.topic_id, METADATA_TOPIC) for name, topic in topics.items()}
        ids[METADATA_TOPIC] = partition_metadata.METADATA_TOPIC_ID, "every cluster has"
        live = [files for files in directory.partitions if files.kind is DirectoryKind.LIVE]
        self.unknown = [Where(one.path, *one.key) for one in live if cluster.has_partition(*one.key) is Known.NO]
        # a topic that was made again a moment ago may still have the directories of the one before
        recent = {name for name, topic in topics.items() if topic.created_ms > cluster.settled_ms}
        for files in directory.partitions:
            if files.kind in SET_ASIDE or files.topic not in recent:
                self._read_topic_id(files, ids)

    def _read_checkpoint(
        self,
        path: str | None,
        known: set[tuple[str, int]] | None,
        logs: dict[tuple[str, int], CheckpointedLog],
        cluster: Cluster,
    ) -> None:
        if path is None:
            return
        try:
            offsets = unless_gone(read_offset_checkpoint, path) or {}
        except (CheckpointFormatError, DataDirectoryError) as error:
            self.unreadable.append(Breach.of("checkpoint-format", Where(path), error, "topics, partitions and offsets"))
            return
        self.entries += [
            CheckpointEntry(
                Where(path, *key, offset=offset),
                offset,
                known is None or key in known,
                logs.get(key),
                cluster.has_partition(*key),
            )
            for key, offset in offsets.items()
        ]
        if file_name(path) in _OF_EACH_LOG:
            self.left_out += [
                (Where(path, *key), f"offset {log.end}, where the log was closed")
                for key, log in logs.items()
                if log.is_of_first_life and log.end > log.start and key not in offsets
                if cluster.has_partition(*key) is Known.YES
            ]

    @staticmethod
    def _is_without_level(image: MetadataImage) -> bool:
        has_records = bool(image.topics or image.brokers or image.configs)
        return has_records and not image.is_partial and METADATA_VERSION not in image.features

    def _foreign_ids(self, cluster: Cluster) -> Iterator[Broken]:
        """Compare the directory's identity with the broker's registration in the metadata log."""
        image, identity, where = cluster.image, cluster.identity, Where(self.identity_path)
        if image.is_partial:
            return
        if not isinstance(identity, MetaProperties):
            self.unreadable.append(Breach.of("meta-properties", where, identity, "ids of cluster, node and directory"))
            return
        broker = image.brokers.get(identity.node_id) if identity.node_id is not None else None
        if broker is None and image.brokers and image.topics:
            yield where, f"a node id of {', '.join(map(str, sorted(image.brokers)))}", identity.node_id
        elif broker is not None and broker.directories and identity.directory_id not in broker.directories:
            yield where, f"a directory id of {', '.join(broker.directories)}", identity.directory_id

    @staticmethod
    def _find_twice(partitions: Iterable[PartitionFiles], image: MetadataImage) -> list[tuple[Where, Fate]]:
        if image.is_partial:
            return []
        named = [(PartitionDirectory(one.topic, one.partition, one.kind), one.path) for one in partitions]
        fates = [one for one in directory_fates(named, image) if one.fate in (Fate.TWICE, Fate.BESIDE_CURRENT)]
        return [(Where(one.path, *one.key), one.fate) for one in fates]

    def _read_topic_id(self, files: PartitionFiles, ids: dict[str, tuple[str, str]]) -> None:
        """Compare ids: all partitions of a topic have one; a stray one may be of an earlier topic of the name."""
        path = files.files.get(partition_metadata.FILE_NAME)
        where = Where(path or files.path, files.topic, files.partition)
        try:
            metadata = unless_gone(read_partition_metadata, path)
        except (CheckpointFormatError, DataDirectoryError) as error:
            self.unreadable.append(Breach.of("partition-metadata", where, error, "a version and a topic id"))
            return
        topic_id = None if metadata is None else metadata.topic_id
        # a broker that starts writes that of the metadata log anew
        is_written_anew = topic_id is None and (files.path in self._empty or files.topic == METADATA_TOPIC)
        if files.kind in SET_ASIDE or is_written_anew:
            return
        if topic_id is not None and path is not None:
            ids.setdefault(files.topic, (topic_id, path))
        self.ids.append((where, topic_id, *ids.get(files.topic, ("", ""))))


def entry_breach(error: LogstoreError, path: str) -> Breach:
    """Make the breach of an entry of a data directory that cannot be listed; `path` is for an error without one."""
    where = Where(path if error.path is None else str(error.path))
    return Breach.of("directory-entry", where, error, "only directories of partitions")


def _newer(partition: Partition, size: PassSize, cluster: Cluster) -> Iterator[Broken]:
    """Find a producer id of no block yet; only a broker that is alone has each block on record before it uses it."""
    following, is_judged = cluster.image.next_producer_id, partition.surroundings.was_closed and partition.is_live
    if is_judged and cluster.is_alone is Known.YES and size.producer_id >= following >= 0:
        yield partition.where(), f"producer ids below {following}, the next block", f"producer {size.producer_id}"


def _refused(errors: Iterable[LogstoreError]) -> Iterator[tuple[str, int]]:
    """Yield topic and number of partitions whose directories cannot be listed."""
    for error in errors:
        cause = error.__cause__
        name = parse_partition_directory(file_name(str(cause.filename))) if isinstance(cause, OSError) else None
        if name is not None:
            yield name.topic, name.partition
