"""From the words of a command line to the files they mean: files, directories and globs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from logstore.disk.directory import PartitionFiles, list_data_directory, list_partition_directory
from logstore.disk.names import file_name
from logstore.errors import DataDirectoryError, InvalidNameError, LogstoreError
from logstore.layout.file_names import (
    KRAFT_SNAPSHOT_SUFFIX,
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SEGMENT_SUFFIXES,
    base_offset_of,
    parse_kraft_snapshot_name,
    parse_partition_directory,
)

Note = Callable[[LogstoreError], None]

_WILDCARDS = "*?["
_SUFFIXES = (*SEGMENT_SUFFIXES, KRAFT_SNAPSHOT_SUFFIX, PRODUCER_SNAPSHOT_SUFFIX)


def expand(words: list[str], note: Note) -> list[str]:
    """Paths of all files that `words` name.

    A directory means what can be dumped in it: of a partition the segments by offset, each log before its indexes, then
    the snapshots; of a data directory all its partitions. Any other directory with segments in it, as of a copy, counts
    as a partition's. A word with `*`, `?` or `[` that is no file is a glob; `**` is any number of directories.

    Args:
        words: as on the command line.
        note: called with what is left out: foreign directories, links that lead out of a directory or a glob.

    Raises:
        DataDirectoryError: a word that names nothing.
    """
    return [path for word in words for path in _expand(word, note)]


def _expand(word: str, note: Note) -> list[str]:
    if os.path.isdir(word):
        paths = _directory(word, note)
        if not paths:
            raise DataDirectoryError(
                "There is nothing to dump in the directory", path=word, advice="name a partition or a data directory"
            )
        return paths
    if os.path.lexists(word) or not any(c in word for c in _WILDCARDS):
        return [word]
    paths = _glob(word, note)
    if not paths:
        raise DataDirectoryError(
            "No file matches", path=word, advice="quote the pattern so that the shell leaves it alone"
        )
    return paths


def _directory(path: str, note: Note) -> list[str]:
    root = list_data_directory(path)
    loose = _loose(root.left_overs)
    if loose and parse_partition_directory(file_name(os.path.abspath(path))) is not None:
        return _partition(list_partition_directory(path), note)
    for error in root.errors:
        note(error)
    if loose and not root.partitions:
        return loose
    bootstrap = [p for name, p in root.files.items() if name.endswith(KRAFT_SNAPSHOT_SUFFIX)]
    return bootstrap + [p for partition in root.partitions for p in _partition(partition, note)]


def _partition(files: PartitionFiles, note: Note) -> list[str]:
    for error in files.errors:
        note(error)
    paths = []
    for segment in files.segments:
        paths += [segment.log, segment.offset_index, segment.time_index, segment.transaction_index]
    paths += [*files.kraft_snapshots.values(), *files.producer_snapshots.values()]
    return [path for path in paths if path is not None]


def _loose(paths: Iterable[str]) -> list[str]:
    """Of the files in one directory those that can be dumped, in the order that `_partition` has."""
    places = {path: place for path in paths if (place := _place(file_name(path))) is not None}
    log_offsets = {place.offset for place in places.values() if place.suffix == LOG_SUFFIX}
    found = [
        path for path, place in places.items() if place.suffix not in SEGMENT_SUFFIXES or place.offset in log_offsets
    ]
    return sorted(found, key=lambda path: (places[path].order(), path))


class _Place(NamedTuple):
    """Where a file belongs."""

    offset: int
    suffix: str

    def order(self) -> tuple[int, int, int]:
        """Segments by offset and suffix, then each kind of snapshot by offset."""
        rank = _SUFFIXES.index(self.suffix)
        return (0, self.offset, rank) if self.suffix in SEGMENT_SUFFIXES else (rank, self.offset, 0)


def _place(name: str) -> _Place | None:
    suffix = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), None)
    if suffix is None:
        return None
    try:
        snapshot = parse_kraft_snapshot_name(name)
        return _Place(base_offset_of(name) if snapshot is None else snapshot.end_offset, suffix)
    except InvalidNameError:
        return None  # the name of another program's file


def _glob(pattern: str, note: Note) -> list[str]:
    """Files in the order of names; of a directory that matches, what can be dumped in it. No file comes twice."""
    parts = Path(pattern).parts
    fixed_count = next(index for index, part in enumerate(parts) if any(c in part for c in _WILDCARDS))
    base, rest = Path(*parts[:fixed_count]), parts[fixed_count:]
    paths: dict[str, None] = {}
    for match in sorted(_matches(base, rest)):
        try:
            _require_inside(match, base)
            found = _directory(str(match), note) if match.is_dir() else [str(match)]
            paths.update(dict.fromkeys(str(Path(path)) for path in found))
        except LogstoreError as error:
            note(error)
    return list(paths)


def _matches(base: Path, rest: tuple[str, ...]) -> list[Path]:
    try:
        matches = list(base.glob(os.path.join(*rest)))
    except ValueError:  # `**` beside other characters, which older Pythons do not take
        return []
    if any(part.startswith(".") for part in rest):
        return matches
    hidden_from = len(base.parts)
    return [match for match in matches if not any(part.startswith(".") for part in match.parts[hidden_from:])]


def _require_inside(match: Path, base: Path) -> None:
    real_base = os.path.realpath(base)
    if os.path.commonpath([os.path.realpath(match), real_base]) != real_base:
        raise DataDirectoryError(
            "A symbolic link that leads out of the pattern's directory is not followed", path=match
        )
