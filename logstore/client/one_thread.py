"""A consumer is for one thread at a time, and says so instead of going wrong (`KafkaConsumer.acquire`)."""

from __future__ import annotations

import threading

from ..errors import IllegalStateError


class OneThread:
    """A `with` block that a second thread may not enter; the same thread may, again.

    Raises IllegalStateError on entry by another thread, and when `is_closed`.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._lock = threading.RLock()
        self._owner = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            current = threading.current_thread()
            raise IllegalStateError(
                "KafkaConsumer is not safe for multi-threaded access. "
                f"currentThread(name: {current.name}, id: {current.ident}) otherThread(id: {self._owner})",
                java_class="java.util.ConcurrentModificationException",
            )
        self._owner = threading.get_ident()
        if self.is_closed:
            self._lock.release()
            raise IllegalStateError("This consumer has already been closed.")

    def __exit__(self, *_: object) -> None:
        self._lock.release()
