"""The partitions below the paths of a read."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass

from logstore.disk.directory import PartitionFiles, list_data_directory, list_partition_directory
from logstore.disk.side_files import log_start_offsets_of
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.layout.file_names import LOG_SUFFIX, DirectoryKind, directory_name, parse_partition_directory

from .options import Mode, Options, TopicChoice


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """A partition that is read.

    Attributes:
        log_start_offset: by the checkpoint of the data directory, which DeleteRecords raises; 0 without an entry.
    """

    files: PartitionFiles
    log_start_offset: int

    @classmethod
    def of(cls, files: PartitionFiles, log_start_offsets: dict[tuple[str, int], int]) -> ListedPartition:
        """Make it of a directory and the checkpoint beside it."""
        return cls(files, log_start_offsets.get((files.topic, files.partition), 0))

    @property
    def topic(self) -> str:
        """The topic, by the directory's name."""
        return self.files.topic

    @property
    def partition(self) -> int:
        """The partition's number, by the directory's name."""
        return self.files.partition

    @property
    def key(self) -> tuple[str, int]:
        """(topic, partition)."""
        return self.topic, self.partition

    @property
    def name(self) -> str:
        """The name in Kafka's messages, such as `orders-0`."""
        return directory_name(self.topic, self.partition)


def find_partitions(paths: Iterable[str], choice: TopicChoice, *, is_strict: bool) -> list[ListedPartition]:
    """Return the chosen live partitions below `paths`, sorted by topic and partition.

    A path, or what its glob pattern matches, is a data directory (`log.dirs`) or the directory of one partition.

    Args:
        is_strict: raise the error of a chosen partition that cannot be listed; else leave it out.

    Raises:
        DataDirectoryError: a path is missing, or cannot be listed.
        LogstoreError: with `is_strict`.
        UsageError: two replicas of a partition are there, of which only one can be read.
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
    """Return the partitions that the options choose, or `choice` instead; with FAILFAST strictly."""
    return find_partitions(options.paths, choice or options.choice, is_strict=options.mode is Mode.FAILFAST)


def find_data_directories(paths: Iterable[str]) -> list[str]:
    """Return the data directories among the paths and the matches of their patterns, in order."""
    return [directory for path in paths for directory in _matches(path) if not _is_partition(directory)]


def relist(partition: ListedPartition) -> ListedPartition:
    """List the files of a partition again."""
    path = partition.files.path
    return ListedPartition.of(list_partition_directory(path), log_start_offsets_of(os.path.dirname(path)))


def _matches(pattern: str) -> list[str]:
    if os.path.exists(pattern):  # a name may contain characters of a pattern
        return [pattern]
    matches = sorted(path for path in glob.glob(pattern) if os.path.isdir(path))
    if not matches:
        raise DataDirectoryError("there is no such directory", path=pattern, advice="give a data directory of a broker")
    return matches


def _partitions_in(directory: str, choice: TopicChoice, *, is_strict: bool) -> list[ListedPartition]:
    errors: list[LogstoreError] = []
    if _is_partition(directory):
        listed, root = [list_partition_directory(directory)], os.path.dirname(directory)
        choice = TopicChoice(is_everything=True) if choice == TopicChoice() else choice  # the path names it
    else:
        data_directory = list_data_directory(directory)
        listed, root = list(data_directory.partitions), directory
        errors = [error for error in data_directory.errors if _is_chosen(error, choice)]
    starts = log_start_offsets_of(root)
    chosen = [
        files for files in listed if files.kind is DirectoryKind.LIVE and choice.accepts(files.topic, files.partition)
    ]
    for error in [*errors, *(error for files in chosen for error in files.errors)] if is_strict else []:
        raise error
    return [ListedPartition.of(files, starts) for files in chosen]


def _is_chosen(error: LogstoreError, choice: TopicChoice) -> bool:
    """Return whether an error of listing concerns a chosen live partition."""
    name = parse_partition_directory(os.path.basename(error.path or ""))
    return name is not None and name.kind is DirectoryKind.LIVE and choice.accepts(name.topic, name.partition)


def _is_partition(directory: str) -> bool:
    """Return whether a directory has the name and the files of a partition; a data directory may be named `kafka-1`."""
    if parse_partition_directory(os.path.basename(directory)) is None:
        return False
    with os.scandir(directory) as entries:
        return any(entry.name.endswith(LOG_SUFFIX) for entry in entries)
