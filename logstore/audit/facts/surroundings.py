"""Checkpoints and topic ids of a data directory, beside its partitions (`LogManager`, KIP-516)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...disk.directory import PartitionFiles, list_data_directory
from ...disk.side_files import read_offset_checkpoint, read_partition_metadata
from ...errors import CheckpointFormatError, DataDirectoryError
from ...layout import offset_checkpoint, partition_metadata
from ...layout.file_names import METADATA_TOPIC, DirectoryKind
from ..evidence import Cluster
from ..finding import Where
from ..partition import Partition, unless_gone
from .batches import Breach


class CheckpointEntry(NamedTuple):
    """What an offset checkpoint says of a partition.

    Attributes:
        has_directory: the partition has one.
        log: the partition's start and end offset, and whether a broker may be writing, so that checkpoints are older or
            newer than what was seen of the log; None if it could not be read.
    """

    where: Where
    offset: int
    has_directory: bool
    log: tuple[int, int, bool] | None


class Surrounding:
    """What lies around the partitions of the data directory at `path`.

    Attributes:
        entries: of offset checkpoints.
        ids: of each partition but those of topics that were deleted: where it is said, and the topic's id, None
            without `partition.metadata`; then the right one, and the path that says so.
        unreadable: what does not parse, or does not belong there.
    """

    def __init__(self, path: str, ends: Iterable[tuple[Partition, int]], cluster: Cluster) -> None:
        """Read it; `ends` are the partitions, each with its log end offset."""
        self.entries: list[CheckpointEntry] = []
        self.ids: list[tuple[Where, str | None, str, str]] = []
        self.unreadable: list[Breach] = []
        directory = list_data_directory(path)
        for error in directory.errors:
            where = Where(directory.path if error.path is None else str(error.path))
            self.unreadable.append(Breach("directory-entry", (where, "only directories of partitions", error.message)))
        logs = {one.key: (one.base_offset, end, not one.surroundings.was_closed) for one, end in ends if one.is_live}
        known = {one.key for one in directory.partitions if one.kind is not DirectoryKind.DELETE}
        for name in offset_checkpoint.FILE_NAMES:
            self._read_checkpoint(directory.files.get(name), known, logs)
        topics = {} if cluster.image is None else cluster.image.topics
        ids = {name: (topic.topic_id, METADATA_TOPIC) for name, topic in topics.items()}
        for files in directory.partitions:
            if files.kind not in (DirectoryKind.DELETE, DirectoryKind.STRAY) and files.topic != METADATA_TOPIC:
                self._read_topic_id(files, ids)

    def _read_checkpoint(
        self, path: str | None, known: set[tuple[str, int]], logs: dict[tuple[str, int], tuple[int, int, bool]]
    ) -> None:
        if path is None:
            return
        try:
            offsets = unless_gone(read_offset_checkpoint, path) or {}
        except (CheckpointFormatError, DataDirectoryError) as error:
            broken = Where(path, position=error.position), "topics, partitions and offsets", error.message
            self.unreadable.append(Breach("checkpoint-format", broken))
            return
        self.entries += [
            CheckpointEntry(Where(path, *key, offset=offset), offset, key in known, logs.get(key))
            for key, offset in offsets.items()
        ]

    def _read_topic_id(self, files: PartitionFiles, ids: dict[str, tuple[str, str]]) -> None:
        """All partitions of a topic have one id; a stray one may be of a topic of before."""
        path = files.files.get(partition_metadata.FILE_NAME)
        where = Where(path or files.path, files.topic, files.partition)
        try:
            metadata = unless_gone(read_partition_metadata, path)
        except CheckpointFormatError as error:
            self.unreadable.append(Breach.of("partition-metadata", where, error, "a version and a topic id"))
            return
        topic_id = None if metadata is None else metadata.topic_id
        if topic_id is not None and path is not None:
            ids.setdefault(files.topic, (topic_id, path))
        self.ids.append((where, topic_id, *ids.get(files.topic, ("", ""))))
