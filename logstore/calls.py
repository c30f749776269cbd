"""The calls that a thread is in, so that code which interrupts one cannot enter it a second time.

    with alone(LOG), self.lock:
        ...

A signal handler, a finalizer or a callback runs in the middle of a call, in the same thread. A plain lock would make it
wait for the very call that it interrupted, for ever; a reentrant lock would let it in while a change is half done. So
every kind of call has a level. Calls go from upper levels to lower ones, as a producer calls a coordinator, and that a
log. A call at the level of a call that its thread is in, or above it, comes from code that interrupted this one: it is
refused with `ReentrantCallError`, before it has changed anything. Locks are taken in the same order, so that a call
which is let in never waits for a thread that waits for what it interrupted.

The marks are plain locks, one for each level and thread, which nobody ever waits for. `with` takes and releases them in
one step of C each: an exception from a signal leaves none behind.
"""

from __future__ import annotations

import threading
from typing import Final

from .errors import ReentrantCallError

# from the upper levels to the lower ones; a call may be refused because of one at its own level or below
STORE: Final = 0  # the end of a store
CLOSING: Final = 1  # the end of a producer
TRANSACTIONAL: Final = 2  # a producer's transaction
SENDING: Final = 3  # a producer's records
TRANSACTIONS: Final = 4  # the transaction coordinator
GROUPS: Final = 5  # the group coordinator
TOPICS: Final = 6
PARTITIONS: Final = 7
CHECKPOINTS: Final = 8
LOG: Final = 9
SHORT: Final = 10  # sections that call nothing

_NAMES = (
    "the close of a store",
    "the close of a producer",
    "a producer's transaction",
    "a producer's send or flush",
    "the transaction coordinator",
    "the group coordinator",
    "a change of topics",
    "the opening of a partition",
    "the writing of a checkpoint",
    "a log",
    "a short section",
)


_is_locked = type(threading.Lock()).locked  # in `map` sooner than a bound method of each


class _Marks(threading.local):
    """One lock for each level, held while the thread is in a call of it."""

    def __init__(self) -> None:
        by_level = tuple(threading.Lock() for _ in _NAMES)
        # the mark of each level, and all from it down
        self.from_level = tuple((mark, by_level[level:]) for level, mark in enumerate(by_level))
        self.log = by_level[LOG]


_marks = _Marks()


def alone(level: int) -> threading.Lock:
    """Return the mark of a level, for `with`; raises ReentrantCallError in a call of the level or a lower one."""
    mark, marks = _marks.from_level[level]
    if any(map(_is_locked, marks)):
        raise _refusal(level, level + list(map(_is_locked, marks)).index(True))
    return mark


def alone_in_log() -> threading.Lock:
    """Return `alone(LOG)`, sooner: nothing below waits for a log."""
    mark = _marks.log
    if mark.locked():
        raise _refusal(LOG, LOG)
    return mark


def is_inside(level: int) -> bool:
    """Return whether this thread is in a call of the level or of a lower one."""
    return any(map(_is_locked, _marks.from_level[level][1]))


def require_outside() -> None:
    """Raise ReentrantCallError if this thread is in any call: it is about to wait for other threads."""
    alone(STORE)


def _refusal(level: int, interrupted: int) -> ReentrantCallError:
    return ReentrantCallError(
        f"A call at the level of {_NAMES[level]} came in the middle of a call of {_NAMES[interrupted]} in the same "
        "thread, as from a signal handler",
        advice="let the handler set a flag, and act upon it when the interrupted call has returned",
    )
