"""A log whose writing failed is not written any more (`LogDirFailureChannel`, `LocalLog.maybeHandleIOException`).

What is on the disk then is not known: a write may have gone half way, and after a failed sync the system may have
dropped what it could not write. So nothing is tried again; who opens the log anew recovers what is there. The same goes
for a change that an interrupt has cut off, and for bytes that were written and do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

from ..disk.names import parent
from ..errors import KafkaStorageError, LogstoreError
from ..kernels.append.structs import LogStruct


class Failure:
    """Why a log is not written any more, if it is not.

    Attributes:
        error: of the write that failed first; None if none did.
        is_closed: the log was closed in order, or let go of.
    """

    def __init__(
        self,
        path: str,
        name: str,
        lock: AbstractContextManager[bool],
        struct: LogStruct,
        invalidate: Callable[[], None],
    ) -> None:
        """Begin without one.

        Args:
            path, name: of the partition, for messages.
            struct: of the log; bytes that are UNFINISHED there are a failure.
            invalidate: called with the lock held when the log changes, or may not be changed any more.
        """
        self.error: KafkaStorageError | None = None
        self.is_closed = False
        self._is_forked = False
        self._path, self._name = path, name
        self._lock, self._struct, self._invalidate = lock, struct, invalidate

    @property
    def is_writable(self) -> bool:
        """Whether the log is neither closed nor has its writing failed."""
        return self.error is None and not self.is_closed and not self._struct.unfinished_size

    def poisoned_by(self, failure_text: str) -> _Poisoned:
        """A `with` block that changes the log; `failure_text` is as "Error while doing this for".

        Any error but a refusal, a LogstoreError before the first byte is written, ends the writing.

        Raises:
            KafkaStorageError: the log is closed, or its writing has failed, before the block or in it.
        """
        return _Poisoned(self, failure_text)

    def require_writable(self) -> None:
        """Raise KafkaStorageError if the log is closed or its writing has failed."""
        self.settle()
        if self.error is not None:
            if self._is_forked:
                raise self._forked()
            raise KafkaStorageError(
                f"The log dir {parent(self._path)} is already offline due to a previous IO exception.",
                path=self._path,
                found=self.error.found,
                advice=self.error.advice,
            ) from self.error
        if self.is_closed:
            raise KafkaStorageError(
                f"The memory mapped buffer for log of {self._name} is already closed",
                path=self._path,
                advice="open the log anew",
            )

    def settle(self) -> None:
        """Take a write that an interrupt has cut off, with nobody to tell of it, for a failure."""
        if self.error is None and self._struct.unfinished_size:
            self.poison("Error while appending records to", KeyboardInterrupt())

    def poison(self, failure_text: str, error: BaseException) -> KafkaStorageError:
        """End the writing; returns the error that says so from now on. The caller holds the lock."""
        first = "free space or see to the disk, then " if isinstance(error, OSError) else ""
        failure = KafkaStorageError(
            f"{failure_text} {self._name} in dir {parent(self._path)}",
            path=self._path,
            found=str(error) or type(error).__name__,
            advice=f"{first}open the log anew: it recovers what was written",
        )
        self._invalidate()
        self.error = self.error or failure
        return self.error

    def is_refusal(self, error: BaseException) -> bool:
        """Whether nothing was written when this was raised, and nothing need be."""
        return isinstance(error, LogstoreError) and not isinstance(error, OSError) and not self._struct.unfinished_size

    def enter(self) -> None:
        """Begin a change."""
        with self._lock:
            self._invalidate()
            self.require_writable()

    def leave(self, failure_text: str, error: BaseException) -> None:
        """End a change that was not finished; raises KafkaStorageError for an error of the disk."""
        with self._lock:
            if self.is_refusal(error):
                return
            failure = self.poison(failure_text, error)
        if isinstance(error, OSError | LogstoreError):
            raise failure from error

    def disown_after_fork(self, lock: AbstractContextManager[bool]) -> None:
        """In the child of a fork: the log is the parent's, and nothing is written or closed here."""
        self._lock = lock
        self._invalidate()
        self.error = self._forked()
        self.is_closed = self._is_forked = True

    def _forked(self) -> KafkaStorageError:
        return KafkaStorageError(
            f"The log of {self._name} was opened by another process, of which this one was forked",
            path=self._path,
            advice="open it anew in this process, when the other one has closed it",
        )


class _Poisoned:
    """See `Failure.poisoned_by`."""

    __slots__ = ("_failure", "_failure_text")

    def __init__(self, failure: Failure, failure_text: str) -> None:
        self._failure = failure
        self._failure_text = failure_text

    def __enter__(self) -> None:
        self._failure.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._failure.leave(self._failure_text, error)
