"""Work on many things of which some may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..errors import LogstoreError

T = TypeVar("T")


def do_each(things: Iterable[T], act: Callable[[T], object]) -> None:
    """`act` on every thing, whatever becomes of the others.

    Raises:
        LogstoreError: the first one that `act` raised, after it was done with all.
    """
    failure: LogstoreError | None = None
    for thing in things:
        try:
            act(thing)
        except LogstoreError as error:
            failure = failure or error
    if failure is not None:
        raise failure
