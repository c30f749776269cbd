"""A partition to audit: its files, and what the data directory around them says of it.

Files of a live broker come and go. The list is of one moment; a segment that is gone when it is opened was deleted, and
is skipped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ..disk import paths
from ..disk.directory import (
    DataDirectoryFiles,
    PartitionFiles,
    SegmentFiles,
    list_data_directory,
    list_partition_directory,
)
from ..disk.names import child, file_name, normal_path, parent
from ..disk.side_files import read_offset_checkpoint, read_offset_index, read_time_index
from ..disk.system_errors import is_refused
from ..errors import CheckpointFormatError, DataDirectoryError
from ..layout import clean_shutdown, offset_checkpoint
from ..layout.file_names import DELETED_SUFFIX, LOG_SUFFIX, METADATA_TOPIC, DirectoryKind
from ..view.follower import with_swaps
from .finding import Where

T = TypeVar("T")
Checkpoints = dict[str, dict[tuple[str, int], int]]  # offsets by topic and number, by name of the file
SET_ASIDE = (DirectoryKind.STRAY, DirectoryKind.DELETE)


class Surroundings(NamedTuple):
    """What a data directory says of one partition; an offset is None without an entry in its checkpoint.

    Attributes:
        is_known: there is a data directory around it, with checkpoints or a marker of a clean shutdown.
        was_closed: there is such a marker: no broker runs, and the next one will not read the logs (but the metadata
            log, which was closed too).
        has_marker: there is such a marker; the metadata log is closed behind it, by 4.4.0 without cutting its indexes.
        cleaner_offset: the log is compacted up to here.
        checkpoints: names of the readable ones, whatever partitions they have.
    """

    is_known: bool = False
    was_closed: bool = False
    has_marker: bool = False
    recovery_point: int | None = None
    log_start_offset: int | None = None
    cleaner_offset: int | None = None
    checkpoints: frozenset[str] = frozenset()


class Partition(NamedTuple):
    """A partition directory and its surroundings."""

    files: PartitionFiles
    surroundings: Surroundings

    @property
    def name(self) -> str:
        """As in Kafka's messages."""
        return f"{self.files.topic}-{self.files.partition}"

    @property
    def first_offset(self) -> int:
        """The first offset here that consumers get."""
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
        """Whether it is the partition of its name; a stray or future directory only shares the name."""
        return self.files.kind is DirectoryKind.LIVE

    @property
    def deleted_base_offsets(self) -> list[int]:
        """The base offsets of segments that wait to be removed, a minute by default (`file.delete.delay.ms`)."""
        ending = LOG_SUFFIX + DELETED_SUFFIX
        names = [file_name(path) for path in self.files.left_overs if path.endswith(ending)]
        return [int(name.removesuffix(ending)) for name in names if name.removesuffix(ending).isdecimal()]

    @property
    def is_set_aside(self) -> bool:
        """Whether it is stray or deleted: brokers neither load nor close it, and keep no side files up to date."""
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
        """Return whether the next broker rebuilds the segment's indexes, so that their present content does not matter.

        True also for the active segment of a running broker, whose indexes are longer than their entries.
        """
        if self.surroundings.was_closed:
            return False
        if not self.surroundings.is_known and self.surroundings.recovery_point is None:
            return segment is self.last_segment
        return self.end_of(segment) > (self.surroundings.recovery_point or 0)

    def end_of(self, segment: SegmentFiles) -> int:
        """Return the base offset of the next segment, which bounds the offsets of this one; 2^63 behind the last."""
        segments = self.files.segments
        row = bisect_right(segments, segment.base_offset, key=lambda one: one.base_offset)
        return segments[row].base_offset if row < len(segments) else 2**63


def unless_gone(read: Callable[[str], T], path: str | None) -> T | None:
    """Return `read(path)`; None without a path, or if a broker has deleted the file meanwhile."""
    if path is None:
        return None
    try:
        return read(path)
    except DataDirectoryError as error:
        if is_refused(error) or paths.exists(path):
            raise
        return None


