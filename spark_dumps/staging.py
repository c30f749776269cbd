"""The staging directory of a job, which driver and executors share: rows stay in it until all tasks are done.

The driver makes the directory. Each attempt of a task writes one file into it, and the driver reads the files of the
successful attempts. Then it renames and removes the directory, so that a late attempt cannot leave a file behind.

The next job in the same place removes the directory of a dead driver: at once if it has the same transactional id, as
Kafka fences a producer, else when nothing was written into it for a day. A driver that is still alive then finds no
rows, and fails before any of them is visible.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator
from types import TracebackType

import pyarrow as pa

from logstore.disk.names import child, file_name, parent
from logstore.disk.seam import SEAM
from logstore.disk.system_errors import is_missing
from logstore.errors import DataDirectoryError

_LOGGER = logging.getLogger("logstore")
IDLE_MS_MAX = 24 * 60 * 60 * 1000
_DELETED_SUFFIX = "-delete"
_NAME = re.compile(r"\.kafka_segments-([0-9a-f]{16})-[0-9a-f]{32}(?:-delete)?$")


class StagingDirectory:
    """The staging directory of one job, by its absolute `path`; can be pickled for executors."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def make(cls, place: str, path: str, transactional_id: str, now_ms: int) -> StagingDirectory:
        """Make a directory in `place` for a job that writes to the data directory `path`; remove those of dead jobs.

        Raises DataDirectoryError, also if that of an older job with the same transactional id cannot be removed.
        """
        mark = hashlib.sha256(f"{path}\0{transactional_id}".encode()).hexdigest()[:16]
        made = cls(child(place, f"{file_name(path)}.kafka_segments-{mark}-{uuid.uuid4().hex}"))
        try:
            _make_directories(place)
            for other in _others(place):
                if other.endswith(_DELETED_SUFFIX) or _idle_ms(other, now_ms) > IDLE_MS_MAX:
                    cls(other).discard()
                elif _mark(other) == mark:
                    cls(other).remove()
            SEAM.make_directory(made.path)
        except (DataDirectoryError, OSError) as error:
            raise DataDirectoryError(
                "the job's staging directory cannot be made",
                path=made.path,
                found=error,
                advice="set stagingPath to a directory that driver and executors share and may write",
            ) from error
        return made

    def is_there(self) -> bool:
        """Return whether the directory is still there; a newer job may have removed it."""
        return os.path.isdir(self.path)

    def discard(self) -> None:
        """Remove the directory; log a warning if that fails, since what is left only takes room."""
        try:
            self.remove()
        except DataDirectoryError as error:
            _LOGGER.warning("The staging directory %s of a finished job cannot be removed: %s", self.path, error)

    def remove(self) -> None:
        """Remove the directory and its files; a second call does nothing."""
        doomed = self.path
        if not doomed.endswith(_DELETED_SUFFIX):
            # renamed first: a task cannot create files in it any more
            doomed += _DELETED_SUFFIX
            if not _is_done(SEAM.rename, self.path, doomed):
                return
        try:
            names = os.listdir(doomed)
        except FileNotFoundError:
            return
        for name in names:
            _is_done(SEAM.unlink, child(doomed, name))
        _is_done(SEAM.remove_directory, doomed)


class StagedFile:
    """A new file of Arrow batches in a job's directory; leaving a `with` block by an error removes it."""

    def __init__(self, directory: StagingDirectory, schema: pa.Schema) -> None:
        """Raises DataDirectoryError: the job is over, or its directory is not shared with this machine."""
        self.name = f"{uuid.uuid4().hex}.arrow"
        self.row_count, self.size = 0, 0
        self._path = child(directory.path, self.name)
        try:
            self._descriptor = SEAM.create(self._path)
        except DataDirectoryError as error:
            raise DataDirectoryError(
                "the job's staging directory cannot be written by this task",
                path=directory.path,
                found=error,
                advice="set stagingPath to a directory that driver and executors share and may write, unless the job "
                "has ended already",
            ) from error
        self._write(schema.serialize())

    def append(self, batch: pa.RecordBatch) -> None:
        self._write(batch.serialize())
        self.row_count += batch.num_rows
        self.size += batch.nbytes

    def __enter__(self) -> StagedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        SEAM.close(self._descriptor)
        if error is not None:
            _is_done(SEAM.unlink, self._path)

    def _write(self, message: pa.Buffer) -> None:
        SEAM.write(self._descriptor, memoryview(message).cast("B"))


def staged_batches(path: str, row_count: int) -> Iterator[pa.RecordBatch]:
    """Iterate over the batches of a staged file, one in memory at a time; raise DataDirectoryError for a wrong one."""
    found = 0
    try:
        with pa.OSFile(path) as file:
            for batch in pa.ipc.open_stream(file):
                found += batch.num_rows
                yield batch
    except (pa.ArrowException, OSError) as error:
        raise DataDirectoryError("a staged file cannot be read", path=path, found=error) from error
    if found != row_count:
        raise DataDirectoryError(
            "a staged file has another number of rows than its task wrote",
            path=path,
            expected=f"{row_count} rows",
            found=found,
            advice="check that stagingPath is on the same file system for all executors",
        )


def _make_directories(path: str) -> None:
    """Make the directory at `path` and its parents; another job may do so at the same time."""
    if os.path.isdir(path):
        return
    _make_directories(parent(path))
    try:
        SEAM.make_directory(path)
    except DataDirectoryError:
        if not os.path.isdir(path):
            raise


def _others(place: str) -> list[str]:
    return [child(place, name) for name in sorted(os.listdir(place)) if _NAME.search(name)]


def _mark(path: str) -> str:
    match = _NAME.search(path)
    assert match is not None
    return match[1]


def _idle_ms(path: str, now_ms: int) -> int:
    """Return the ms since the last write into the directory; 0 if it is gone."""
    try:
        with os.scandir(path) as entries:
            times = [entry.stat().st_mtime_ns for entry in entries]
        return now_ms - max([*times, os.stat(path).st_mtime_ns]) // 1_000_000
    except FileNotFoundError:
        return 0


def _is_done(change: Callable[..., None], *paths: str) -> bool:
    """Make the change; return False if another process has removed the file or directory."""
    try:
        change(*paths)
    except DataDirectoryError as error:
        if not is_missing(error):
            raise
        return False
    return True
