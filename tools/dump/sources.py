"""From the words of a command line to the files they mean: files, directories and globs."""

from __future__ import annotations

import glob
import os

from logstore.disk.directory import PartitionFiles, list_data_directory, list_partition_directory
from logstore.disk.names import file_name
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import parse_partition_directory

_WILDCARDS = "*?["


def expand(words: list[str]) -> list[str]:
    """Paths of all files that `words` name.

    A directory means what can be dumped in it: of a partition the segments by offset, each log before its indexes, then
    the snapshots; of a data directory all its partitions. A word with `*`, `?` or `[` that is no file is a glob.

    Raises:
        DataDirectoryError: a word that names nothing.
    """
    return [path for word in words for path in _expand(word)]


def _expand(word: str) -> list[str]:
    if os.path.isdir(word):
        return _directory(word)
    if not os.path.lexists(word) and any(c in word for c in _WILDCARDS):
        matches = sorted(glob.glob(word, recursive=True))
        if not matches:
            raise DataDirectoryError(
                "No file matches", path=word, advice="quote the pattern so that the shell leaves it alone"
            )
        return [path for match in matches for path in (_directory(match) if os.path.isdir(match) else [match])]
    return [word]


def _directory(path: str) -> list[str]:
    if parse_partition_directory(file_name(os.path.realpath(path))) is not None:
        return _partition(list_partition_directory(path))
    directory = list_data_directory(path)
    bootstrap = [p for name, p in directory.files.items() if name.endswith(".checkpoint")]
    return bootstrap + [p for partition in directory.partitions for p in _partition(partition)]


def _partition(files: PartitionFiles) -> list[str]:
    paths = []
    for segment in files.segments:
        paths += [segment.log, segment.offset_index, segment.time_index, segment.transaction_index]
    paths += [*files.kraft_snapshots.values(), *files.producer_snapshots.values()]
    return [path for path in paths if path is not None]
