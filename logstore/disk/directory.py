"""Listing of a data directory: its partitions, their segments, and all other files. Read only.

What a broker would refuse or delete is reported, not raised, so that a reader can go on: a directory whose name is no
partition's, a file whose name holds no offset, a directory that cannot be listed, a symbolic link that leads out of the
data directory (never followed). Everything is in name order.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from ..errors import DataDirectoryError, InvalidNameError, LogstoreError
from ..layout import clean_shutdown, leader_epoch_checkpoint, meta_properties, offset_checkpoint, partition_metadata
from ..layout.file_names import (
    BOOTSTRAP_SNAPSHOT_NAME,
    KRAFT_SNAPSHOT_SUFFIX,
    LOCK_FILE_NAME,
    LOG_SUFFIX,
    METADATA_TOPIC,
    OFFSET_DIGIT_COUNT,
    PRODUCER_SNAPSHOT_SUFFIX,
    REMOTE_INDEX_CACHE_NAME,
    SEGMENT_SUFFIXES,
    DirectoryKind,
    PartitionDirectory,
    base_offset_of,
    foreign_directory_text,
    has_offset,
    is_renamed_log,
    is_segment_name,
    parse_kraft_snapshot_name,
    parse_partition_directory,
    segment_file_name,
)
from ..layout.quorum_state import FILE_NAME as QUORUM_STATE_FILE_NAME
from .names import child, file_name, java_file, normal_path, parent
from .paths import Scan, is_directory, real_path, scan, tree_scan
from .system_errors import nio_error

K = TypeVar("K", int, tuple[int, int])
_OFFSET_NAME_MAX = f"{2**63 - 1:0{OFFSET_DIGIT_COUNT}d}"
_NAME_A_COPY = "give the directory of a copy the name of its partition, such as orders-0"
_MOVE_AWAY = "no broker starts beside it: move it out of the data directory"
ROOT_FILE_NAMES = frozenset(
    {
        BOOTSTRAP_SNAPSHOT_NAME,
        LOCK_FILE_NAME,
        clean_shutdown.FILE_NAME,
        meta_properties.FILE_NAME,
        *offset_checkpoint.FILE_NAMES,
    }
)
PARTITION_FILE_NAMES = frozenset(
    {leader_epoch_checkpoint.FILE_NAME, partition_metadata.FILE_NAME, QUORUM_STATE_FILE_NAME}
)


class SegmentFiles(NamedTuple):
    """Paths of one segment's files; None for a missing file."""

    base_offset: int
    log: str
    offset_index: str | None
    time_index: str | None
    transaction_index: str | None


class PartitionFiles(NamedTuple):
    """Content of the directory of one partition.

    Attributes:
        segments: by ascending base offset.
        producer_snapshots: offset to path, ascending.
        kraft_snapshots: complete ones, (end offset, epoch) to path, ascending.
        files: name to path, of the files in `PARTITION_FILE_NAMES` that exist.
        left_overs: paths of all other files: unfinished, to be deleted, or an index without its `.log`.
        errors: what could not be listed.
    """

    topic: str
    partition: int
    kind: DirectoryKind
    path: str
    segments: tuple[SegmentFiles, ...]
    producer_snapshots: dict[int, str]
    kraft_snapshots: dict[tuple[int, int], str]
    files: dict[str, str]
    left_overs: tuple[str, ...]
    errors: tuple[LogstoreError, ...]

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition number."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class DataDirectoryFiles:
    """Content of one of a broker's `log.dirs`.

    Attributes:
        partitions: of every kind, `__cluster_metadata` too.
        files: name to path, of the files in `ROOT_FILE_NAMES` that exist.
        left_overs: paths of all other plain files.
        errors: what could not be listed, and directories that keep a broker from starting.
    """

    path: str
    partitions: tuple[PartitionFiles, ...]
    files: dict[str, str]
    left_overs: tuple[str, ...]
    errors: tuple[LogstoreError, ...]

    @property
    def is_foreign(self) -> bool:
        """Whether there is something in it, and nothing of Kafka.

        Directories of the system end in -1, and so do data directories: `/data/kafka-1` is no partition of `/data`.
        """
        has_content = any(
            part.segments or part.files or part.producer_snapshots or part.kraft_snapshots for part in self.partitions
        )
        return not self.files and not has_content and bool(self.errors or self.strangers)

    @property
    def strangers(self) -> list[str]:
        """What is of no broker: other files, and what no log has in its directory."""
        inside = (path for part in self.partitions for path in part.left_overs if not has_offset(file_name(path)))
        return [*self.left_overs, *inside]

    def require_no_partition(self) -> None:
        """Raise DataDirectoryError if this is the directory of one partition."""
        names = [file_name(left_over) for left_over in self.left_overs]
        if any(name == partition_metadata.FILE_NAME or is_segment_name(name) for name in names):
            raise DataDirectoryError(
                f"This is a partition of the data directory around it, {file_name(self.path)}",
                path=self.path,
                advice=f"open its parent, {parent(self.path)}",
            )


