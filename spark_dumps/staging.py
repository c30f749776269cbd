"""Where the rows of a job wait until all of its tasks are done: a directory that driver and executors share.

The driver makes the job's directory, each attempt of a task puts one file into it, and the driver reads those files
that the tasks which count have told of. Then the directory is renamed and removed: whatever an attempt does that comes
late, it finds no directory, and leaves nothing.

A directory whose driver died is removed by the next job beside it, if that job has the same transactional id, as Kafka
fences a producer by its next one, or if nothing was written into it for a day. It is no harm if its driver did live:
the job finds its rows gone, and fails before anything is visible.
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
    """The directory of one job; its value may be sent to executors.

    Attributes:
        path: absolute.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def make(cls, place: str, path: str, transactional_id: str, now_ms: int) -> StagingDirectory:
        """A new one in the directory `place`, for a job that writes to the data directory `path`.

        Those of dead jobs that are there are removed.

        Raises:
            DataDirectoryError: it cannot be made, or that of an older job with the same transactional id stays.
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
        """Whether no newer job has removed it."""
        return os.path.isdir(self.path)

    def discard(self) -> None:
        """As `remove`; what cannot be removed is told in the log only, for it does no harm but to take room."""
        try:
            self.remove()
        except DataDirectoryError as error:
            _LOGGER.warning("The staging directory %s of a job that is over stays: %s", self.path, error)

    def remove(self) -> None:
        """Remove it with all that is in it, so that nothing can come into it meanwhile; a second call does nothing."""
        doomed = self.path
        if not doomed.endswith(_DELETED_SUFFIX):
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
    """A new file of Arrow batches in a job's directory; use it in a `with` block, after an error it is gone.

    Attributes:
        name: in the directory.
        row_count, size: of what was appended, in rows and bytes.
    """

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
                advice="set stagingPath to a directory that driver and executors share and may write; or the job is "
                "over, and this attempt of a task came too late",
            ) from error
        self._write(schema.serialize())

    def append(self, batch: pa.RecordBatch) -> None:
        """Write a batch of the file's schema."""
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
    """The batches of a staged file, one in memory at a time.

    Raises:
        DataDirectoryError: it is not there, or it does not have that many rows.
    """
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
            "a staged file is not what its task wrote",
            path=path,
            expected=f"{row_count} rows",
            found=found,
            advice="see whether the file system that stagingPath is on is the same for all executors",
        )


def _make_directories(path: str) -> None:
    """The directory at `path`, and those above it; another job may be making them too."""
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
    """How long nobody has written into the directory; 0 if it is gone."""
    try:
        with os.scandir(path) as entries:
            times = [entry.stat().st_mtime_ns for entry in entries]
        return now_ms - max([*times, os.stat(path).st_mtime_ns]) // 1_000_000
    except FileNotFoundError:
        return 0


def _is_done(change: Callable[..., None], *paths: str) -> bool:
    """Make the change; False if somebody else has removed what was to be changed."""
    try:
        change(*paths)
    except DataDirectoryError as error:
        if not is_missing(error):
            raise
        return False
    return True
