"""Adoption of a directory of partitions: a metadata log for it, so that it can be opened as a store.

The partitions were copied, restored or salvaged without the metadata of their cluster. Topics keep the ids of
`partition.metadata`; their configurations are unknown, except those of Kafka's internal topics. Leader epochs and
producer ids go on above the highest in the logs (`HighestInLogs`). The epochs of the transaction coordinator's
partitions also go on above the highest of all markers, as a partition refuses markers of an earlier epoch
(TRANSACTION_COORDINATOR_FENCED).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray
from ...columns.window_scan import scan_windows
from ...disk.directory import list_partition_directory, partition_directories
from ...disk.lock import DataDirectoryLock
from ...disk.mapped import MappedFile
from ...disk.names import absolute_path, child
from ...disk.seam import Seam
from ...disk.side_files import read_producer_snapshot, topic_id_of
from ...errors import CorruptSnapshotError, DataDirectoryError, InconsistentTopicIdError, LogstoreError
from ...folds.transaction_marker import read_marker
from ...kernels.scan import batches as fields
from ...layout.batch import CODEC_MASK, NO_PRODUCER_ID
from ...layout.file_names import METADATA_TOPIC, DirectoryKind
from ...layout.kafka_uuid import random_uuid
from ...layout.marker import COORDINATOR_EPOCH, MARKER_SIZE
from ...layout.meta_properties import MetaProperties
from ...topics import transaction_state
from ...topics.cluster_metadata import encode_value
from ...view.metadata_image import MetadataImage
from ...view.metadata_replay import read_metadata
from ...view.replay import ReplayedRecord, replayed_file
from ..broker_config import parse_broker_config
from ..internal_topic import internal_config
from ..metadata.log import DIRECTORY_NAME, MetadataLog
from ..metadata.topic_configs import config_records
from ..metadata.topics import NodeDirectory, partition_records, require_valid_name
from .formatting import NODE_ID, owner, write_bootstrap, write_properties
from .registration import begin

NO_COORDINATOR_EPOCH = -1
_EPOCH_SIZE = 4  # bytes

Directories = Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class AdoptedTopic:
    """A topic, known from the directories of its partitions.

    Attributes:
        topic_id: None if no directory has it.
        paths: of existing partitions, by number.
    """

    name: str
    topic_id: str | None
    paths: Mapping[int, str]

    @property
    def partition_count(self) -> int:
        """The number of partitions up to the highest existing one."""
        return max(self.paths) + 1

    @property
    def missing(self) -> list[int]:
        """Partitions below that which do not exist, and begin empty."""
        return [number for number in range(self.partition_count) if number not in self.paths]


def adoptable_topics(directories: Directories) -> list[AdoptedTopic]:
    """Return the topics of these directories, ordered by name.

    Raises:
        InconsistentTopicIdError: partitions of one topic have different ids.
        InvalidTopicError: a name that no topic may have.
        CheckpointFormatError: a `partition.metadata` does not parse.
    """
    by_topic: dict[str, dict[int, str]] = {}
    for (topic, partition), path in sorted(directories.items()):
        require_valid_name(topic)
        by_topic.setdefault(topic, {})[partition] = path
    return [AdoptedTopic(topic, _common_id(topic, paths), paths) for topic, paths in by_topic.items()]


def adopt(path: str, *, seam: Seam, now_ms: Callable[[], int]) -> None:
    """Make a store of a directory of partitions without owner; the partitions stay as they are.

    A metadata log of an interrupted adoption or of a lost owner is continued.

    Raises:
        DataDirectoryError: it has an owner or nothing to adopt, another process has its lock, or a file cannot be read
            or written.
        LogstoreError: as `adoptable_topics`; or something cannot be read.
    """
    path = absolute_path(path)
    if not live_partitions(path) and not os.path.isdir(child(path, DIRECTORY_NAME)):
        raise DataDirectoryError("There is no partition to adopt", path=path, advice="logstore.open makes a new store")
    lock = DataDirectoryLock(path)
    try:
        if owner(path) is not None:
            raise DataDirectoryError("The directory has an owner already", path=path, advice="open it")
        topics = adoptable_topics(live_partitions(path))
        found = {topic.name: HighestInLogs.of(topic.name, topic.partition_count, topic.paths) for topic in topics}
        if transaction_state.TOPIC in found:
            found[transaction_state.TOPIC].raise_epochs(max(one.coordinator_epoch for one in found.values()))
        place = _voter(path)
        if place is None:
            place = NodeDirectory(NODE_ID, random_uuid())
            write_bootstrap(seam, path, place, now_ms())
        metadata = MetadataLog(path, place.node_id, seam, now_ms)
        try:
            metadata.require_suitable(place, has_partitions=False)
            begin(path, metadata, place)
            for topic in topics:
                if topic.name not in metadata.image.topics:
                    metadata.append(_records(metadata.image, place, topic, found[topic.name].leader_epochs))
            metadata.skip_producer_ids(max((one.producer_id for one in found.values()), default=-1))
        finally:
            metadata.close()
        write_properties(seam, path, MetaProperties(1, random_uuid(), place.node_id, place.directory_id), now_ms())
    finally:
        lock.release()


def live_partitions(path: str) -> Directories:
    """Return the directories of partitions, except the metadata log and those set aside."""
    return {
        (name.topic, name.partition): place
        for name, place in partition_directories(path)
        if name.kind is DirectoryKind.LIVE and name.topic != METADATA_TOPIC
    }


def _voter(path: str) -> NodeDirectory | None:
    """Return the only voter of the metadata log; None without one."""
    directory = child(path, DIRECTORY_NAME)
    if not os.path.isdir(directory):
        return None
    voters = read_metadata(directory).voters
    return NodeDirectory(voters[0]["voterId"], voters[0]["voterDirectoryId"]) if len(voters) == 1 else None


def _records(
    image: MetadataImage, place: NodeDirectory, topic: AdoptedTopic, leader_epochs: Mapping[int, int]
) -> list[bytes]:
    topic_id = topic.topic_id or random_uuid()
    return [
        encode_value("TopicRecord", {"name": topic.name, "topicId": topic_id}),
        *config_records(image, topic.name, internal_config(topic.name, parse_broker_config({}))),
        *partition_records(image, place, topic_id, leader_epochs),
    ]


def _common_id(topic: str, paths: Mapping[int, str]) -> str | None:
    ids = {topic_id for path in paths.values() if (topic_id := topic_id_of(path)) is not None}
    if len(ids) > 1:
        raise InconsistentTopicIdError(
            f"The partitions of topic {topic} say that they are of different topics",
            path=paths[min(paths)],
            expected="one topic id in every partition.metadata",
            found=", ".join(sorted(ids)),
            advice="move away those that do not belong together",
        )
    return next(iter(ids), None)


@dataclass(slots=True)
class HighestInLogs:
    """The highest epochs and producer id in the logs and producer snapshots of a topic.

    Attributes:
        leader_epochs: by partition.
        coordinator_epoch: of markers; -1 without any.
        producer_id: -1 without any.
    """

    leader_epochs: dict[int, int]
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    producer_id: int = NO_PRODUCER_ID

    @classmethod
    def of(cls, topic: str, partition_count: int, paths: Mapping[int, str]) -> HighestInLogs:
        """Read the partitions at these paths, by number; the others get epoch 0.

        Raises:
            LogstoreError: a log that cannot be read.
        """
        found = cls(dict.fromkeys(range(partition_count), 0))
        for number, path in paths.items():
            files = list_partition_directory(path)
            for segment in files.segments:
                with MappedFile(segment.log) as log:
                    found._take_batches(number, log.data, segment.log)
                    if topic == transaction_state.TOPIC:
                        found._take_transactional_ids(log.data, segment.log)
            for snapshot in files.producer_snapshots.values():
                found._take_snapshot(snapshot)
        return found

    def raise_epochs(self, epoch: int) -> None:
        """Raise the epoch of every partition to at least `epoch`."""
        self.leader_epochs = {number: max(epoch, one) for number, one in self.leader_epochs.items()}

    def _take_batches(self, number: int, data: ByteArray, path: str) -> None:
        for table in scan_windows(data, 0, data.size):
            if len(table):
                epoch = int(table.column(fields.PARTITION_LEADER_EPOCH).max())
                self.leader_epochs[number] = max(self.leader_epochs[number], epoch)
                self.producer_id = max(self.producer_id, int(table.producer_id.max()))
                self.coordinator_epoch = max(self.coordinator_epoch, _coordinator_epoch(data, table, path))

    def _take_transactional_ids(self, data: ByteArray, path: str) -> None:
        for record in replayed_file(data, path):
            if not isinstance(record, ReplayedRecord) or record.key is None:
                continue
            if transaction_state.unknown_version(record.key, record.value):
                continue
            value = transaction_state.decode_value(record.value, offset=record.offset)
            if value is not None:
                self.producer_id = max(self.producer_id, value.producer_id, value.next_producer_id)

    def _take_snapshot(self, path: str) -> None:
        """Read a snapshot, which remembers a producer longer than its batches are kept."""
        try:
            snapshot = read_producer_snapshot(path)
        except CorruptSnapshotError:
            return  # a load removes it
        if snapshot.entry_count:
            self.producer_id = max(self.producer_id, int(snapshot.producer_ids.max()))
            self.coordinator_epoch = max(self.coordinator_epoch, int(snapshot.coordinator_epochs.max()))


def _coordinator_epoch(data: ByteArray, table: BatchTable, path: str) -> int:
    """Return the highest coordinator epoch of the markers in a table: usual markers at once, others one by one."""
    is_marker = table.is_control & (table.record_count > 0)
    is_usual = is_marker & (table.size == MARKER_SIZE) & (table.attributes & CODEC_MASK == 0)
    starts = table.position[is_usual] + COORDINATOR_EPOCH
    epochs = data[starts[:, None] + np.arange(_EPOCH_SIZE)].view(">i4")
    highest = int(epochs.max(initial=NO_COORDINATOR_EPOCH))
    for row in np.flatnonzero(is_marker & ~is_usual).tolist():
        try:
            highest = max(highest, read_marker(data, table, row).coordinator_epoch)
        except LogstoreError as error:
            error.path = path
            raise
    return highest
