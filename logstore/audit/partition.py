"""One partition to be audited: its files, and what the data directory around them says of it.

Files of a live broker come and go. What is listed here is how the directory was at one moment; a segment that is gone
when it is opened was deleted, and is passed over.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..disk.directory import PartitionFiles, SegmentFiles, list_data_directory, list_partition_directory
from ..disk.names import absolute_path, child, parent
from ..disk.side_files import read_offset_checkpoint
from ..errors import CheckpointFormatError, DataDirectoryError
from ..layout import clean_shutdown, offset_checkpoint
from ..layout.file_names import METADATA_TOPIC, DirectoryKind
from .finding import Where

T = TypeVar("T")
SET_ASIDE = (DirectoryKind.STRAY, DirectoryKind.DELETE)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a data directory says of one partition; an offset is None where no checkpoint tells it.

    Attributes:
        is_known: there is a data directory around it, with checkpoints or a marker of a clean shutdown.
        was_closed: there is such a marker: no broker runs, and the next one will not look at the logs.
        cleaner_offset: up to here the log is compacted.
        checkpoints: names of those that can be read, of whatever partitions they tell.
    """

    is_known: bool = False
    was_closed: bool = False
    recovery_point: int | None = None
    log_start_offset: int | None = None
    cleaner_offset: int | None = None
    checkpoints: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition directory and its surroundings."""

    files: PartitionFiles
    surroundings: Surroundings

    @property
    def name(self) -> str:
        """As in Kafka's messages."""
        return f"{self.files.topic}-{self.files.partition}"

    @property
    def first_offset(self) -> int:
        """Where the log starts: below are no records, or none that are given out."""
        return max(self.base_offset, self.surroundings.log_start_offset or 0)

    @property
    def base_offset(self) -> int:
        """Of the first segment; 0 without one."""
        return self.files.segments[0].base_offset if self.files.segments else 0

    def where(self, path: str | None = None, position: int | None = None, offset: int | None = None) -> Where:
        """Return a place in the partition: in its directory, or in a file of it."""
        return Where(path or self.files.path, *self.key, position, offset)

    @property
    def is_live(self) -> bool:
        """Whether it is the partition of its name; one that is stray or to be moved here only shares the name."""
        return self.files.kind is DirectoryKind.LIVE

    @property
    def is_set_aside(self) -> bool:
        """Whether brokers keep its batches and nothing beside them: they neither close it in order, nor load it."""
        return self.files.kind in SET_ASIDE

    @property
    def key(self) -> tuple[str, int]:
        """Topic and number."""
        return self.files.key

    @property
    def last_segment(self) -> SegmentFiles | None:
        """The active one."""
        return self.files.segments[-1] if self.files.segments else None

    def is_active(self, segment: SegmentFiles) -> bool:
        """Whether a broker may be writing to the segment: to the last one of a log that was not closed."""
        return segment is self.last_segment and not self.surroundings.was_closed

    def will_be_recovered(self, segment: SegmentFiles) -> bool:
        """Whether the next broker makes the segment's indexes anew, so that what is in them now does not matter.

        True for the active segment of a running broker as well, whose indexes are longer than their entries.
        """
        if self.surroundings.was_closed:
            return False
        if not self.surroundings.is_known:
            return segment is self.last_segment
        return self.end_of(segment) > (self.surroundings.recovery_point or 0)

    def end_of(self, segment: SegmentFiles) -> int:
        """Return the base offset of the next segment, which bounds the offsets of this one; 2^63 behind the last."""
        segments = self.files.segments
        row = bisect_right(segments, segment.base_offset, key=lambda one: one.base_offset)
        return segments[row].base_offset if row < len(segments) else 2**63


def unless_gone(read: Callable[[str], T], path: str | None) -> T | None:
    """`read(path)`; None without a path, or if the file has been deleted meanwhile, as happens beside a broker."""
    if path is None:
        return None
    try:
        return read(path)
    except DataDirectoryError:
        if os.path.lexists(path):
            raise
        return None


def open_partition(path: str) -> Partition:
    """The partition directory at `path`, with what the checkpoints beside it say.

    Raises:
        InvalidNameError: the name is no partition's.
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    root = parent(absolute_path(path))
    files = list_partition_directory(path)
    return Partition(files, _surroundings(root, read_checkpoints(root), files))


def open_partitions(path: str) -> list[Partition]:
    """All partitions of the data directory at `path` that are there to be read, by topic and number.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    checkpoints = read_checkpoints(path)
    found = [
        Partition(files, _surroundings(path, checkpoints, files))
        for files in list_data_directory(path).partitions
        if files.kind is not DirectoryKind.DELETE
    ]
    return sorted(found, key=lambda partition: partition.key)


Checkpoints = dict[str, dict[tuple[str, int], int]]


def read_checkpoints(root: str) -> Checkpoints:
    """From file name to what each of the data directory's offset checkpoints says; those that do not parse say nothing.

    What is wrong with a checkpoint is a finding of `checkpoint_checks`.
    """
    found: Checkpoints = {}
    for name in offset_checkpoint.FILE_NAMES:
        try:
            found[name] = read_offset_checkpoint(child(root, name))
        except (DataDirectoryError, CheckpointFormatError):
            continue
    return found


def _surroundings(root: str, checkpoints: Checkpoints, files: PartitionFiles) -> Surroundings:
    is_closed = os.path.exists(child(root, clean_shutdown.FILE_NAME))
    is_live = files.kind is DirectoryKind.LIVE

    def offset(name: str) -> int | None:
        return checkpoints.get(name, {}).get(files.key) if is_live else None

    return Surroundings(
        is_known=is_live and (is_closed or bool(checkpoints)) and files.topic != METADATA_TOPIC,
        # the metadata log is closed later, and looked at on each start (`KafkaRaftLog`)
        was_closed=is_closed and files.kind not in SET_ASIDE and files.topic != METADATA_TOPIC,
        recovery_point=offset(offset_checkpoint.RECOVERY_POINT_FILE_NAME),
        log_start_offset=offset(offset_checkpoint.LOG_START_OFFSET_FILE_NAME),
        cleaner_offset=offset(offset_checkpoint.CLEANER_OFFSET_FILE_NAME),
        checkpoints=frozenset(checkpoints),
    )
