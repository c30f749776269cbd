"""The new directory of a copy: its name must fit, and it gets the metadata."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from logstore.disk.atomic import write_file
from logstore.disk.directory import PartitionFiles
from logstore.disk.files import read_file
from logstore.disk.mapped import copied_file
from logstore.disk.names import child, file_name, is_url, parent
from logstore.disk.paths import real_path
from logstore.disk.seam import Seam
from logstore.errors import CheckpointFormatError, CorruptRecordError, LogstoreError, UsageError
from logstore.layout import partition_metadata
from logstore.layout.file_names import DirectoryKind, directory_name, is_segment_name, set_aside_name
from logstore.view.walk import Damage, walk


def require_possible(files: PartitionFiles, destination: str) -> None:
    """Check that a copy of the partition may be made at `destination`, an absolute path.

    Raises:
        UsageError: it exists, its name is not the partition's, it lies in what is copied, or a kill left half of it.
    """
    name = directory_name(*files.key)
    if file_name(destination) != name:
        raise UsageError(
            "The copy must have the partition's name", path=destination, expected=name, found=file_name(destination)
        )
    source = real_path(files.path)
    if not is_url(source) and os.path.commonpath([os.path.realpath(destination), source]) == source:
        raise UsageError(
            "The copy would be in the directory that is copied", path=destination, advice="name another destination"
        )
    if os.path.lexists(destination):
        raise UsageError("There is such a directory already", path=destination, advice="name one that is not there")
    if os.path.lexists(unfinished := _unfinished(files, destination)):
        raise UsageError(
            "A copy of the partition is being made here, or was begun and not finished",
            path=unfinished,
            advice="remove it, unless another process is at work on it",
        )


def require_new_directory(files: PartitionFiles, destination: str) -> None:
    """Check that a copy of the partition can be made at `destination`, an absolute path.

    Raises:
        UsageError: as `require_possible`, or its parent is missing, or the directory of a partition.
    """
    require_possible(files, destination)
    directory = parent(destination)
    if not os.path.isdir(directory):
        raise UsageError(
            "The directory that the copy is to be in is missing",
            path=directory,
            expected=f"a directory, to make {file_name(destination)} in",
            found="something else" if os.path.lexists(directory) else "nothing",
            advice="make it first, or name another destination",
        )
    if any(map(is_segment_name, os.listdir(directory))):
        raise UsageError(
            "The copy would be in the directory of a partition", path=directory, advice="name another destination"
        )


def _unfinished(files: PartitionFiles, destination: str) -> str:
    """Return where a copy is written: a broker that finds it in its data directory starts, and leaves it alone."""
    topic = re.sub(r"\s", "_", files.topic)  # a name with blanks is one that a broker refuses
    return child(parent(destination), set_aside_name(topic, files.partition, "unfinished", DirectoryKind.STRAY))


@contextmanager
def new_copy(files: PartitionFiles, destination: str, seam: Seam) -> Iterator[str]:
    """Yield a new directory to write the copy of the partition in; it becomes `destination` when the block has ended.

    So a kill leaves nothing that looks like a copy, and the next one is told of what it left.
    """
    unfinished = _unfinished(files, destination)
    with new_directory(unfinished, seam):
        yield unfinished
        try:
            seam.rename(unfinished, destination)
            seam.sync_directory(parent(destination))
        except BaseException:
            if not os.path.lexists(unfinished):
                seam.rename(destination, unfinished)
            raise


@contextmanager
def new_directory(path: str, seam: Seam) -> Iterator[None]:
    """Make the directory, and remove it with all that is in it if the block fails or is interrupted."""
    try:
        seam.make_directory(path)
    except Exception:
        raise  # it was not made: another process may have made one of this name
    except BaseException:
        if os.path.isdir(path):  # the interrupt came while it was made
            seam.remove_directory(path)
        raise
    try:
        yield
    except BaseException:
        for name in sorted(os.listdir(path)):
            seam.unlink(child(path, name))
        seam.remove_directory(path)
        raise


def copy_metadata(files: PartitionFiles, destination: str, seam: Seam) -> None:
    """Copy `partition.metadata`, and the snapshots of a metadata log, which hold what is below its start.

    A broker does not start with a broken one: see `broken_metadata`.
    """
    broken = {error.path for error in broken_metadata(files)}
    for path in _metadata_paths(files):
        if path not in broken:
            write_file(seam, child(destination, file_name(path)), [read_file(path)])


def broken_metadata(files: PartitionFiles) -> list[LogstoreError]:
    """Return which of the files that `copy_metadata` copies are not in a copy, and why; raise DataDirectoryError."""
    problems = (_problem(path) for path in _metadata_paths(files))
    return [problem for problem in problems if problem is not None]


def _metadata_paths(files: PartitionFiles) -> list[str]:
    path = files.files.get(partition_metadata.FILE_NAME)
    return [*([] if path is None else [path]), *files.kraft_snapshots.values()]


def _problem(path: str) -> LogstoreError | None:
    if file_name(path) != partition_metadata.FILE_NAME:
        damage = next((piece for piece in walk(copied_file(path), 0) if isinstance(piece, Damage)), None)
        if damage is None:
            return None
        return CorruptRecordError(
            "A snapshot of the metadata log is damaged",
            path=path,
            position=damage.start,
            expected=damage.expected,
            found=damage.found,
            advice="the copy has none of it: what it said is in an older snapshot, or in the log if that is whole",
        )
    try:
        partition_metadata.parse_partition_metadata(read_file(path), path=path)
    except CheckpointFormatError as error:
        error.path = path
        error.advice = (
            "the copy has none: put one with the topic's id there, which `logstore topics` knows; without it a broker "
            "sets the directory aside as -stray"
        )
        return error
    return None
