"""Transactions of one producer, and its requests to the coordinator (the Java client's `TransactionManager`).

Where the Java client waits for answers, these are calls, so a method is done when it returns. What a coordinator asks
to retry is retried for `max.block.ms`; then only the same method may be called again. So it is after an interrupt: the
same method finishes what it began, or `close` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from ... import clock
from ...calls import TRANSACTIONAL, alone, is_inside
from ...coordinator.groups.membership import ConsumerGroupMetadata
from ...coordinator.groups.offsets import OffsetAndMetadata
from ...coordinator.transactions.outcomes import NO_IDENTITY, ProducerIdentity
from ...errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    LogstoreError,
    ProducerFailedError,
    ProducerFencedError,
)
from ...folds.verification import VerificationGuard
from ...model import TopicPartition
from ...store.data_directory import DataDirectory
from .config import ProducerConfig
from .retry import RETRIABLE, Attempts, raise_storage_error
from .states import CLOSED, ERRORS, ONGOING, SOURCES, TransactionManagerState
from .transaction_errors import after_failed_batch, after_refusal, refusal_in, timed_out, unanswered

T = TypeVar("T")

_S = TransactionManagerState
CLOSED_FORCEFULLY = "Producer is closed forcefully."
_CLOSE_PAUSE_S = 0.005


class TransactionManager:
    """State of one producer's transactions; usable from any thread, one transaction at a time.

    Attributes:
        error: of an error state, else None.
        identity: NO_IDENTITY before `init`.
        number: of the transaction, 1 for the first.
    """

    def __init__(self, store: DataDirectory, config: ProducerConfig) -> None:
        self.state = _S.UNINITIALIZED
        self.error: LogstoreError | None = None
        self.identity = NO_IDENTITY
        self.number = 0
        self._store, self._config = store, config
        self._transactional_id: str = config["transactional.id"]
        self._timeout_ms: int = config["transaction.timeout.ms"]
        self._max_block_ms: int = config["max.block.ms"]
        self._lock = threading.RLock()  # of the state
        self._calling = threading.Lock()  # held while a thread waits for the coordinator
        self._pending: str | None = None  # the method that must be called again
        self._is_closed = self._is_forced = self._needs_bump = False  # forced: waiting calls must fail
        self._begun: tuple[int, ProducerIdentity] = (0, NO_IDENTITY)  # number and identity known to the coordinator

    # -- what a program calls ---------------------------------------------------------------------------------------

    def init(self) -> None:
        """Get producer id and epoch, which fences the earlier owner of the transactional id."""
        self._run("initTransactions", _S.INITIALIZING, lambda: self._initialize(NO_IDENTITY))

    def begin(self) -> None:
        """Begin a transaction; the coordinator learns of it with the first record."""
        with alone(TRANSACTIONAL), self._lock:
            self._refuse_pending("beginTransaction")
            self._refuse_error()
            self._require_source(_S.IN_TRANSACTION)
            self.number += 1
            self._enter(_S.IN_TRANSACTION)

    def send_offsets(self, commits: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata) -> None:
        """Commit a group's offsets with the transaction."""

        def commit() -> None:
            name, coordinator = self._transactional_id, self._store.transactions
            if not coordinator.has_epoch_bump:
                coordinator.add_offsets(name, self.identity, group.group_id)
            self._begun = (self.number, self.identity)
            coordinator.commit_offsets(name, self.identity, group, commits)

        with alone(TRANSACTIONAL):
            self._refuse_offsets()  # at once, without waiting for a call of another thread
            with self._calling:
                self._refuse_offsets()
                self._call(commit, "TxnOffsetCommit")

    def commit(self, flush: Callable[[float], bool]) -> None:
        """Write the rest, by `flush` with a timeout in seconds, and commit."""

        def end() -> None:
            error = None if self.state is _S.READY else self._flush_for_commit(flush)
            if error is not None:
                self._pending = None
                raise error
            self._end(is_commit=True)

        self._run("commitTransaction", _S.COMMITTING_TRANSACTION, end)

    def abort(self, drop: Callable[[], None]) -> None:
        """Drop the rest, and abort."""

        def end() -> None:
            drop()
            self._end(is_commit=False)

        self._run("abortTransaction", _S.ABORTING_TRANSACTION, end)

    def close(self, timeout_s: float | None, flush: Callable[[float], bool], drop: Callable[[], None]) -> None:
        """Begin nothing more, finish a commit, and abort anything else (`Sender.run`).

        Calls of other threads are waited for; after `timeout_s`, or if this runs inside such a call, they fail instead.
        """
        self._is_closed = True
        end_s = None if timeout_s is None else clock.monotonic_s() + timeout_s
        while self._calling.locked():
            if is_inside(TRANSACTIONAL) or (end_s is not None and clock.monotonic_s() >= end_s):
                self._is_forced = True
                return
            threading.Event().wait(_CLOSE_PAUSE_S)
        if timeout_s is not None:
            self._max_block_ms = int(min(self._max_block_ms, timeout_s * 1000))
        if self.state is _S.COMMITTING_TRANSACTION and self._flush_for_commit(flush) is None:
            self._end(is_commit=True)
        elif self.state in ONGOING:
            if self.state is not _S.ABORTING_TRANSACTION:
                self._enter(_S.ABORTING_TRANSACTION)
            drop()
            self._end(is_commit=False)

    # -- what the sending of batches calls, with the buffer's mutex held ----------------------------------------------

    def require_sendable(self, topic_partition: TopicPartition) -> None:
        """Raise the error that refuses a record for this partition (`maybeAddPartition`)."""
        if self.state is _S.IN_TRANSACTION and self._pending is None:
            return
        if self._is_closed:
            raise IllegalStateError(CLOSED)
        self._refuse_error()
        self._refuse_pending("send")
        if self.identity is NO_IDENTITY:
            raise IllegalStateError(
                f"Cannot add partition {topic_partition} to transaction before completing a call to initTransactions"
            )
        raise IllegalStateError(
            f"Cannot add partition {topic_partition} to transaction while in state  {self.state.name}"
        )

    def join(self, topic_partition: TopicPartition, sequence: int) -> VerificationGuard | None:
        """Add a partition to the transaction; return the guard for the first batch; raises as the coordinator."""
        name, coordinator = self._transactional_id, self._store.transactions
        if not coordinator.has_epoch_bump:
            coordinator.add_partitions(name, self.identity, [topic_partition])
        self._begun = (self.number, self.identity)  # first: the coordinator may know of it, even if this fails
        return coordinator.begin_append(name, self.identity, topic_partition, sequence=sequence)

    def join_all(self, topic_partitions: list[TopicPartition]) -> None:
        """Add partitions with one record of the coordinator; `join` adds a partition again and raises what is wrong."""
        self._begun = (self.number, self.identity)
        with suppress(LogstoreError):
            self._store.transactions.add_partitions(self._transactional_id, self.identity, topic_partitions)

    def batch_failed(self, error: LogstoreError) -> None:
        """Enter the error state for records that could not be written (`maybeTransitionToErrorState`).

        A fatal error is kept: later failures follow from it.
        """
        with self._lock:
            if self.state is _S.FATAL_ERROR:
                return
            target, error = after_failed_batch(error)
            if target is _S.ABORTABLE_ERROR:
                if self.state is _S.ABORTING_TRANSACTION:
                    return
                if not self._store.transactions.has_epoch_bump and self.state is not _S.COMMITTING_TRANSACTION:
                    self._needs_bump = True
            self._fail(target, error)

    def explained(self, error: LogstoreError) -> LogstoreError:
        """Return the error, or one that names the timeout if that has ended the transaction."""
        return timed_out(error, self._store.transactions, self._transactional_id, self.identity) or error

    # -- steps ------------------------------------------------------------------------------------------------------

    def _run(self, operation: str, target: TransactionManagerState, end: Callable[[], None]) -> None:
        """Run `end` in the state `target`; the operation is pending until it is done."""
        with alone(TRANSACTIONAL):
            self._refuse_pending(operation)  # at once, without waiting for a call of another thread
            with self._calling:
                self._begin_operation(operation, target)
                end()
                self._pending = None

    def _begin_operation(self, operation: str, target: TransactionManagerState) -> None:
        """Enter `target`, unless this repeats an unfinished call that has."""
        with self._lock:
            if target is _S.INITIALIZING:
                self._refuse_error()
            self._refuse_pending(operation)
            if self._pending is None:
                if not (target is _S.ABORTING_TRANSACTION and self.state is _S.ABORTABLE_ERROR):
                    self._refuse_error()
                self._require_source(target)
                self._pending = operation
            if self.state in SOURCES[target]:
                self._enter(target)

    def _require_source(self, target: TransactionManagerState) -> None:
        if self.state not in SOURCES[target]:
            raise IllegalStateError(
                f"TransactionalId {self._transactional_id}: Invalid transition attempted from state {self.state.name} "
                f"to state {target.name}"
            )

    def _enter(self, target: TransactionManagerState) -> None:
        self._require_source(target)
        if target not in ERRORS:
            self.error = None
        self.state = target

    def _fail(self, target: TransactionManagerState, error: LogstoreError) -> LogstoreError:
        with self._lock:
            self._require_source(target)
            self.error = error  # first: a failed transaction without its error could be committed
            self.state = target
            return error

    def _refuse_pending(self, operation: str) -> None:
        if self._is_closed:
            raise IllegalStateError(CLOSED)
        if self._pending not in (None, operation):
            raise IllegalStateError(
                f"Cannot attempt operation `{operation}` because the previous call to `{self._pending}` timed out and "
                "must be retried"
            )

    def _refuse_offsets(self) -> None:
        with self._lock:
            self._refuse_pending("sendOffsetsToTransaction")
            self._refuse_error()
            if self.state is not _S.IN_TRANSACTION:
                raise IllegalStateError(
                    f"Cannot send offsets if a transaction is not in progress (currentState= {self.state.name})"
                )

    def _refuse_error(self) -> None:
        """Raise the error that refuses all calls in an error state (`maybeFailWithError`)."""
        if self.state in ERRORS:
            raise refusal_in(self.state, self.error, self._transactional_id, self.identity)

    def _flush_for_commit(self, flush: Callable[[float], bool]) -> LogstoreError | None:
        """Write the rest; return the error that prevents the commit."""
        if not flush(self._max_block_ms / 1000):
            raise unanswered("EndTxn(true)", self._max_block_ms)
        if self._is_forced and self.error is None:  # some records were dropped
            return self._fail(_S.FATAL_ERROR, ProducerFailedError(CLOSED_FORCEFULLY))
        return self.error

    def _initialize(self, expected: ProducerIdentity) -> None:
        if self.state is _S.READY:
            return
        identity = self._call(
            lambda: self._store.transactions.init_producer_id(self._transactional_id, self._timeout_ms, expected),
            "InitProducerId",
        )
        with self._lock:
            self.identity = identity
            self._needs_bump = False
            self._enter(_S.READY)

    def _end(self, *, is_commit: bool) -> None:
        """Have the coordinator decide the transaction, unless it knows nothing of it.

        May be repeated: the coordinator repeats its answer, and then the identity is another.
        """
        if self.state is _S.READY:
            return
        if self._begun == (self.number, self.identity):
            coordinator, identity = self._store.transactions, self.identity
            self.identity = self._call(
                lambda: coordinator.end_transaction(self._transactional_id, identity, is_commit=is_commit),
                f"EndTxn({str(is_commit).lower()})",
                is_abort=not is_commit,
            )
        with self._lock:
            if not self._needs_bump:
                self._enter(_S.READY)
                return
            if self.state is not _S.INITIALIZING:
                self._enter(_S.INITIALIZING)
        self._initialize(self.identity)

    def _call(self, call: Callable[[], T], awaited: str, *, is_abort: bool = False) -> T:
        """Return the coordinator's final answer; an error changes the state."""
        attempts = Attempts(self._config, self._max_block_ms / 1000)
        while True:
            if self._is_forced:
                self._pending = None
                raise self._refused(ProducerFailedError(CLOSED_FORCEFULLY), is_abort=is_abort)
            try:
                return call()
            except RETRIABLE as error:
                raise_storage_error(error)
                next_s = attempts.next_s()
                if next_s is None:
                    raise unanswered(awaited, self._max_block_ms) from error
            except LogstoreError as error:
                self._pending = None
                raise self._refused(error, is_abort=is_abort) from error
            threading.Event().wait(max(0.0, next_s - clock.monotonic_s()))

    def _refused(self, error: LogstoreError, *, is_abort: bool) -> LogstoreError:
        """Enter the state that a coordinator's error leads to; return the error to raise."""
        explained = self.explained(error)
        if isinstance(error, InvalidProducerEpochError | ProducerFencedError) and explained is error:
            explained = ProducerFencedError()
        return self._fail(*after_refusal(explained, is_abort=is_abort))