class _Listing(NamedTuple):
    """Entries of one directory that may be read: names and paths."""

    directories: list[tuple[str, str]]
    files: list[tuple[str, str]]
    others: list[tuple[str, str]]  # FIFOs, sockets, devices
    errors: list[LogstoreError]


def list_data_directory(path: str, listed: Mapping[str, PartitionFiles] | None = None) -> DataDirectoryFiles:
    """List the data directory at `path`, two levels deep.

    Args:
        listed: partitions by path, which are not listed again if they are still there.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    path = java_file(path)
    try:
        entries_of = tree_scan(path)
    except OSError as error:
        raise nio_error(error, path) from error
    listing = _list(path, root=path, entries_of=entries_of)
    partitions = []
    errors = listing.errors
    for name, directory in listing.directories:
        if name == REMOTE_INDEX_CACHE_NAME:
            continue
        if listed and directory in listed:
            partitions.append(listed[directory])
            continue
        try:
            parsed = parse_partition_directory(name)
            partitions.append(list_partition_directory(directory, root=path, name=parsed, entries_of=entries_of))
        except LogstoreError as error:
            errors.append(error)
    known, others = _known([*listing.files, *listing.others], ROOT_FILE_NAMES)
    left_overs = tuple(left_over for _, left_over in others)
    return DataDirectoryFiles(path, tuple(partitions), known, left_overs, tuple(errors))


def list_partition_directory(
    path: str, *, root: str | None = None, name: PartitionDirectory | None = None, entries_of: Scan = scan
) -> PartitionFiles:
    """List the directory of one partition.

    Args:
        path: the directory.
        root: links must not lead out of it; by default the parent of `path`.
        name: what the directory is taken for; by default its own name.
        entries_of: lists it; for a caller that has listed what is around it.

    Raises:
        InvalidNameError: as `partition_name`.
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    path = java_file(path)
    name = name or partition_name(path, advice=_NAME_A_COPY if root is None else _MOVE_AWAY)
    listing = _list(path, root=root or parent(normal_path(path)), entries_of=entries_of)
    sorter = _Sorter(listing.errors, has_kraft_snapshots=name.topic in (METADATA_TOPIC, ""))
    files, others = _known(sorter.accept_usual(listing.files), PARTITION_FILE_NAMES)
    left_overs = [file for file_name, file in others if not sorter.accept(file_name, file)]
    segments, orphans = sorter.segments()
    no_files = [*listing.directories, *listing.others]
    sorter.refuse(no_files)
    left_overs += orphans + [entry for _, entry in no_files]
    if not segments and (renamed := next((path for path in left_overs if is_renamed_log(file_name(path))), None)):
        listing.errors.append(
            InvalidNameError(
                "A log under a name that Kafka does not know, and no other is here: the partition would begin empty",
                path=renamed,
                expected=segment_file_name(base_offset_of(file_name(renamed)), LOG_SUFFIX),
                advice="unpack or rename it, and the files beside it",
            )
        )
    return PartitionFiles(
        topic=name.topic,
        partition=name.partition,
        kind=name.kind,
        path=path,
        segments=segments,
        producer_snapshots=_ascending(sorter.producer_snapshots),
        kraft_snapshots=_ascending(sorter.kraft_snapshots),
        files=files,
        left_overs=tuple(sorted(left_overs)),
        errors=tuple(listing.errors),
    )


