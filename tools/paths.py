"""Words of a command line: files to dump, partitions, data directories, and globs of all of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from logstore.disk import paths
from logstore.disk.directory import PartitionFiles, list_data_directory, list_partition_directory
from logstore.disk.names import file_name, is_url, normal_path, parent, path_text
from logstore.disk.recognition import (
    name_of_partition,
    names_partition,
    nothing_there,
    refused_partition,
    require_no_parent,
)
from logstore.disk.system_errors import nio_error
from logstore.errors import DataDirectoryError, InvalidNameError, LogstoreError, UsageError
from logstore.layout.file_names import (
    DUMPED_SUFFIXES,
    KRAFT_SNAPSHOT_SUFFIX,
    DirectoryKind,
    PartitionDirectory,
)

Note = Callable[[LogstoreError], None]

_UNNAMED = PartitionDirectory("", 0, DirectoryKind.LIVE)  # stands for the name of a directory that has segments


def input_paths(word: str, note: Note) -> list[tuple[str, bool]]:
    """Return the directories that a word names, each with whether it is a partition, and no data directory.

    A file of a partition stands for the partition. A glob passes over other files. Raises UsageError for others.
    """
    is_glob, found = _is_glob(path_text(word)), dict[str, bool]()
    for path in _glob(word, note) if is_glob else [word]:
        around = _partition_of(path)
        if around is not None:
            found[around] = True
        elif path not in found and (paths.is_directory(path) or not is_glob):
            found[path] = names_partition(path)
    if not found:
        raise _no_match("directory", word)
    return list(found.items())


def each_once(named: Iterable[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return what `input_paths` found for several words without what is named twice, under whatever path.

    A data directory stands for the partitions in it.
    """
    found: dict[str, tuple[str, bool]] = {}
    for path, is_one in named:
        found.setdefault(paths.real_path(path), (path, is_one))
    roots = {real_path for real_path, (_, is_one) in found.items() if not is_one}
    return [one for real_path, one in found.items() if os.path.dirname(real_path) not in roots or _is_apart(*one)]


def _is_apart(path: str, is_one: bool) -> bool:
    """Return whether a directory in a data directory is not looked at with that: one that is to be deleted."""
    name = name_of_partition(path)
    return not is_one or name is None or name.kind is not DirectoryKind.LIVE


def _partition_of(path: str) -> str | None:
    """Return the partition that the file at `path` is in; None for anything else."""
    around = os.path.dirname(path) or os.curdir
    if not paths.is_file(path):
        return None
    try:
        return around if names_partition(around) else None
    except UsageError:
        return None


def _only(word: str, note: Note) -> tuple[str, bool]:
    found = input_paths(word, note)
    if len(found) > 1:
        raise UsageError("The pattern matches several", path=word, expected="one", found=len(found))
    return found[0]


def data_directory(word: str, note: Note) -> str:
    """Return the data directory that a word names; raise UsageError for a partition, for several, and for neither."""
    return whole_directory(*_only(word, note))


def whole_directory(path: str, is_one: bool) -> str:
    """Return the path of a data directory; raise UsageError for that of a partition."""
    if is_one:
        raise refused_partition(path)
    return path


def partition_directory(word: str, note: Note) -> str:
    """Return the partition that a word names, all of whose files can be listed."""
    path = _partition(word, note)
    for error in list_partition_directory(path).errors:
        raise error
    return path


def readable_partition(word: str, note: Note) -> str:
    """Return the partition that a word names, for a verb that only reads it; note what a broker does not make there.

    Raises DataDirectoryError for a link that is not followed: what it leads to would be missing.
    """
    path = _partition(word, note)
    for error in list_partition_directory(path).errors:
        assert error.path is not None
        if os.path.islink(error.path) or not (isinstance(error, InvalidNameError) or os.path.exists(error.path)):
            raise error
        note(error)
    return path


def _partition(word: str, note: Note) -> str:
    path, is_one = _only(word, note)
    if not is_one:
        names = [file_name(one.path) for one in list_data_directory(path).partitions]
        names.sort(key=lambda name: name.startswith("__"))  # users' topics first
        raise UsageError(
            "This is a data directory, not a partition",
            path=path,
            advice=f"did you mean {os.path.join(path, names[0])}?" if names else None,
        )
    return path


def place_of(path: str, is_one: bool) -> tuple[str, str | None]:
    """Return a data directory with None, or the one around a partition with the partition's name."""
    path = normal_path(path)
    return (parent(path), file_name(path)) if is_one else (path, None)


def require_accessible(path: str, *, writes: bool) -> None:
    """Raise DataDirectoryError for a file below `path` that this user may not read, or not write if `writes`."""
    mode = os.R_OK | os.W_OK if writes else os.R_OK
    for folder, _, names in os.walk(path):
        for one in (folder, *(os.path.join(folder, name) for name in sorted(names))):
            if not os.access(one, mode) and os.path.lexists(one):
                is_readable = os.access(one, os.R_OK) and os.statvfs(one).f_flag & os.ST_RDONLY
                number = errno.EROFS if is_readable else errno.EACCES
                refused = OSError(number, os.strerror(number), one)
                raise nio_error(refused, one) from refused


