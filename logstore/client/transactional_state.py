"""What a transactional producer may do now, and which threads are in a call of it (`TransactionManager.State`)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import (
    AbortRequiredError,
    IllegalStateError,
    InvalidProducerEpochError,
    LogstoreError,
    ProducerFailedError,
    ProducerFencedError,
)
from .idempotence import Idempotence
from .producer_states import CLOSED, ERRORS, SOURCES, ProducerState

_S = ProducerState
_ERROR_STATE = "Cannot execute transactional method because we are in an error state"


class TransactionalState:
    """For any thread, but one transaction at a time.

    Attributes:
        state: where the producer is.
        error: why it is in an error state, else None.
        is_closed: the producer takes nothing any more.
    """

    def __init__(self, transactional_id: str, idempotence: Idempotence) -> None:
        self.state = _S.UNINITIALIZED
        self.error: LogstoreError | None = None
        self.is_closed = False
        self._transactional_id, self._idempotence = transactional_id, idempotence
        self._lock = threading.RLock()
        self._idle = threading.Condition(self._lock)
        self._callers: list[int] = []  # threads that wait for a coordinator
        self._pending: str | None = None

    @property
    def has_ongoing(self) -> bool:
        """Whether a transaction is not decided (`hasOngoingTransaction`)."""
        ongoing = (_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION, _S.ABORTABLE_ERROR)
        return self.state in ongoing

    @contextmanager
    def _operation(self, name: str, target: ProducerState, *, fails_first: bool = False) -> Iterator[None]:
        """What a thread does in the state `target`; pending when its time was up."""
        self._begin_operation(name, target, fails_first=fails_first)
        with self._leaving():
            yield
            self._pending = None

    @contextmanager
    def _leaving(self) -> Iterator[None]:
        """A thread that does not wait for a coordinator any more behind this; see `close`."""
        try:
            yield
        finally:
            with self._lock:
                self._callers.remove(threading.get_ident())
                self._idle.notify_all()

    def _begin_operation(self, operation: str, target: ProducerState, *, fails_first: bool) -> None:
        """Enter `target`, unless this is the second call of a method whose time was up."""
        with self._lock:
            if fails_first:
                self._refuse_error()
            self._refuse_pending(operation)
            if self._pending is None:
                if not (target is _S.ABORTING_TRANSACTION and self.state is _S.ABORTABLE_ERROR):
                    self._refuse_error()
                self._enter(target)
                self._pending = operation
            self._callers.append(threading.get_ident())

    def _enter(self, target: ProducerState) -> None:
        if self.state not in SOURCES[target]:
            raise IllegalStateError(
                f"TransactionalId {self._transactional_id}: Invalid transition attempted from state {self.state.name} "
                f"to state {target.name}"
            )
        self.state = target
        if target not in ERRORS:
            self.error = None

    def _fail(self, target: ProducerState, error: LogstoreError) -> LogstoreError:
        with self._lock:
            self._enter(target)
            self.error = error
            return error

    def _refuse_pending(self, operation: str) -> None:
        if self.is_closed:
            raise IllegalStateError(CLOSED)
        if self._pending not in (None, operation):
            raise IllegalStateError(
                f"Cannot attempt operation `{operation}` because the previous call to `{self._pending}` timed out and "
                "must be retried"
            )

    def _refuse_error(self) -> None:
        """Raise what every call is refused with in an error state (`maybeFailWithError`)."""
        if self.state not in ERRORS:
            return
        identity = self._idempotence.identity
        who = (
            f"Producer with transactionalId '{self._transactional_id}' and (producerId="
            f"{identity.producer_id}, epoch={identity.producer_epoch})"
        )
        if isinstance(self.error, ProducerFencedError):
            raise ProducerFencedError(
                f"{who} has been fenced by another producer with the same transactionalId"
            ) from self.error
        if isinstance(self.error, InvalidProducerEpochError):
            raise InvalidProducerEpochError(f"{who} attempted to produce with an old epoch") from self.error
        if self.state is _S.ABORTABLE_ERROR:
            raise AbortRequiredError(_ERROR_STATE, found=self.error, advice="call abort_transaction") from self.error
        raise ProducerFailedError(
            _ERROR_STATE, found=self.error, advice="close this producer and open another"
        ) from self.error
