"""The transactions of one producer, and what it asks its coordinator for (`TransactionManager` of the Java client).

Where the Java client waits for answers these are calls, so a method has done what it says when it returns. What a
coordinator says to try again is tried until `max.block.ms` is over; then only the same method may be called again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ..coordinator.transaction_outcome import ProducerIdentity
from ..coordinator.transaction_states import supports_epoch_bump
from ..errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogstoreError,
    ProducerFailedError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionAbortableError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from ..folds.verification import VerificationGuard
from ..model import TopicPartition
from ..store.group_commits import GroupMemberIdentity
from ..store.store import Store
from .group_metadata import ConsumerGroupMetadata, Offsets, offset_commits
from .idempotence import NO_IDENTITY, Idempotence
from .lanes import Lane
from .producer_config import ProducerConfig
from .producer_states import CLOSED, ProducerState
from .retrying import RETRIABLE, Backoff, retried
from .transactional_state import TransactionalState

T = TypeVar("T")

_S = ProducerState
CLOSED_FORCEFULLY = "Producer is closed forcefully."
_RETRIES_EXHAUSTED = "Transaction Request was aborted after exhausting retries."
_INIT_UNANSWERED = (
    "InitTransactions timed out - did not complete coordinator discovery or receive the InitProducerId response within "
    "max.block.ms."
)
_OFFSETS_UNANSWERED = (
    "SendOffsetsToTransaction timed out - did not reach the coordinator or receive the TxnOffsetCommit/AddOffsetsToTxn "
    "response within max.block.ms"
)
_COMMIT_UNANSWERED = (
    "CommitTransaction timed out - did not complete EndTxn with the transaction coordinator within max.block.ms"
)
_ABORT_UNANSWERED = (
    "AbortTransaction timed out - did not complete EndTxn(abort) with the transaction coordinator within max.block.ms"
)


class ProducerTransactions(TransactionalState):
    """Attributes as in `TransactionalState`, and:

    Attributes:
        number: of the transaction, 1 for the first.
    """

    def __init__(self, store: Store, config: ProducerConfig, idempotence: Idempotence) -> None:
        super().__init__(config["transactional.id"], idempotence)
        self.number = 0
        self._store = store
        self._timeout_ms: int = config["transaction.timeout.ms"]
        self._max_block_ms: int = config["max.block.ms"]
        self._backoff = Backoff(config)
        self._is_forced = False  # nobody is to wait any more
        self._has_begun = False
        self._needs_bump = False

    # -- what a program calls ---------------------------------------------------------------------------------------

    def init(self) -> None:
        """Get the producer id and epoch, which shuts out whoever had the transactional id before."""
        with self._operation("initTransactions", _S.INITIALIZING, fails_first=True):
            self._initialize(NO_IDENTITY)

    def begin(self) -> None:
        """Begin a transaction; nobody else hears of it before the first record."""
        with self._lock:
            self._refuse_pending("beginTransaction")
            self._refuse_error()
            self._enter(_S.IN_TRANSACTION)
            self.number += 1
            self._has_begun = False

    def send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        """Let offsets of a group be committed with the transaction."""
        with self._lock:
            self._refuse_pending("sendOffsetsToTransaction")
            self._refuse_error()
            if self.state is not _S.IN_TRANSACTION:
                raise IllegalStateError(
                    f"Cannot send offsets if a transaction is not in progress (currentState= {self.state.name})"
                )
            self._callers.append(threading.get_ident())
        with self._leaving():
            self._send_offsets(offsets, group)

    def _send_offsets(self, offsets: Offsets, group: ConsumerGroupMetadata) -> None:
        commits = offset_commits(offsets)
        member = GroupMemberIdentity(group.member_id, group.generation_id, group.group_instance_id)

        def commit() -> None:
            name, coordinator = self._transactional_id, self._store.transactions
            identity = self._identity_fields
            if self._has_epoch_bump:
                self._has_begun = True
            else:
                coordinator.add_offsets(name, *identity, group.group_id)
                self._has_begun = True
            coordinator.commit_offsets(name, *identity, group.group_id, commits, member)

        self._call(commit, "TxnOffsetCommit", _OFFSETS_UNANSWERED)

    def commit(self, flush: Callable[[float], bool]) -> None:
        """Write what is left, by `flush` with a time in seconds, and decide that the transaction counts."""
        with self._operation("commitTransaction", _S.COMMITTING_TRANSACTION):
            error = self._refused_by(flush)
            if error is not None:
                self._pending = None
                raise error
            self._end(is_commit=True)

    def abort(self, drop: Callable[[], None]) -> None:
        """Drop what is left, and decide that the transaction does not count."""
        with self._operation("abortTransaction", _S.ABORTING_TRANSACTION):
            drop()
            self._end(is_commit=False)

    def close(self, timeout_s: float | None, flush: Callable[[float], bool], drop: Callable[[], None]) -> None:
        """Finish a commit, and abort what else is not decided (`Sender.run`); `is_closed` is set by now.

        Other threads are waited for; after `timeout_s`, or if this is in a call of theirs, theirs fail instead.
        """
        with self._lock:
            is_mine = threading.get_ident() in self._callers
            if is_mine or not self._idle.wait_for(lambda: not self._callers, timeout_s):
                self._is_forced = True
                return
        if timeout_s is not None:
            self._max_block_ms = min(self._max_block_ms, int(timeout_s * 1000))
        if self.state is _S.COMMITTING_TRANSACTION and self._refused_by(flush) is None:
            self._end(is_commit=True)
        elif self.has_ongoing:
            if self.state is not _S.ABORTING_TRANSACTION:
                self._enter(_S.ABORTING_TRANSACTION)
            drop()
            self._end(is_commit=False)

    # -- what the sending of batches calls, with the lanes' mutex held ------------------------------------------------

    def require_sendable(self, topic_partition: TopicPartition) -> None:
        """Raise what a record for this partition is refused with (`maybeAddPartition`)."""
        if self.state is _S.IN_TRANSACTION and self._pending is None:
            return
        if self.is_closed:
            raise IllegalStateError(CLOSED)
        self._refuse_error()
        self._refuse_pending("send")
        if self._idempotence.identity is NO_IDENTITY:
            raise IllegalStateError(
                f"Cannot add partition {topic_partition} to transaction before completing a call to initTransactions"
            )
        raise IllegalStateError(
            f"Cannot add partition {topic_partition} to transaction while in state  {self.state.name}"
        )

    def join(self, lane: Lane, sequence: int) -> VerificationGuard | None:
        """Let the lane's partition join the transaction; what to show with the first batch.

        Raises:
            LogstoreError: as `TransactionCoordinator.begin_append` and `add_partitions`.
        """
        if lane.transaction == self.number:
            return None
        name, coordinator, identity = self._transactional_id, self._store.transactions, self._identity_fields
        if not self._has_epoch_bump:
            coordinator.add_partitions(name, *identity, [lane.topic_partition])
        self._has_begun = True
        return coordinator.begin_append(name, *identity, lane.topic_partition, sequence=sequence)

    def batch_failed(self, error: LogstoreError) -> None:
        """Records could not be written for good (`maybeTransitionToErrorState`).

        A fatal error stays the one there is: what waits when another thread meets it fails after it.
        """
        with self._lock:
            if self.state is _S.FATAL_ERROR:
                return
            if isinstance(error, ProducerFencedError | InvalidPidMappingError):
                self._fail(_S.FATAL_ERROR, error)
                return
            passing = (*RETRIABLE, RequestTimedOutError, UnknownTopicOrPartitionError, InvalidTxnStateError)
            if isinstance(error, passing):
                exhausted = TransactionAbortableError(_RETRIES_EXHAUSTED)
                exhausted.__cause__ = error
                error = exhausted
            if self.state is not _S.ABORTING_TRANSACTION:
                if not self._has_epoch_bump and self.state is not _S.COMMITTING_TRANSACTION:
                    self._needs_bump = True
                self._fail(_S.ABORTABLE_ERROR, error)

    # -- steps ------------------------------------------------------------------------------------------------------

    @property
    def _has_epoch_bump(self) -> bool:
        return supports_epoch_bump(self._store.feature("transaction.version"))

    @property
    def _identity_fields(self) -> tuple[int, int]:
        identity = self._idempotence.identity
        return identity.producer_id, identity.producer_epoch

    def _refused_by(self, flush: Callable[[float], bool]) -> LogstoreError | None:
        """Write what is left; why that does not let the transaction count."""
        if not flush(self._max_block_ms / 1000):
            raise self._timed_out("EndTxn(true)", _COMMIT_UNANSWERED)
        if self._is_forced and self.error is None:  # records were given up
            return self._fail(_S.FATAL_ERROR, ProducerFailedError(CLOSED_FORCEFULLY))
        return self.error

    def _initialize(self, expected: ProducerIdentity) -> None:
        fields = (expected.producer_id, expected.producer_epoch)

        def init() -> tuple[int, int]:
            return self._store.transactions.init_producer_id(self._transactional_id, self._timeout_ms, *fields)

        identity = self._call(init, "InitProducerId", _INIT_UNANSWERED)
        with self._lock:
            self._idempotence.identity = ProducerIdentity(*identity)
            self._enter(_S.READY)

    def _end(self, *, is_commit: bool) -> None:
        """Have the transaction decided; one without records and offsets is nobody's business."""
        if self._has_begun:
            identity = self._call(
                lambda: self._store.transactions.end_transaction(
                    self._transactional_id, *self._identity_fields, is_commit=is_commit
                ),
                f"EndTxn({str(is_commit).lower()})",
                _COMMIT_UNANSWERED if is_commit else _ABORT_UNANSWERED,
                is_abort=not is_commit,
            )
            self._idempotence.identity = ProducerIdentity(*identity)
            self._has_begun = False
        with self._lock:
            if not self._needs_bump:
                self._enter(_S.READY)
                return
            if self.state is not _S.INITIALIZING:
                self._enter(_S.INITIALIZING)
        self._initialize(self._idempotence.identity)
        self._needs_bump = False

    def _call(self, call: Callable[[], T], awaited: str, unanswered: str, *, is_abort: bool = False) -> T:
        """What a coordinator answers in the end; an error changes the state."""

        def call_if_open() -> T:
            if self._is_forced:
                raise ProducerFailedError(CLOSED_FORCEFULLY)
            return call()

        try:
            return retried(call_if_open, self._backoff, self._max_block_ms / 1000)
        except RETRIABLE as error:
            raise self._timed_out(awaited, unanswered) from error
        except LogstoreError as error:
            self._pending = None
            raise self._refused(error, is_abort=is_abort) from error

    def _refused(self, error: LogstoreError, *, is_abort: bool) -> LogstoreError:
        """Enter the state that a coordinator's refusal leads to; the error to raise (`TxnRequestHandler`)."""
        if isinstance(error, InvalidProducerEpochError | ProducerFencedError):
            return self._fail(_S.FATAL_ERROR, ProducerFencedError())
        if isinstance(error, TransactionAbortableError):
            if is_abort:
                return self._fail(_S.FATAL_ERROR, ProducerFailedError("Failed to abort transaction"))
            return self._fail(_S.ABORTABLE_ERROR, error)
        if isinstance(error, IllegalGenerationError | UnknownMemberIdError):
            return self._fail(
                _S.ABORTABLE_ERROR,
                CommitFailedError(
                    f"Transaction offset Commit failed due to consumer group metadata mismatch: {error.message}"
                ),
            )
        is_abortable = isinstance(error, FencedInstanceIdError | UnknownTopicOrPartitionError)
        return self._fail(_S.ABORTABLE_ERROR if is_abortable else _S.FATAL_ERROR, error)

    def _timed_out(self, awaited: str, unanswered: str) -> RequestTimedOutError:
        return RequestTimedOutError(
            f"Timeout expired after {self._max_block_ms}ms while awaiting {awaited}. {unanswered}"
        )
