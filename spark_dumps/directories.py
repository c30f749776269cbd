"""From paths to the partitions below them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass

from logstore.disk.directory import PartitionFiles, list_data_directory, list_partition_directory
from logstore.disk.side_files import read_offset_checkpoint
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.layout.file_names import LOG_SUFFIX, DirectoryKind, directory_name, parse_partition_directory
from logstore.layout.offset_checkpoint import LOG_START_OFFSET_FILE_NAME

from .options import Mode, Options, TopicChoice


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """One partition that is read.

    Attributes:
        log_start_offset: what DeleteRecords left, by the data directory's checkpoint; 0 where it says nothing.
    """

    files: PartitionFiles
    log_start_offset: int

    @classmethod
    def of(cls, files: PartitionFiles, log_start_offsets: dict[tuple[str, int], int]) -> ListedPartition:
        """Of the partition in a directory, by the checkpoint around it."""
        return cls(files, log_start_offsets.get((files.topic, files.partition), 0))

    @property
    def topic(self) -> str:
        """Of the directory's name."""
        return self.files.topic

    @property
    def partition(self) -> int:
        """Of the directory's name."""
        return self.files.partition

    @property
    def key(self) -> tuple[str, int]:
        """(topic, partition)."""
        return self.topic, self.partition

    @property
    def name(self) -> str:
        """As in Kafka's messages."""
        return directory_name(self.topic, self.partition)


def find_partitions(paths: Iterable[str], choice: TopicChoice, *, is_strict: bool) -> list[ListedPartition]:
    """The chosen live partitions below `paths`, by topic and partition.

    A path, or what its glob pattern matches, is a data directory (`log.dirs`), or the directory of one partition.

    Args:
        is_strict: raise what could not be looked at of the chosen partitions; else it is as if it were not there.

    Raises:
        DataDirectoryError: nothing is there, or it cannot be listed.
        LogstoreError: with `is_strict`.
        UsageError: a partition is there twice: replicas, of which only one can be read.
    """
    found: dict[tuple[str, int], ListedPartition] = {}
    for path in paths:
        for directory in _matches(path):
            for partition in _partitions_in(directory, choice, is_strict=is_strict):
                twin = found.setdefault(partition.key, partition)
                if twin.files.path != partition.files.path:
                    raise UsageError(
                        f"{partition.name} is there twice",
                        expected="one replica of each partition",
                        found=f"{twin.files.path} and {partition.files.path}",
                        advice="read one broker's directories at a time",
                    )
    return [found[key] for key in sorted(found)]


def chosen_partitions(options: Options, choice: TopicChoice | None = None) -> list[ListedPartition]:
    """The partitions that the options choose, or `choice` in place of theirs; with FAILFAST as `is_strict` says."""
    return find_partitions(options.paths, choice or options.choice, is_strict=options.mode is Mode.FAILFAST)


def find_data_directories(paths: Iterable[str]) -> list[str]:
    """Of what the paths mean the data directories, in order."""
    return [directory for path in paths for directory in _matches(path) if not _is_partition(directory)]


def relist(partition: ListedPartition) -> ListedPartition:
    """The partition as it is now."""
    path = partition.files.path
    return ListedPartition.of(list_partition_directory(path), _log_start_offsets(os.path.dirname(path)))


def _matches(pattern: str) -> list[str]:
    if os.path.exists(pattern):  # a name may hold what would be a pattern
        return [pattern]
    matches = sorted(path for path in glob.glob(pattern) if os.path.isdir(path))
    if not matches:
        raise DataDirectoryError("there is no such directory", path=pattern, advice="give a data directory of a broker")
    return matches


def _partitions_in(directory: str, choice: TopicChoice, *, is_strict: bool) -> list[ListedPartition]:
    errors: list[LogstoreError] = []
    if _is_partition(directory):
        listed, root = [list_partition_directory(directory)], os.path.dirname(directory)
        choice = TopicChoice(is_everything=True) if choice == TopicChoice() else choice  # it was asked for by name
    else:
        data_directory = list_data_directory(directory)
        listed, root = list(data_directory.partitions), directory
        errors = [error for error in data_directory.errors if _is_chosen(error, choice)]
    starts = _log_start_offsets(root)
    chosen = [
        files for files in listed if files.kind is DirectoryKind.LIVE and choice.accepts(files.topic, files.partition)
    ]
    for error in [*errors, *(error for files in chosen for error in files.errors)] if is_strict else []:
        raise error
    return [ListedPartition.of(files, starts) for files in chosen]


def _is_chosen(error: LogstoreError, choice: TopicChoice) -> bool:
    """Whether what could not be looked at is the directory of a partition that is read."""
    name = parse_partition_directory(os.path.basename(error.path or ""))
    return name is not None and name.kind is DirectoryKind.LIVE and choice.accepts(name.topic, name.partition)


def _is_partition(directory: str) -> bool:
    """By its name and by what is in it: a data directory may be called `kafka-1` too."""
    if parse_partition_directory(os.path.basename(directory)) is None:
        return False
    with os.scandir(directory) as entries:
        return any(entry.name.endswith(LOG_SUFFIX) for entry in entries)


def _log_start_offsets(root: str) -> dict[tuple[str, int], int]:
    path = os.path.join(root, LOG_START_OFFSET_FILE_NAME)
    return read_offset_checkpoint(path) if os.path.exists(path) else {}
