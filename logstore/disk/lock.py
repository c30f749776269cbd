"""The lock that a broker holds on a data directory while it runs (`FileLock`, `LogManager.lockLogDirs`)."""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import ClassVar, Protocol

from ..errors import DataDirectoryError
from ..layout import meta_properties
from ..layout.file_names import LOCK_FILE_NAME
from .names import child
from .system_errors import nio_error


class ForkAware(Protocol):
    """What a process has open, and the child of its fork must leave alone."""

    def invalidate_after_fork(self) -> None:
        """Called in the child: from now on everything is refused, and what is open is only let go of."""


_open_things: weakref.WeakSet[ForkAware] = weakref.WeakSet()


def invalidate_when_forked(one: ForkAware) -> None:
    """Call `one.invalidate_after_fork` in each child of a fork, be there a lock or not; it is not kept alive."""
    _open_things.add(one)


class DataDirectoryLock:
    """The lock of one data directory, held from its making until `release`; also against this process itself.

    The `.lock` file is made if need be, and stays. The child of a fork does not hold it: there it counts as released.
    One that nobody has any more is released too: an interrupt may come before who made it could remember it.

    Attributes:
        on_fork: called in the child of a fork; whoever opened the directory must not write there any more.
    """

    _held: ClassVar[weakref.WeakValueDictionary[tuple[int, int], DataDirectoryLock]] = weakref.WeakValueDictionary()
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str) -> None:
        """Raises DataDirectoryError: another process, perhaps a broker, or this one, holds it; in Kafka's words."""
        self.on_fork: weakref.WeakMethod[Callable[[], None]] | None = None
        lock_path = child(path, LOCK_FILE_NAME)
        with self._guard:
            # looked at before it is opened: closing any descriptor of the file would give up this process's lock
            if os.path.exists(lock_path) and _identity(os.stat(lock_path)) in self._held:
                raise _is_held(path)
            try:
                descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            except OSError as error:
                raise nio_error(error, lock_path) from error
            # its `close` is one step, however often it is called: an interrupt leaves it open or closed, never half
            self._file = FileIO(descriptor, "r+")
            weakref.finalize(self, self._file.close).atexit = False
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise _is_held(path) from error
            self._identity = _identity(os.fstat(descriptor))
            self._held[self._identity] = self

    def release(self) -> None:
        """Let others have it; a second call does nothing, or what an interrupted one has left."""
        with self._guard:
            self._file.close()  # first: closing it later would give up the lock of who comes next in this process
            if self._held.get(self._identity) is self:
                del self._held[self._identity]

    @classmethod
    def invalidate_all_after_fork(cls) -> None:
        """In the child of a fork: closing its descriptors leaves the parent's lock held (`fcntl`)."""
        cls._guard = threading.Lock()  # another thread of the parent may have held it
        locks = list(cls._held.values())
        cls._held.clear()
        for lock in locks:
            lock._file.close()
        for lock in locks:
            invalidate = None if lock.on_fork is None else lock.on_fork()
            if invalidate is not None:
                invalidate()


@contextmanager
def data_directory_lock(path: str) -> Iterator[None]:
    """Be alone with the data directory at `path`, by the lock that Kafka takes as well.

    A directory with neither a `.lock` nor a `meta.properties` belongs to no broker and is not locked.

    Raises:
        DataDirectoryError: as `DataDirectoryLock`.
    """
    names = (LOCK_FILE_NAME, meta_properties.FILE_NAME)
    if not any(os.path.exists(child(path, name)) for name in names):
        yield
        return
    lock = DataDirectoryLock(path)
    try:
        yield
    finally:
        lock.release()


def _invalidate_all() -> None:
    for one in list(_open_things):
        one.invalidate_after_fork()
    DataDirectoryLock.invalidate_all_after_fork()


os.register_at_fork(after_in_child=_invalidate_all)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_held(path: str) -> DataDirectoryError:
    return DataDirectoryError(
        f"Failed to acquire lock on file {LOCK_FILE_NAME} in {path}. A Kafka instance in another process or thread "
        "is using this directory.",
        path=path,
        advice="stop that process first; or open the directory read_only",
        java_class="org.apache.kafka.common.KafkaException",
    )
