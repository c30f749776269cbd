"""Who may call a client, and how many end at once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable

from ..errors import IllegalStateError


class OneThread:
    """A `with` block that a second thread may not enter; the same thread may, again (`KafkaConsumer.acquire`).

    Raises IllegalStateError on entry by another thread, and when `is_closed`.

    Attributes:
        owner: ident of the thread that entered last.
    """

    def __init__(self, entered: Callable[[], None]) -> None:
        """`entered`: a method to call on each entry; a weak reference to its object is kept."""
        self.is_closed = False
        self.owner = 0
        self._lock = threading.RLock()
        self._entered = weakref.WeakMethod(entered)

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            current = threading.current_thread()
            raise IllegalStateError(
                "KafkaConsumer is not safe for multi-threaded access. "
                f"currentThread(name: {current.name}, id: {current.ident}) otherThread(id: {self.owner})",
                java_class="java.util.ConcurrentModificationException",
            )
        try:
            self.owner = threading.get_ident()
            if self.is_closed:
                raise IllegalStateError("This consumer has already been closed.")
            entered = self._entered()
            assert entered is not None
            entered()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def close_each(closes: Iterable[Callable[[], None]]) -> None:
    """Call each, whatever another raised, so that no client loses records by another's error; raise the first."""
    rest = iter(closes)
    errors: list[Exception] = []
    try:
        for close in rest:
            try:
                close()
            except Exception as error:
                errors.append(error)
    finally:
        if others := list(rest):  # a KeyboardInterrupt: the close that it hit is given up, the others are made
            close_each(others)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(f"Also: {other!r}")
        raise errors[0]
