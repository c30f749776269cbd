"""Facts of partitions that tasks of table `findings` leave on their machine for the task that joins them.

A data source in Python has one stage, so no task waits for others. Spark starts the joining task last: it takes the
facts that are there by then, and reads the logs of the other partitions itself. So facts on another machine cost time,
and no finding. They lie in a directory of the user's own below that of temporary files, and are gone when they are
taken; what a task leaves later is removed by a query of another day.
"""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
import uuid
import zlib
from collections.abc import Sequence

from pyspark import TaskContext

from logstore import clock
from logstore.audit.verify import PartitionFacts
from logstore.disk.files import read_file
from logstore.disk.names import child
from logstore.disk.seam import SEAM
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

    def leave(self, facts: Sequence[PartitionFacts]) -> None:
        """Leave the facts of partitions; where that fails, another task reads their logs again."""
        try:
            if not os.path.isdir(self.path):
                SEAM.make_directory(self.path)
        except DataDirectoryError:
            pass  # another task has made it, or nobody can
        if not self._is_ours():
            return
        path = child(self.path, uuid.uuid4().hex)
        try:
            descriptor = SEAM.create(path)
            try:
                SEAM.write(descriptor, pickle.dumps(list(facts)))
            finally:
                SEAM.close(descriptor)
            SEAM.rename(path, path + _WRITTEN)
        except DataDirectoryError as error:
            _LOGGER.debug("facts for another task cannot be left: %s", error)

    def take(self) -> dict[str, PartitionFacts]:
        """Return the facts that are here, by the path of the partition; remove them, and those of another day."""
        found: dict[str, PartitionFacts] = {}
        try:
            if self._is_ours():
                for name in os.listdir(self.path):
                    if name.endswith(_WRITTEN):
                        left: list[PartitionFacts] = pickle.loads(read_file(child(self.path, name)))
                        found |= {facts.partition.files.path: facts for facts in left}
                StagingDirectory(self.path).discard()
            self._remove_old()
        except (DataDirectoryError, OSError) as error:
            _LOGGER.debug("facts of other tasks cannot be read: %s", error)
        return found

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
