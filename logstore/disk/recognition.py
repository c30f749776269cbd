"""What a listed directory is: a partition, a data directory, or a directory of something else."""

from __future__ import annotations

import os
from difflib import get_close_matches

from ..errors import DataDirectoryError, UsageError
from ..layout import meta_properties
from ..layout.file_names import PartitionDirectory, is_segment_name, parse_partition_directory
from . import paths
from .directory import PARTITION_FILE_NAMES, ROOT_FILE_NAMES, DataDirectoryFiles, list_data_directory
from .names import child, file_name, is_url, normal_path, parent

_AROUND_COUNT_MAX = 100  # directories that are looked into for one that was meant
_NOT_KAFKA = f"This is not a Kafka data directory: no {meta_properties.FILE_NAME}, no partition"


def name_of_partition(path: str) -> PartitionDirectory | None:
    """Return the topic and number in the name of the directory at `path`; None if it is no partition's name."""
    return parse_partition_directory(file_name(normal_path(path)))


def is_partition(directory: DataDirectoryFiles) -> bool:
    """Return whether a directory, listed as a data directory, is a partition's.

    It is if it has segments, or a partition's name and nothing of a broker in it: a partition that was just made is
    empty, and a data directory, or the volume `data-0` around it, may have the name too.

    Raises:
        DataDirectoryError: it is a partition by a link that leads out of its data directory.
    """
    names = [file_name(left_over) for left_over in directory.left_overs]
    if not any(map(is_segment_name, names)):
        has_directories = bool(directory.partitions or directory.errors)
        is_around = has_directories and PARTITION_FILE_NAMES.isdisjoint(names)
        is_root = not directory.is_foreign and bool(directory.files)
        if is_root or is_around or name_of_partition(directory.path) is None:
            return False
    _require_inside(directory.path)
    return True


def _require_inside(path: str) -> None:
    """Raise DataDirectoryError for a partition that is a link to another directory's content."""
    target = paths.real_path(path)
    if parent(target) != paths.real_path(parent(normal_path(path))):
        raise DataDirectoryError(
            "A symbolic link that leads out of the data directory is not followed",
            path=path,
            found=target,
            advice="name what it leads to",
        )


def require_kafka(directory: DataDirectoryFiles) -> None:
    """Raise UsageError for a directory with nothing of a broker in it: it is empty, or of something else."""
    if not directory.is_foreign and (directory.files or directory.partitions):
        return
    raise UsageError(_NOT_KAFKA, path=directory.path, advice=_advice_below(directory.path))


def require_no_parent(path: str) -> None:
    """Raise DataDirectoryError for the directory around data directories, with their names."""
    if advice := _advice_below(path):
        raise DataDirectoryError(_NOT_KAFKA, path=path, advice=advice)


def require_outside(path: str) -> None:
    """Raise UsageError for a directory to be made in a data directory or in a partition, which a broker stops at."""
    path = normal_path(path)
    for around in (parent(path), parent(parent(path))):
        if paths.exists(child(around, meta_properties.FILE_NAME)):
            raise UsageError(
                "This would be in a data directory: no broker starts beside what is no partition of it",
                path=path,
                found=child(around, meta_properties.FILE_NAME),
                advice="name one that is not in a data directory",
            )


def _advice_below(path: str) -> str | None:
    near = [path]
    for _ in range(2):  # a volume may be mounted around each
        near = [entry.path for around in near[:_AROUND_COUNT_MAX] for entry in _entries(around) if entry.is_dir()]
        if meant := [path for path in near if paths.is_file(child(path, meta_properties.FILE_NAME))]:
            return f"did you mean {' or '.join(meant)}?"
    return None


def _entries(path: str) -> list[paths.Entry]:
    """Return the entries of a directory; none of what is no directory, or cannot be listed."""
    try:
        return paths.scan(path)
    except OSError:
        return []


def require_data_directory(path: str) -> None:
    """Raise UsageError for a partition; raises as `names_partition`."""
    if names_partition(path):
        raise refused_partition(path)


def refused_partition(path: str) -> UsageError:
    """Return the error of a partition where a data directory is asked for."""
    around = parent(normal_path(path))
    return UsageError("This is a partition, not a data directory", path=path, advice=f"did you mean {around}?")


def names_partition(path: str) -> bool:
    """Return whether the directory at `path` is a partition's; UsageError if it is no data directory either.

    Raises DataDirectoryError if it cannot be read, or is a partition by a link that leads out of its data directory.
    """
    if not paths.is_directory(path):
        raise nothing_there(path, "directory", "a data directory or a partition")
    if _has_files_of_a_broker(path):
        return False
    directory = list_data_directory(path)
    if is_partition(directory):
        return True
    require_kafka(directory)
    return False


def _has_files_of_a_broker(path: str) -> bool:
    """Return whether a directory, which no segment is in, is a broker's by its own files: no partition need be listed.

    A directory that cannot be listed has none.
    """
    entries = _entries(path)
    if any(is_segment_name(entry.name) for entry in entries):
        return False
    return any(entry.name in ROOT_FILE_NAMES and entry.is_file(follow_symlinks=False) for entry in entries)


def nothing_there(path: str, what: str, expected: str) -> UsageError:
    """Return the error of a path that names no `what`, with the name beside it that may have been meant."""
    advice, found = None, "a file" if is_url(path) or os.path.exists(path) else "a link that leads nowhere"
    if not paths.exists(path):
        found = "nothing"
        around, name = os.path.split(normal_path(path))
        names = [entry.name for entry in paths.scan(around)] if paths.is_directory(around) else []
        close = get_close_matches(name, names, n=1)
        advice = f"did you mean {os.path.join(os.path.dirname(path), close[0])}?" if close else None
        paths.forget(path)  # it may be there when it is asked for again
    return UsageError(f"There is no such {what}", path=path, expected=expected, found=found, advice=advice)
