"""`--follow`: what is added to logs, and logs that are new."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np

from logstore.columns.batch_table import headers
from logstore.disk.file_range import FileIdentity, file_identity
from logstore.disk.loaded import open_log
from logstore.disk.mapped import segment_size
from logstore.disk.names import file_name, is_url, java_file, normal_path, parent
from logstore.disk.paths import exists
from logstore.disk.recognition import name_of_partition
from logstore.errors import DataDirectoryError
from logstore.layout.file_names import LOG_SUFFIX, DirectoryKind, base_offset_of

from .findings import Findings
from .log_dump import Place, dump_log
from .options import DumpOptions
from .output import Output

INTERVAL_S = 0.2  # between two looks at the files


class _SeenLog(NamedTuple):
    """A log at the last look at it."""

    size: int
    identity: FileIdentity | None
    place: Place


class _DoneEnd(NamedTuple):
    """The highest offset that is done of a directory's logs: `path` has it, `end_offset` is behind it."""

    directory: FileIdentity | None
    path: str
    end_offset: int


class DumpFollower:
    """Dumps logs that grow, look by look.

    A batch is printed once it is whole, and with `--isolation-level read_committed` once its transaction has ended.
    Text names the path whenever another log than the last one goes on. What is found in a look is told behind it. A log
    that was deleted is forgotten; if it comes back, it is dumped from its start. A log that the cleaner has put in the
    place of others goes on behind the offsets that were dumped of these.
    """

    def __init__(self, options: DumpOptions, out: Output, stdout: BinaryIO, findings: Findings) -> None:
        self._options = options
        self._out = out
        self._stdout = stdout
        self._findings = findings
        self._seen: dict[str, _SeenLog | None] = {}  # None: named, and deleted
        self._ends: dict[str, _DoneEnd] = {}
        self._paths: list[str] = []  # of this look
        self._last_paths: dict[str, str] = {}  # by directory, of this look
        self._last_path: str | None = None

    def run(self, list_paths: Callable[[], list[str]]) -> NoReturn:
        """Look again and again.

        Args:
            list_paths: called for each look at the files.

        Raises:
            DataDirectoryError: a log became shorter; a broker cuts logs when it starts after a crash.
            LogstoreError: as `dump_log`.
        """
        named = self._options.named
        while True:
            self._paths = [
                path for path in map(java_file, list_paths()) if path in self._seen or _is_followed(path, named)
            ]
            self._last_paths = {_directory(path): path for path in sorted(self._paths, key=_order)}
            for path in dict.fromkeys([*self._paths, *self._seen]):
                try:
                    self._look(path)
                except DataDirectoryError:
                    if exists(path) or (normal_path(path) in named and path not in self._seen):
                        raise  # else it was deleted meanwhile
                    self._forget(path)
            threading.Event().wait(INTERVAL_S)

    def _forget(self, path: str) -> None:
        self._seen.pop(path, None)
        if path in self._paths:
            self._seen[path] = None

    def _look(self, path: str) -> None:
        """Dump what was added to a log, and tell what is found in it."""
        size, identity = segment_size(path), file_identity(path)
        seen = self._seen.get(path)
        is_same = seen is not None and (seen.identity == identity or is_url(path))
        place = seen.place if seen is not None and is_same else self._first_place(path)
        if seen is not None and is_same and size == seen.size and not seen.place.is_held:
            return
        if place is not None and size < place.position:
            raise DataDirectoryError(
                "The log was cut while it was followed",
                path=path,
                expected=f"at least {place.position} bytes, which were dumped",
                found=f"{size} bytes",
                advice="a recovery or a new leader cuts a log: follow it anew",
            )
        out = self._out
        is_titled = self._options.format == "text" and path != self._last_path
        title = f"Dumping {path}\n".encode("utf-8", "replace") if is_titled else b""
        out.write(title)
        is_printed = False
        try:
            place = dump_log(path, self._options, out, self._findings, place)
            is_printed = out.array[: out.size] != title
            if not is_printed:
                out.size = 0
        finally:
            out.flush()
            self._stdout.flush()
        self._findings.print()
        self._seen[path] = _SeenLog(size, identity, place)
        directory = _directory(path)
        if place.end_offset > self._end_offset(directory):
            self._ends[directory] = _DoneEnd(file_identity(directory), path, place.end_offset)
        if is_printed:
            self._last_path = path

    def _first_place(self, path: str) -> Place | None:
        """Return the place in a log behind all offsets that are done; None if it begins there, or none are."""
        end_offset = self._end_offset(_directory(path))
        if not end_offset or base_offset_of(file_name(path)) >= end_offset:
            return None
        position = 0
        with open_log(path) as log:
            for table in headers(log.data, load=log.load):
                rows = np.flatnonzero(table.last_offset >= end_offset)
                if rows.size:
                    position = int(table.position[rows[0]])
                    break
                position = table.next_position
        return Place(position, end_offset - 1, end_offset=end_offset) if position else None

    def _end_offset(self, directory: str) -> int:
        """Return the offset behind all that are done of a directory's logs; 0 where it was cut or made anew."""
        end = self._ends.get(directory)
        if end is None or end.directory != file_identity(directory):
            return 0
        last_path = self._last_paths.get(directory, "")  # a cleaner leaves that log, or a later one
        return end.end_offset if _order(last_path) >= _order(end.path) else 0


def _directory(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _order(path: str) -> tuple[int, str]:
    """Return what sorts the logs of a directory by the offsets in their names."""
    return len(path), path


def _is_followed(path: str, named: frozenset[str]) -> bool:
    """Return whether a path is that of a log, outside a directory that a broker has set aside, unless that is named."""
    path = normal_path(path)
    name = name_of_partition(parent(path))
    is_aside = name is not None and name.kind is not DirectoryKind.LIVE
    return path.endswith(LOG_SUFFIX) and not (is_aside and named.isdisjoint((path, parent(path))))