def _ascending(files: dict[K, str]) -> dict[K, str]:
    return dict(sorted(files.items())) if len(files) > 1 else files


def partition_name(path: str, advice: str = _NAME_A_COPY) -> PartitionDirectory:
    """Parse the name of a partition's directory (`LocalLog.parseTopicPartitionName`); raises InvalidNameError."""
    name = parse_partition_directory(file_name(normal_path(path)))
    if name is None:
        text = foreign_directory_text(file_name(path), real_path(path))
        raise InvalidNameError(text, path=path, advice=advice, java_class="org.apache.kafka.common.KafkaException")
    return name


def offset_in_name(path: str) -> int:
    """Return the offset in a file's name (`LogFileUtils.offsetFromFile`); raises InvalidNameError, with the path."""
    try:
        return base_offset_of(file_name(path))
    except InvalidNameError as error:
        raise _foreign_file(path, error) from None


def _foreign_file(path: str, error: InvalidNameError) -> InvalidNameError:
    return InvalidNameError(
        error.message,
        path=path,
        advice="a broker does not start beside a file of this name: move the file out of the directory",
        java_class=error.java_class,
    )


def partition_directories(path: str) -> list[tuple[PartitionDirectory, str]]:
    """Return names and paths of all partitions in the data directory at `path`, of every kind; reads none of them.

    Raises:
        InvalidNameError: a directory whose name is no partition's, which keeps a broker from starting too.
        DataDirectoryError: `path` is missing, unreadable or no directory, or holds a link that leads out of it.
    """
    path = java_file(path)
    listing = _list(path, root=path)
    for error in listing.errors:
        raise error
    directories = [entry for entry in listing.directories if entry[0] != REMOTE_INDEX_CACHE_NAME]
    return [(parse_partition_directory(name) or partition_name(path, _MOVE_AWAY), path) for name, path in directories]


