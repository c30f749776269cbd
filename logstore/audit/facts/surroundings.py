"""Checkpoints and topic ids of a data directory, beside its partitions (`LogManager`, KIP-516)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...disk.directory import DataDirectoryFiles, PartitionFiles, list_data_directory
from ...disk.side_files import read_offset_checkpoint, read_partition_metadata
from ...errors import CheckpointFormatError, DataDirectoryError
from ...layout import offset_checkpoint, partition_metadata
from ...layout.file_names import METADATA_TOPIC, DirectoryKind
from ..evidence import Cluster
from ..finding import Where
from ..partition import Partition, unless_gone
from .batches import Unreadable


class LogRange(NamedTuple):
    """Where a log starts and ends; the end is exclusive.

    Attributes:
        is_open: a broker may be writing, and checkpoints are older or newer than what was seen of the log.
    """

    start_offset: int
    end_offset: int
    is_open: bool

    def has(self, offset: int) -> bool:
        """Whether a checkpoint may say so; below the log's start it may, if it is older than the last retention."""
        return 0 <= offset <= self.end_offset or (self.is_open and offset >= 0)


class CheckpointEntry(NamedTuple):
    """What an offset checkpoint says of a partition.

    Attributes:
        has_directory: the partition has one.
        log: None if it could not be read.
    """

    where: Where
    offset: int
    has_directory: bool
    log: LogRange | None


@dataclass
class Surrounding:
    """What lies around the partitions of a data directory.

    Attributes:
        entries: of offset checkpoints.
        ids: of each partition but those of topics that were deleted: where it is said, and the topic's id, None
            without `partition.metadata`; then the right one, and the path that says so.
        unreadable: what does not parse, or does not belong there.
    """

    entries: list[CheckpointEntry] = field(default_factory=list)
    ids: list[tuple[Where, str | None, str, str]] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)


def surrounding_of(path: str, ends: Iterable[tuple[Partition, int]], cluster: Cluster) -> Surrounding:
    """Read what lies around the partitions of the data directory at `path`.

    Args:
        ends: the partitions, each with its log end offset.
    """
    directory, found = list_data_directory(path), Surrounding()
    for error in directory.errors:
        where = Where(directory.path if error.path is None else str(error.path))
        found.unreadable.append(Unreadable("directory-entry", (where, "only directories of partitions", error.message)))
    ranges = {
        one.key: LogRange(
            one.files.segments[0].base_offset if one.files.segments else 0, end, not one.surroundings.was_closed
        )
        for one, end in ends
        if one.is_live
    }
    _read_checkpoints(directory, ranges, found)
    topics = {} if cluster.image is None else cluster.image.topics
    ids = {name: (topic.topic_id, METADATA_TOPIC) for name, topic in topics.items()}
    for files in directory.partitions:
        if files.kind not in (DirectoryKind.DELETE, DirectoryKind.STRAY) and files.topic != METADATA_TOPIC:
            _read_topic_id(files, ids, found)
    return found


def _read_checkpoints(
    directory: DataDirectoryFiles, ranges: dict[tuple[str, int], LogRange], found: Surrounding
) -> None:
    known = {(files.topic, files.partition) for files in directory.partitions if files.kind is not DirectoryKind.DELETE}
    for name in offset_checkpoint.FILE_NAMES:
        path = directory.files.get(name)
        if path is None:
            continue
        try:
            offsets = unless_gone(read_offset_checkpoint, path) or {}
        except (CheckpointFormatError, DataDirectoryError) as error:
            broken = Where(path, position=error.position), "topics, partitions and offsets", error.message
            found.unreadable.append(Unreadable("checkpoint-format", broken))
            continue
        found.entries += [
            CheckpointEntry(Where(path, *key, offset=offset), offset, key in known, ranges.get(key))
            for key, offset in offsets.items()
        ]


def _read_topic_id(files: PartitionFiles, ids: dict[str, tuple[str, str]], found: Surrounding) -> None:
    """All partitions of a topic have one id; a stray one may be of a topic of before."""
    path = files.files.get(partition_metadata.FILE_NAME)
    where = Where(path or files.path, files.topic, files.partition)
    try:
        metadata = None if path is None else unless_gone(read_partition_metadata, path)
    except CheckpointFormatError as error:
        found.unreadable.append(Unreadable.of("partition-metadata", where, error, "a version and a topic id"))
        return
    topic_id = None if metadata is None else metadata.topic_id
    if topic_id is not None and path is not None:
        ids.setdefault(files.topic, (topic_id, path))
    found.ids.append((where, topic_id, *ids.get(files.topic, ("", ""))))
