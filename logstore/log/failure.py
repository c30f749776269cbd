"""Ends of a log's use: a write that failed, a change that was cut off, a close.

Once a write failed, the state of the disk is unknown: the write may have been cut short, and after a failed sync the
system may have dropped the pages. So nothing is retried, and the log takes no more changes
(`LocalLog.maybeHandleIOException`); opening it anew recovers what is there.

Any other exception within a change, as by a signal, leaves memory in an unknown state, but the files are those of a
process that was killed. Nothing is repaired in place: the state is put aside, and the next use of the log opens it from
its files, as after a crash.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from ..disk.names import parent
from ..errors import KafkaStorageError, LogstoreError
from ..kernels.append.structs import FastPathStruct, LogStruct

APPEND_FAILURE_TEXT = "Error while appending records to"


class Failure:
    """The first failure of a log's state, and whether it is closed.

    Attributes:
        error: of the first write that failed; None if none did.
        is_closed: the log was closed in order, or released after a failure.
        is_cut_off: an exception came in the middle of a change.
    """

    def __init__(
        self,
        path: str,
        name: str,
        lock: AbstractContextManager[bool],
        struct: LogStruct,
        fast: FastPathStruct,
    ) -> None:
        """Start without a failure.

        Args:
            path, name: of the partition, for messages.
            struct: of the log; a nonzero `unfinished_size` in it counts as a change that was cut off.
            fast: of the fast path, which must bind the log anew after each change.
        """
        self.error: KafkaStorageError | None = None
        self.is_closed = False
        self.lock = lock
        self.is_cut_off = self._is_forked = False
        self._path, self._name = path, name
        self._struct, self._fast = struct, fast

    @property
    def is_writable(self) -> bool:
        """True unless the log is closed, a write failed or a change was cut off."""
        return self.error is None and not self.is_closed and not self.is_put_aside

    @property
    def is_put_aside(self) -> bool:
        """True if a change was cut off: the next use opens the log from its files. The caller holds the lock."""
        return self.error is None and not self.is_closed and bool(self.is_cut_off or self._struct.unfinished_size)

    def poisoned_by(self, failure_text: str) -> _Poisoned:
        """Return a context manager for a change of the log; `failure_text` reads like "Error while doing this for".

        A refusal (a LogstoreError raised before the first byte is written) leaves the log as before. Another error of
        the library or of the disk poisons it; any other exception puts its state aside.

        Raises:
            KafkaStorageError: the log is closed, or poisoned before or by the block.
        """
        return _Poisoned(self, failure_text)

    def require_writable(self) -> None:
        """Raise KafkaStorageError if the log takes no changes."""
        if self.error is not None:
            if self._is_forked:
                raise self._forked()
            raise KafkaStorageError(
                f"The log dir {parent(self._path)} is already offline due to a previous IO exception.",
                path=self._path,
                found=self.error.found,
                advice=self.error.given_advice,
            ) from self.error
        if self.is_closed:
            raise KafkaStorageError(
                f"The memory mapped buffer for log of {self._name} is already closed",
                path=self._path,
                advice="open the log anew",
            )
        if self.is_put_aside:
            raise KafkaStorageError(
                f"A change of the log of {self._name} was cut off in another thread",
                path=self._path,
                advice="try again",
            )

    def poison(self, failure_text: str, error: BaseException) -> KafkaStorageError:
        """Poison the log, and return the error that all later changes raise. The caller holds the lock."""
        first = "free space or see to the disk, then " if isinstance(error, OSError) else ""
        advice = None if isinstance(error, OSError) or not isinstance(error, LogstoreError) else error.advice
        failure = KafkaStorageError(
            f"{failure_text} {self._name} in dir {parent(self._path)}",
            path=self._path,
            found=str(error) or type(error).__name__,
            advice=advice or f"{first}open the log anew: it recovers what was written",
        )
        self._fast.is_bound = 0
        self.error = self.error or failure
        # the first failure is the cause; later ones only follow from it
        return self.error

    def leave(self, failure_text: str, error: BaseException) -> None:
        """End a change that raised `error`; raise KafkaStorageError if the disk is the cause."""
        with self.lock:
            is_of_library = isinstance(error, LogstoreError)
            if is_of_library and not isinstance(error, OSError) and not self._struct.unfinished_size:
                return
            if not is_of_library and not isinstance(error, OSError):
                self._fast.is_bound = 0
                self.is_cut_off = True
                return
            failure = self.poison(failure_text, error)
        raise failure from error

    def disown_after_fork(self, lock: AbstractContextManager[bool]) -> None:
        """Mark the log as the parent's, in the child of a fork: nothing is written or closed here."""
        self.lock = lock
        self._fast.is_bound = 0
        self.error = self._forked()
        self.is_closed = self._is_forked = True

    def _forked(self) -> KafkaStorageError:
        return KafkaStorageError(
            f"The log of {self._name} was opened by another process, of which this one was forked",
            path=self._path,
            advice="open it anew in this process, when the other one has closed it",
        )


class _Poisoned:
    """Context manager of `Failure.poisoned_by`; a class, as it costs half of a generator's."""

    __slots__ = ("_failure", "_failure_text")

    def __init__(self, failure: Failure, failure_text: str) -> None:
        self._failure = failure
        self._failure_text = failure_text

    def __enter__(self) -> None:
        failure = self._failure
        with failure.lock:
            failure._fast.is_bound = 0
            failure.require_writable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._failure.leave(self._failure_text, error)