class _Sorter:
    """Sorts the files of a partition by name. If two names parse to the same offset, the second is an error."""

    def __init__(self, errors: list[LogstoreError], *, has_kraft_snapshots: bool) -> None:
        self.producer_snapshots: dict[int, str] = {}
        self.kraft_snapshots: dict[tuple[int, int], str] = {}
        self._segment_files: dict[str, dict[int, str]] = {suffix: {} for suffix in SEGMENT_SUFFIXES}
        self._usual = {**self._segment_files, PRODUCER_SNAPSHOT_SUFFIX: self.producer_snapshots}
        self._errors = errors
        self._has_kraft_snapshots = has_kraft_snapshots

    def accept_usual(self, entries: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Take the files whose names are as Kafka writes the names of most files; return names and paths of the others.

        These are taken first, and quickly: a data directory may have millions of them.
        """
        others, usual = [], self._usual
        last, offset = "", 0  # files of one segment follow each other
        for entry in entries:
            name, path = entry
            stem, files = name[:OFFSET_DIGIT_COUNT], usual.get(name[OFFSET_DIGIT_COUNT:])
            if files is None or not (
                stem == last or (stem.isdecimal() and stem.isascii() and stem <= _OFFSET_NAME_MAX)
            ):
                others.append(entry)
                continue
            if stem != last:
                last, offset = stem, int(stem)
            files[offset] = path
        return others

    def accept(self, name: str, path: str) -> bool:
        """Take the file if its name has a meaning; return whether it has."""
        try:
            if name.endswith(KRAFT_SNAPSHOT_SUFFIX):
                if not self._has_kraft_snapshots:
                    return False
                snapshot = parse_kraft_snapshot_name(name)
                if snapshot is None:
                    return False
                return self.kraft_snapshots.setdefault((snapshot.end_offset, snapshot.epoch), path) == path
            for suffix, files in self._segment_files.items():
                if name.endswith(suffix):
                    return self._take(files, base_offset_of(name), path)
            if name.endswith(PRODUCER_SNAPSHOT_SUFFIX):
                return self._take(self.producer_snapshots, base_offset_of(name), path)
        except InvalidNameError as error:
            self._errors.append(_foreign_file(path, error))
        return False

    def refuse(self, no_files: Sequence[tuple[str, str]]) -> None:
        """Add an error for each directory, FIFO and the like that has the name of a file (`File.isFile`)."""
        suffixes = (*self._usual, KRAFT_SNAPSHOT_SUFFIX) if self._has_kraft_snapshots else tuple(self._usual)
        for name, path in no_files:
            if name.endswith(suffixes) or name in PARTITION_FILE_NAMES:
                text, advice = "This has the name of a file, and is none", "no broker reads it: move it away"
                self._errors.append(DataDirectoryError(text, path=path, expected="a file", advice=advice))

    def _take(self, files: dict[int, str], offset: int, path: str) -> bool:
        taken = files.setdefault(offset, path)
        if taken != path:
            text = "Two files have names of one offset, and this one is not read"
            advice = f"{taken} is read; move this one out of the directory"
            self._errors.append(InvalidNameError(text, path=path, offset=offset, advice=advice))
        return taken == path

    def segments(self) -> tuple[tuple[SegmentFiles, ...], list[str]]:
        """Return the segments, and the indexes without a `.log`."""
        logs, offset_indexes, time_indexes, transaction_indexes = self._segment_files.values()
        of_offsets, of_times, of_transactions = offset_indexes.get, time_indexes.get, transaction_indexes.get
        segments = [
            SegmentFiles(base, log, of_offsets(base), of_times(base), of_transactions(base))
            for base, log in _ascending(logs).items()
        ]
        indexes = (offset_indexes, time_indexes, transaction_indexes)
        orphans = [path for paths in indexes for base, path in paths.items() if base not in logs]
        return tuple(segments), orphans


def _list(path: str, *, root: str, entries_of: Scan = scan) -> _Listing:
    listing = _Listing([], [], [], [])
    try:
        entries = entries_of(path)
    except OSError as error:
        raise nio_error(error, path) from error
    files, start = listing.files, child(path, "")
    for entry in entries:
        entry_path = start + entry.name
        if entry.is_file(follow_symlinks=False):  # most of them
            files.append((entry.name, entry_path))
            continue
        is_link = entry.is_symlink()
        if is_link and not _is_below(real_path(entry_path), real_path(root)):
            listing.errors.append(
                DataDirectoryError(
                    "A symbolic link that leads out of the data directory is not followed",
                    path=entry_path,
                    found=os.readlink(entry_path),
                    advice="a broker follows it: mount what it leads to in its place, or move that back",
                )
            )
        elif is_directory(entry_path) if is_link else entry.is_dir(follow_symlinks=False):
            listing.directories.append((entry.name, entry_path))
        else:
            (files if is_link else listing.others).append((entry.name, entry_path))
    return listing


# a link may lead to a directory below the root only
def _is_below(real_path: str, real_root: str) -> bool:
    return os.path.commonpath([real_path, real_root]) == real_root


def _known(
    files: Sequence[tuple[str, str]], known_names: frozenset[str]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Split names and paths of files into those with known names and the others."""
    return dict([file for file in files if file[0] in known_names]), [
        file for file in files if file[0] not in known_names
    ]
