"""`functools.cached_property` without its lock. Not in `threads`, as a dump of a small log imports no `queue`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - named as that of functools
    """A property that is computed when it is first asked for; threads that ask at once all get the first answer.

    That of functools has a lock in Python 3.11, one for all objects. A fork may leave it locked for ever; and a thread
    that holds it may run the garbage collection, which ends a reader, and waits for a helper that waits for the lock.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.func, self.__doc__ = compute, compute.__doc__

    def __get__(self, instance: Any, owner: type) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        value: T = vars(instance).setdefault(self.func.__name__, self.func(instance))
        return value
