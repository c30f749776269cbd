"""End of a producer: what was sent is written, its transaction ends, and every future has an outcome."""

from __future__ import annotations

import threading

from ...calls import CLOSING, alone
from ...errors import LogstoreError, ProducerFailedError, ProducerFencedError, TransactionAbortedError
from .buffer import Buffer
from .sender import Sender
from .transactions import CLOSED_FORCEFULLY


class Ending:
    """Closes a producer once; a call after an interrupted one does the rest."""

    def __init__(self, buffer: Buffer, sender: Sender) -> None:
        self._buffer, self._sender = buffer, sender
        self._lock = threading.Lock()
        self._is_done = False

    def close(self, timeout: float | None) -> None:
        """See `Producer.close`."""
        if not self._buffer.background.is_current:
            with alone(CLOSING), self._lock:
                self._close(timeout)
        elif self._lock.acquire(blocking=False):  # else the closing thread waits for this callback
            try:
                self._close(0.0)
            finally:
                self._lock.release()

    def invalidate_after_fork(self) -> None:
        """Take a new lock: in the child of a fork no thread releases the old one."""
        self._lock = threading.Lock()

    def drop(self, cause: LogstoreError | None) -> None:
        """Fail the unwritten records of a transaction that is aborted."""
        error = cause or TransactionAbortedError("Failing batch since transaction was aborted")
        self._buffer.fail_all(error, is_expected=True)

    def _close(self, timeout: float | None) -> None:
        if self._is_done:
            return
        self._buffer.close()
        try:
            self._end_transaction(timeout)
        except Exception:
            self._is_done = True
            raise
        self._is_done = True
        self._sender.raise_unreported()

    def _end_transaction(self, timeout: float | None) -> None:
        transactions = self._buffer.transactions
        try:
            if transactions is not None:
                cause = transactions.error
                transactions.close(timeout, self._buffer.flush, lambda: self.drop(cause))
        except ProducerFencedError:
            pass  # the next owner of the id has aborted the transaction
        finally:
            try:
                self._buffer.flush(timeout)
            finally:
                self._buffer.fail_all(ProducerFailedError(CLOSED_FORCEFULLY), is_expected=False)
