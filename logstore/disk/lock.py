"""Lock that a broker holds on a data directory while it runs (`FileLock`, `LogManager.lockLogDirs`)."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import ClassVar, Protocol

from ..calls import SHORT, alone
from ..errors import DataDirectoryError
from ..layout import meta_properties
from ..layout.file_names import LOCK_FILE_NAME
from .names import child
from .seam import FILE_MODE
from .system_errors import nio_error

# `struct flock`: type, whence, start, length and process, or these two behind the others
_FLOCK = struct.Struct("@qqihh" if sys.platform == "darwin" else "@hhqqi0q")
_PROCESS, _TYPE = (2, 3) if sys.platform == "darwin" else (4, 0)


class ForkAware(Protocol):
    """An open object that the child of a fork must leave alone."""

    def invalidate_after_fork(self) -> None:
        """Disown what is open, in the child: refuse every call, and only close what is open."""


_open_things: weakref.WeakSet[ForkAware] = weakref.WeakSet()


def invalidate_when_forked(opened: ForkAware) -> None:
    """Call `invalidate_after_fork` in each child of a fork; the object is not kept alive, and needs no lock."""
    _open_things.add(opened)


class DataDirectoryLock:
    """Lock of one data directory, held from creation until `release`, against this process too.

    The `.lock` file is created if missing, and stays. In the child of a fork the lock counts as released. A lock that
    nothing refers to is released: an interrupt may come before its creator could store it.

    Attributes:
        on_fork: called in the child of a fork; the owner of the directory must not write there any more.
    """

    _held: ClassVar[weakref.WeakValueDictionary[tuple[int, int], DataDirectoryLock]] = weakref.WeakValueDictionary()
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: str) -> None:
        """Take the lock; raise DataDirectoryError, in Kafka's words, if a broker or any process holds it."""
        self.on_fork: weakref.WeakMethod[Callable[[], None]] | None = None
        lock_path = child(path, LOCK_FILE_NAME)
        with alone(SHORT), self._guard:
            # checked before opening: closing any descriptor of the file would drop this process's lock (POSIX)
            if os.path.exists(lock_path) and (holder := self._held.get(_identity(os.stat(lock_path)))) is not None:
                raise _is_held(path, holder)
            try:
                descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
            except OSError as error:
                raise nio_error(error, lock_path) from error
            # its `close` is a single step: an interrupt leaves it open or closed, never half-closed
            self._file = FileIO(descriptor, "r+")
            weakref.finalize(self, self._file.close).atexit = False
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as error:  # EAGAIN, EACCES
                process = _holder_of(path, descriptor)
                self._file.close()
                raise _is_held(path, process=process) from error
            except OSError as error:
                self._file.close()
                raise _cannot_lock(path, error) from error
            self._identity = _identity(os.fstat(descriptor))
            self._held[self._identity] = self

    def release(self) -> None:
        """Release the lock; a second call does nothing, or completes an interrupted one."""
        with alone(SHORT), self._guard:
            self._file.close()  # first: closed later, it would drop the lock that this process may have taken again
            if self._held.get(self._identity) is self:
                del self._held[self._identity]

    @classmethod
    def invalidate_all_after_fork(cls) -> None:
        """Release all locks in the child of a fork: closing its descriptors leaves the parent's held (`fcntl`)."""
        cls._guard = threading.Lock()  # another thread of the parent may hold the old one for ever
        locks = list(cls._held.values())
        cls._held.clear()
        for lock in locks:
            lock._file.close()
        for lock in locks:
            invalidate = None if lock.on_fork is None else lock.on_fork()
            if invalidate is not None:
                invalidate()


def require_not_held(path: str) -> None:
    """Raise DataDirectoryError, as `DataDirectoryLock`, if a broker or any process holds the lock.

    Nothing is made, and the lock is not taken: a broker that starts meanwhile gets it.
    """
    lock_path = child(path, LOCK_FILE_NAME)
    if not os.path.exists(lock_path):
        return
    with alone(SHORT), DataDirectoryLock._guard:
        # checked before opening, as there
        if (holder := DataDirectoryLock._held.get(_identity(os.stat(lock_path)))) is not None:
            raise _is_held(path, holder)
        try:
            file = open(lock_path, "rb")  # noqa: SIM115 - a reader's: it may be on a read-only mount
        except OSError as error:
            raise nio_error(error, lock_path) from error
        with file:
            process = _holder_of(path, file.fileno())
        if process is not None:
            raise _is_held(path, process=process)


@contextmanager
def data_directory_lock(path: str) -> Iterator[None]:
    """Lock the data directory at `path` for the block, with Kafka's lock.

    A directory with neither a `.lock` nor a `meta.properties` belongs to no broker and is not locked.
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


def _holder_of(path: str, descriptor: int) -> int | None:
    """Return which process has locked the file; 0 if it is of another machine, None if nobody has (`F_GETLK`)."""
    asked = [0] * 5
    asked[_TYPE] = fcntl.F_WRLCK
    try:
        answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(*asked)))
    except OSError as error:
        raise _cannot_lock(path, error) from error
    return None if answer[_TYPE] == fcntl.F_UNLCK else max(answer[_PROCESS], 0)


def _invalidate_all() -> None:
    for opened in list(_open_things):
        opened.invalidate_after_fork()
    DataDirectoryLock.invalidate_all_after_fork()


os.register_at_fork(after_in_child=_invalidate_all)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def is_lock_held(error: DataDirectoryError) -> bool:
    """Return whether the error says that another process, or this one, holds the lock of a directory."""
    return error.path is not None and error.message == _held_message(str(error.path))


def _is_held(path: str, holder: DataDirectoryLock | None = None, *, process: int | None = None) -> DataDirectoryError:
    """Return the error; `holder` is the lock of this very process, so that no other one can be stopped."""
    advice = "stop that process first; or open the directory read_only"
    found = f"process {process}" if process else None
    if holder is not None:
        owner = None if holder.on_fork is None else getattr(holder.on_fork(), "__self__", None)
        found = f"this process itself, by {owner!r}" if owner is not None else "this process itself"
        advice = "go on with that store, or close it first, as before a notebook cell runs again"
    return DataDirectoryError(
        _held_message(path),
        path=path,
        found=found,
        advice=advice,
        java_class="org.apache.kafka.common.KafkaException",
    )


def _cannot_lock(path: str, error: OSError) -> DataDirectoryError:
    """Return the error for a file system without locks, such as some mounts of NFS: no broker starts there either."""
    return DataDirectoryError(
        f"Disk error while locking directory {path}",
        path=child(path, LOCK_FILE_NAME),
        expected="a file system with locks",
        found=error.strerror,
        advice="see to its lock service, or put the directory elsewhere; or open it read_only",
        java_class="java.io.IOException",
    )


def _held_message(path: str) -> str:
    return (
        f"Failed to acquire lock on file {LOCK_FILE_NAME} in {path}. A Kafka instance in another process or thread "
        "is using this directory."
    )
