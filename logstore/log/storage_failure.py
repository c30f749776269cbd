"""A log whose writing failed is not written any more (`LogDirFailureChannel`, `LocalLog.maybeHandleIOException`).

What is on the disk then is not known: a write may have gone half way, and after a failed sync the system may have
dropped what it could not write. So nothing is tried again; who opens the log anew recovers what is there.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ..disk.names import parent
from ..errors import KafkaStorageError, LogstoreError

if TYPE_CHECKING:
    from .log_state import LogState


class Writing:
    """A `with` block that changes the log; usable again and again.

    Raises:
        KafkaStorageError: the log is closed, or its writing has failed, before the block or in it.
    """

    __slots__ = ("_failure_text", "_log")

    def __init__(self, log: LogState, failure_text: str) -> None:
        self._log = log
        self._failure_text = failure_text

    def __enter__(self) -> None:
        log = self._log
        with log.lock:  # a count that another thread's is lost in would leave the quick way on a closed descriptor
            log.change_count += 1
            log.require_writable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, LogstoreError) and not isinstance(error, OSError)):
            return
        log = self._log
        first = "free space or see to the disk, then " if isinstance(error, OSError) else ""
        failure = KafkaStorageError(
            f"{self._failure_text} {log.topic_partition} in dir {parent(log.directory.path)}",
            path=log.directory.path,
            found=str(error) or type(error).__name__,
            advice=f"{first}open the log anew: it recovers what was written",
        )
        with log.lock:
            log.change_count += 1  # an append beside a sync may have opened the quick way since
            log.failure = log.failure or failure
        if isinstance(error, OSError):
            raise log.failure from error