def directory_around(path: str) -> str:
    """Return the absolute path of the data directory around a partition, whose `path` may be `orders-0` or `.`."""
    return parent(normal_path(path))


def open_partition(path: str, checkpoints: Checkpoints | None = None) -> Partition:
    """Open the partition directory at `path`, with the checkpoints beside it.

    Args:
        checkpoints: those beside it, for a caller that opens several: they name all partitions of the directory.

    Raises:
        InvalidNameError: the name is no partition's.
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    root, files = directory_around(path), with_swaps(list_partition_directory(path))
    checkpoints = read_checkpoints(root) if checkpoints is None else checkpoints
    is_closed = paths.exists(child(root, clean_shutdown.FILE_NAME))
    return Partition(files, _surroundings(files, checkpoints, is_closed=is_closed))


def open_partitions(path: str) -> list[Partition]:
    """Open all readable partitions of the data directory at `path`, by topic and number.

    Raises DataDirectoryError if `path` is missing, unreadable, or no directory.
    """
    return partitions_of(list_data_directory(path))


def partitions_of(directory: DataDirectoryFiles) -> list[Partition]:
    """Return the partitions of a data directory, with the checkpoints beside them, by topic and number."""
    checkpoints, is_closed = read_checkpoints(directory.path), clean_shutdown.FILE_NAME in directory.files
    found = [
        Partition(with_swaps(files), _surroundings(files, checkpoints, is_closed=is_closed))
        for files in directory.partitions
        if files.kind is not DirectoryKind.DELETE
    ]
    return sorted(found, key=lambda partition: partition.key)


def read_checkpoints(root: str) -> Checkpoints:
    """Return the content of each readable offset checkpoint of a data directory, by file name.

    `checks.checkpoints` finds those that cannot be read.
    """
    found: Checkpoints = {}
    for name in offset_checkpoint.FILE_NAMES:
        try:
            found[name] = read_offset_checkpoint(child(root, name))
        except (DataDirectoryError, CheckpointFormatError):
            continue
    return found


def _has_trimmed_index(files: PartitionFiles) -> bool:
    """Return whether the log was closed in order: both indexes of an open one have zeros up to their full sizes.

    The metadata log is closed after the marker of a clean shutdown is written, and a broker may be killed in between
    (`SharedServer.stop`, `AbstractIndex.trimToValidSize`).
    """
    if not files.segments:
        return False
    try:
        offsets = unless_gone(read_offset_index, files.segments[-1].offset_index)
        times = unless_gone(read_time_index, files.segments[-1].time_index)
    except DataDirectoryError:
        return False
    return any(index is not None and index.written_count == index.offsets.size for index in (offsets, times))


def _surroundings(files: PartitionFiles, checkpoints: Checkpoints, *, is_closed: bool) -> Surroundings:
    is_live = files.kind is DirectoryKind.LIVE

    def offset(name: str, is_told: bool = is_live) -> int | None:
        return checkpoints.get(name, {}).get(files.key) if is_told else None

    return Surroundings(
        is_known=is_live and (is_closed or bool(checkpoints)) and files.topic != METADATA_TOPIC,
        was_closed=is_closed
        and files.kind not in SET_ASIDE
        and (files.topic != METADATA_TOPIC or _has_trimmed_index(files)),
        has_marker=is_closed,
        # a future log has a recovery point too, in a log dir of its own (`LogManager.logsByDir`)
        recovery_point=offset(offset_checkpoint.RECOVERY_POINT_FILE_NAME, files.kind not in SET_ASIDE),
        log_start_offset=offset(offset_checkpoint.LOG_START_OFFSET_FILE_NAME),
        cleaner_offset=offset(offset_checkpoint.CLEANER_OFFSET_FILE_NAME),
        checkpoints=frozenset(checkpoints),
    )
