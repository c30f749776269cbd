"""One partition that is read: its files, and what the checkpoints of its data directory say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from logstore.disk.directory import PartitionFiles, list_partition_directory
from logstore.disk.names import parent
from logstore.disk.side_files import log_start_offsets_of, recovery_points_of
from logstore.layout.file_names import directory_name
from logstore.view.follower import with_swaps

from .seen import SeenFiles


class RootOffsets(NamedTuple):
    """Offsets of the logs of a data directory by its checkpoints; see `recovery_points_of`."""

    log_start_offsets: Mapping[tuple[str, int], int]
    recovery_points: Mapping[tuple[str, int], int] | None

    @classmethod
    def of(cls, root: str) -> RootOffsets:
        """Read the checkpoints of a data directory."""
        return cls(log_start_offsets_of(root), recovery_points_of(root))

    def listed(self, files: PartitionFiles, properties: frozenset[str] | None) -> ListedPartition:
        """Return a partition with its offsets."""
        files = with_swaps(files)
        recovery_point = None if self.recovery_points is None else self.recovery_points.get(files.key, 0)
        return ListedPartition(files, self.log_start_offsets.get(files.key, 0), recovery_point, properties)


class ListedPartition(NamedTuple):
    """A partition that is read.

    Attributes:
        log_start_offset: by the checkpoint of the data directory, which DeleteRecords raises; 0 without an entry.
        recovery_point: from where on files beside a log may be short, see `recovery_points_of`; None for nowhere.
        properties: the lines of the `meta.properties` beside it; None without the file.
    """

    files: PartitionFiles
    log_start_offset: int
    recovery_point: int | None
    properties: frozenset[str] | None

    def is_durable_below(self, offset: int) -> bool:
        """Return whether files beside the segments below an offset can be relied on."""
        return self.recovery_point is None or offset <= self.recovery_point

    @property
    def seen(self) -> SeenFiles:
        """Its files as they were listed, with the sizes of now, for the tasks that read it."""
        return SeenFiles.of(self.files, self.properties)

    @property
    def topic(self) -> str:
        return self.files.topic

    @property
    def partition(self) -> int:
        return self.files.partition

    @property
    def key(self) -> tuple[str, int]:
        return self.files.key

    @property
    def name(self) -> str:
        """The name in Kafka's messages, such as `orders-0`."""
        return directory_name(self.topic, self.partition)


def relist(partition: ListedPartition) -> ListedPartition:
    """List the files of a partition again."""
    return list_again(partition.files.path, partition.properties)


def list_again(path: str, properties: frozenset[str] | None, offsets: RootOffsets | None = None) -> ListedPartition:
    """List the partition at `path`, whose data directory has these properties and offsets; None: those of now."""
    offsets = offsets or RootOffsets.of(parent(path))
    return offsets.listed(list_partition_directory(path), properties)