def is_in_directory(path: str) -> bool:
    """Return whether there is a directory for a file at `path`; raise UsageError for an empty path."""
    return os.path.isdir(os.path.dirname(path_text(path)) or os.curdir)


def require_named(words: Iterable[str]) -> None:
    """Raise UsageError for a word that names nothing, but for a file that Kafka's tool would try to open."""
    for word in words:
        if not (word.endswith(DUMPED_SUFFIXES) or paths.exists(word) or _is_glob(word)):
            raise nothing_there(word, "file or directory", "a file, a partition or a data directory")


def dump_files(words: Iterable[str], note: Note) -> list[str]:
    """Return the paths of all files that `words` name.

    A partition means its segments by offset, each log before its indexes, then its snapshots. A data directory means
    all its partitions. Any other directory with segments in it, such as a copy, counts as a partition. A word with `*`,
    `?` or `[` that is no file is a glob; `**` is any number of directories.

    Args:
        note: gets an error for each entry that is left out: a foreign directory, a link that leads out.

    Raises:
        DataDirectoryError: a word names nothing.
    """
    return [path for word in words for path in _dump_files(word, note)]


def _dump_files(word: str, note: Note) -> list[str]:
    if paths.is_directory(word):
        files = _files_of_directory(word, note)
        if not files:
            for error in list_partition_directory(word).errors if name_of_partition(word) else ():
                raise error
            require_no_parent(word)
            raise DataDirectoryError(
                "There is nothing to dump in the directory", path=word, advice="name a partition or a data directory"
            )
        return files
    if not _is_glob(word):
        return [word]
    matched: dict[str, None] = {}  # a file in two matches comes once
    for match in _glob(word, note):
        try:
            found = _files_of_directory(match, note) if paths.is_directory(match) else [match]
            matched.update(dict.fromkeys(path if is_url(path) else str(Path(path)) for path in found))
        except LogstoreError as error:
            note(error)
    if not matched:
        raise _no_match("file", word)
    return list(matched)


def _files_of_directory(path: str, note: Note) -> list[str]:
    root = list_data_directory(path)
    name = name_of_partition(path)
    if name is not None:
        files = list_partition_directory(path)
        if files.segments or files.kraft_snapshots or files.producer_snapshots:
            return _files_of_partition(files, note)
    for error in root.errors:
        note(error)
    partitions = root.partitions
    if not partitions:  # segments in any other directory, where files with other names are not errors
        partitions = (list_partition_directory(path, root=path, name=name or _UNNAMED)._replace(errors=()),)
    bootstrap = [path for name, path in root.files.items() if name.endswith(KRAFT_SNAPSHOT_SUFFIX)]
    return [*bootstrap, *(path for partition in partitions for path in _files_of_partition(partition, note))]


def _files_of_partition(files: PartitionFiles, note: Note) -> list[str]:
    for error in files.errors:
        note(error)
    segments = [
        path
        for segment in files.segments
        for path in (segment.log, segment.offset_index, segment.time_index, segment.transaction_index)
        if path is not None
    ]
    return [*segments, *files.kraft_snapshots.values(), *files.producer_snapshots.values()]


def _is_glob(word: str) -> bool:
    return any(c in word for c in paths.WILDCARDS) and not paths.exists(word)


def _no_match(what: str, pattern: str) -> DataDirectoryError:
    return DataDirectoryError(
        f"No {what} matches", path=pattern, advice="quote the pattern so that the shell leaves it alone"
    )


def _glob(pattern: str, note: Note) -> list[str]:
    """Return the paths that the pattern matches, by name; note and leave out links that lead out of its directory."""
    if is_url(pattern):
        return paths.url_matches(pattern)
    parts = Path(pattern).parts
    fixed_count = next(index for index, part in enumerate(parts) if any(c in part for c in paths.WILDCARDS))
    base, rest = Path(*parts[:fixed_count]), parts[fixed_count:]
    found = []
    real_base = os.path.realpath(base)
    for match in sorted(_matches(base, rest)):
        if os.path.commonpath([os.path.realpath(match), real_base]) == real_base:
            found.append(str(match))
        else:
            text = "A symbolic link that leads out of the pattern's directory is not followed"
            note(DataDirectoryError(text, path=match))
    return found


def _matches(base: Path, rest: tuple[str, ...]) -> list[Path]:
    try:
        matches = list(base.glob(os.path.join(*rest)))
    except ValueError:  # `**` beside other characters, before Python 3.13
        return []
    if any(part.startswith(".") for part in rest):
        return matches
    hidden_from = len(base.parts)
    return [match for match in matches if not any(part.startswith(".") for part in match.parts[hidden_from:])]
