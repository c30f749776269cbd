"""Facts of partitions that tasks of table `findings` leave on their machine for the task that joins them.

A data source in Python has one stage, so no task can be made to follow others. Spark starts the joining task last: it
waits for tasks of this machine that are not done, takes the facts that are there, and reads the logs of the other
partitions itself. So facts on another machine cost time, and no finding. They lie in a directory of the user's own
below that of temporary files, and are gone when they are taken; what a task leaves later is removed by a query of
another day.
"""

from __future__ import annotations

import fcntl
import logging
import os
import pickle
import tempfile
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import TaskContext

from logstore import clock
from logstore.audit.verify import PartitionFacts
from logstore.disk.files import read_file
from logstore.disk.names import child
from logstore.disk.seam import SEAM
from logstore.disk.system_errors import is_missing
from logstore.errors import DataDirectoryError

from .staging import IDLE_MS_MAX, StagingDirectory

_LOGGER = logging.getLogger("logstore")
_PREFIX = "logstore-findings-"
_WRITTEN = ".facts"  # the end of the name of a file that is whole


class LeftFacts:
    """The facts of partitions of the data directory at `root`, left by tasks of one run of a query."""

    def __init__(self, root: str, query: str) -> None:
        """`query` is a name that nobody else knows."""
        context = TaskContext.get()
        stage = 0 if context is None else context.stageId()  # a query may run again, over files that have changed
        self.place = tempfile.gettempdir()
        self.path = child(self.place, f"{_PREFIX}{query}-{stage}-{zlib.crc32(root.encode())}")

    @contextmanager
    def leaving(self) -> Iterator[list[PartitionFacts]]:
        """`with` block of a task that leaves the facts which it adds to the list, and is waited for until it ends.

        Where they cannot be left, another task reads the logs again.
        """
        facts = list[PartitionFacts]()
        path = self._new_file()
        descriptor = None if path is None else _created(path)
        if path is None or descriptor is None:
            yield facts
            return
        try:
            yield facts
            _write(descriptor, facts, path)
        finally:
            SEAM.close(descriptor)

    def take(self) -> dict[str, PartitionFacts]:
        """Return the facts that are here, by the path of the partition; remove them, and those of another day."""
        found: dict[str, PartitionFacts] = {}
        try:
            if self._is_ours():
                for name in os.listdir(self.path):
                    if not name.endswith(_WRITTEN):
                        _wait_for(child(self.path, name))
                for name in os.listdir(self.path):
                    if name.endswith(_WRITTEN):
                        left: list[PartitionFacts] = pickle.loads(read_file(child(self.path, name)))
                        found |= {facts.partition.files.path: facts for facts in left}
                StagingDirectory(self.path).discard()
            self._remove_old()
        except (DataDirectoryError, OSError) as error:
            _LOGGER.debug("facts of other tasks cannot be read: %s", error)
        return found

    def _new_file(self) -> str | None:
        """Return the path of a file that is to be made; None where others could write."""
        try:
            if not os.path.isdir(self.path):
                SEAM.make_directory(self.path)
        except DataDirectoryError:
            pass  # another task has made it, or nobody can
        return child(self.path, uuid.uuid4().hex) if self._is_ours() else None

    def _is_ours(self) -> bool:
        """Return whether it is a directory that only this user can write to: what others write is not unpickled."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return os.path.isdir(self.path) and status.st_uid == os.geteuid() and not status.st_mode & 0o022

    def _remove_old(self) -> None:
        with os.scandir(self.place) as entries:
            for entry in entries:
                if entry.name.startswith(_PREFIX) and _is_old(entry):
                    StagingDirectory(entry.path).discard()


def _is_old(entry: os.DirEntry[str]) -> bool:
    status = entry.stat(follow_symlinks=False)
    return status.st_uid == os.geteuid() and clock.now_ms() - status.st_mtime_ns // 1_000_000 > IDLE_MS_MAX


def _created(path: str) -> int | None:
    """Create a file, and lock it while it is written: a descriptor, or None if it cannot be created."""
    try:
        descriptor = SEAM.create(path)
    except DataDirectoryError as error:
        _LOGGER.debug("facts for another task cannot be left: %s", error)
        return None
    _lock(descriptor)
    return descriptor


def _lock(descriptor: int) -> None:
    """Lock a file once no other process has it locked; where files cannot be locked, nobody is waited for.

    The lock is the process's: it ends with the process, and nothing in the same process waits for it.
    """
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        _LOGGER.debug("tasks that still gather facts are not waited for: %s", error)


def _write(descriptor: int, facts: list[PartitionFacts], path: str) -> None:
    try:
        SEAM.write(descriptor, pickle.dumps(facts))
        SEAM.rename(path, path + _WRITTEN)
    except DataDirectoryError as error:
        _LOGGER.debug("facts for another task cannot be left: %s", error)


def _wait_for(path: str) -> None:
    """Return when nobody writes the file any more; raise DataDirectoryError if it cannot be opened."""
    try:
        descriptor = SEAM.open(path)
    except DataDirectoryError as error:
        if is_missing(error):
            return  # it has its last name
        raise
    try:
        _lock(descriptor)
    finally:
        SEAM.close(descriptor)
