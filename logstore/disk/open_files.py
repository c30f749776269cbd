"""The budget of open files of a process: what can be opened again is closed, the least recently used first.

    files.require_spare()              # before a change: else it might run out of descriptors in the middle
    files.add(owner)                   # before the owner opens or maps: others may be asked to close
    opened(os.open, path, flags)       # every call that opens a file

A log of which only the end is written, and a mapping that nobody reads, need not stay open. An owner that is in use
says so and is passed over, so the budget is not a limit. What must not fail half-way, as the end of a segment or the
close of a store, takes one of a few spare descriptors when the process has no other left; `require_spare` refuses to
begin a change without them.
"""

from __future__ import annotations

import errno
import os
import resource
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from ..errors import TooManyOpenFilesError

T = TypeVar("T")

_COUNT_MAX = 1 << 15  # half of the mappings that Linux gives a process (vm.max_map_count)
_SWEEP_COUNT_MIN = 64
_SPARE_COUNT = 16
_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


class Reopenable(Protocol):
    """What holds a file open, or mapped, that it can open again."""

    @property
    def is_open(self) -> bool:
        """True if it holds something that it can close."""

    def was_used(self) -> bool:
        """Return whether it was used since the last call."""

    def close_idle(self) -> bool:
        """Make durable what is to be, and close; return False if it is in use. Never waits for a log's lock."""


class OpenFiles:
    """The owners of open files, in the order in which they opened them."""

    def __init__(self, count_max: int = 0) -> None:
        """Keep up to `count_max` files open; 0: half of the process's soft limit."""
        self._count_max = count_max
        # each operation on it is atomic; an owner that is closed stays until its turn comes
        self._owners: deque[weakref.ref[Reopenable]] = deque()
        self._sweep_count = _SWEEP_COUNT_MIN

    @property
    def count_max(self) -> int:
        """The budget, as the limit of the process is now."""
        return self._count_max or half_of_limit()

    def add(self, owner: Reopenable, count: int = 1) -> None:
        """Count an owner that opens files, `count` of them, and close others beyond the budget."""
        count_max = self.count_max
        # twice: the first round may find that each was used
        for _ in range(2 * len(self._owners)):
            if len(self._owners) < count_max:
                break
            self._close_next()
        if len(self._owners) >= self._sweep_count:
            self._forget_gone()
        self._owners.extend([weakref.ref(owner)] * count)

    def _forget_gone(self) -> None:
        """Drop owners that are gone, once the row has doubled: those of deleted topics would fill it."""
        for _ in range(len(self._owners)):
            with suppress(IndexError):
                known = self._owners.popleft()
                if known() is not None:
                    self._owners.append(known)
        self._sweep_count = max(2 * len(self._owners), _SWEEP_COUNT_MIN)

    def require_spare(self) -> None:
        """Keep spare descriptors for changes that must not fail half-way; raise TooManyOpenFilesError without any."""
        for _ in range(2 * len(self._owners)):
            if _SPARE.fill():
                return
            self._close_next()
        if not _SPARE.fill():
            raise TooManyOpenFilesError(
                "The process has too many open files",
                expected=f"{_SPARE_COUNT} file descriptors that are free",
                found=f"a limit of {_soft_limit()}",
                advice="raise the limit (`ulimit -n`), or close files elsewhere in the program; nothing was changed",
            )

    def _close_next(self) -> None:
        """Ask the owner that opened first; one that was used since, or is in use, goes to the end of the row."""
        try:
            known = self._owners.popleft()
        except IndexError:
            return
        owner = known()
        if owner is not None and owner.is_open and (owner.was_used() or not owner.close_idle()):
            self._owners.append(known)


class _Spare:
    """Descriptors that are held to be given up when no other is left."""

    def __init__(self) -> None:
        self._descriptors: deque[int] = deque()

    def fill(self) -> bool:
        """Take those that are missing; return False if the process has not enough."""
        while len(self._descriptors) < _SPARE_COUNT:
            try:
                self._descriptors.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError as error:
                if error.errno not in _NO_DESCRIPTOR:
                    raise
                return False
        return True

    def give(self) -> bool:
        """Close one; return False if there is none."""
        try:
            os.close(self._descriptors.popleft())
        except IndexError:
            return False
        return True


_SPARE = _Spare()

#: of all logs of the process, but those of a store with a budget of its own
OPEN_FILES = OpenFiles()


def opened(call: Callable[..., T], *arguments: object) -> T:
    """Return what `call` opens; without a free descriptor call it again in place of a spare one. Raises OSError."""
    while True:
        try:
            return call(*arguments)
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR or not _SPARE.give():
                raise


def half_of_limit() -> int:
    """Return half of the number of files that the process may open, 32,768 at most."""
    limit = _soft_limit()
    return _COUNT_MAX if limit == resource.RLIM_INFINITY else min(max(limit // 2, 1), _COUNT_MAX)


def _soft_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
