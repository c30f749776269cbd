"""From the words of a command line to the directories they mean: data directories, partitions, and globs of both."""

from __future__ import annotations

import glob
import os
from typing import NamedTuple

from logstore.disk.directory import list_data_directory
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import LOG_SUFFIX, parse_partition_directory

_WILDCARDS = "*?["


class Place(NamedTuple):
    """A directory to be audited; `is_partition` tells it from a data directory."""

    path: str
    is_partition: bool


def places(words: tuple[str, ...]) -> list[Place]:
    """The directories that `words` name; a glob means all it matches, in the order of names.

    Raises:
        DataDirectoryError: a word that names no directory.
    """
    return [place for word in words for place in _expand(word)]


def _expand(word: str) -> list[Place]:
    if not os.path.lexists(word) and any(c in word for c in _WILDCARDS):
        found = [path for path in sorted(glob.glob(word, recursive=True)) if os.path.isdir(path)]
        if not found:
            raise DataDirectoryError(
                "No directory matches", path=word, advice="quote the pattern so that the shell leaves it alone"
            )
        return [_place(path) for path in found]
    return [_place(word)]


def _place(path: str) -> Place:
    """A directory with segments, or with a partition's name and nothing of a broker's in it, is a partition."""
    directory = list_data_directory(path)
    if any(left_over.endswith(LOG_SUFFIX) for left_over in directory.left_overs):
        return Place(path, is_partition=True)
    is_named = parse_partition_directory(os.path.basename(os.path.abspath(path))) is not None
    return Place(path, is_partition=is_named and not directory.files and not directory.partitions)


def data_directory_of(path: str) -> tuple[str, str | None]:
    """The data directory that `path` is or is in, and the name of the partition's directory in the second case."""
    path = os.path.abspath(path)
    if _place(path).is_partition:
        return os.path.dirname(path), os.path.basename(path)
    return path, None
