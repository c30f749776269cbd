"""The end of a transaction: by its producer, a newer one, or its timeout (`TransactionCoordinator.endTransaction`).

A newer producer or the timeout fences the producer and aborts the transaction in one step, so that no request of the
old producer comes in between. Kafka takes two steps; a commit between them fails with IllegalStateException.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ...errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidRequestError,
    InvalidTxnStateError,
    LogstoreError,
    ProducerFencedError,
)
from ...layout.batch import NO_PRODUCER_ID
from ...layout.record import PRODUCER_EPOCH_MAX
from ...topics.transaction_state import IDLE, PREPARED, TransactionState
from . import transitions
from .outcomes import Answer, Append, Context, Outcome, ProducerIdentity, TransactionRules
from .transaction import LAST_CLIENT_EPOCH, NO_PRODUCER_EPOCH, Transaction, is_epoch_exhausted

_INVALID_TXN_STATE = "The producer attempted a transactional operation in an invalid state."


class EndTransaction(NamedTuple):
    """A commit or abort (`EndTxn`); a retry of the request, after its answer was lost, has the same answer.

    With version 2 the answer has the identity for the next transaction, in which sequences begin at 0.
    """

    transactional_id: str
    identity: ProducerIdentity
    is_commit: bool
    client_transaction_version: int

    def decide(self, current: Transaction | None, context: Context) -> Outcome:
        """Return the answer, or the decision to log before it."""
        identity, version = self.identity, self.client_transaction_version
        if not self.transactional_id:
            return InvalidRequestError()
        if current is None:
            return InvalidPidMappingError()
        if not transitions.supports_epoch_bump(version):
            return _end_without_bump(current, identity, self.is_commit, context.now_ms)
        if current.state in PREPARED:
            return ConcurrentTransactionsError()
        # the first try has changed the identity already: to the next epoch, or to a new producer id if there was none
        is_overflow_retry = (
            current.previous_producer_id == identity.producer_id
            and identity.producer_epoch == LAST_CLIENT_EPOCH
            and current.producer_epoch == 0
        )
        is_bump_retry = current.producer_epoch == identity.producer_epoch + 1
        is_retry = is_bump_retry or is_overflow_retry
        if current.producer_id != identity.producer_id and not is_overflow_retry:
            return InvalidPidMappingError()
        may_be_retry = is_retry and current.state in (transitions.COMPLETE_COMMIT, transitions.COMPLETE_ABORT)
        if current.producer_epoch != identity.producer_epoch and not may_be_retry:
            return ProducerFencedError()
        target = _target_with_bump(current, self.is_commit, is_retry)
        if isinstance(target, Answer | LogstoreError):
            return target
        return _decided(current, target, version, context)


def _end_without_bump(current: Transaction, identity: ProducerIdentity, is_commit: bool, now_ms: int) -> Outcome:
    if current.producer_id != identity.producer_id:
        return InvalidPidMappingError()
    if current.producer_epoch != identity.producer_epoch:
        return ProducerFencedError()
    if current.state in PREPARED:
        return ConcurrentTransactionsError()
    if current.state == transitions.ONGOING:
        target = transitions.PREPARE_COMMIT if is_commit else transitions.PREPARE_ABORT
        following = transitions.prepare_abort_or_commit(current, target, client_transaction_version=0, now_ms=now_ms)
        return Append(following, Answer())
    if current.state == (transitions.COMPLETE_COMMIT if is_commit else transitions.COMPLETE_ABORT):
        return Answer()
    return InvalidTxnStateError(_INVALID_TXN_STATE)


def _target_with_bump(
    current: Transaction, is_commit: bool, is_retry: bool
) -> TransactionState | Answer | LogstoreError:
    """Return the state that an EndTxn of the current producer leads to, or the answer if it changes nothing."""
    if current.state == transitions.ONGOING:
        return transitions.PREPARE_COMMIT if is_commit else transitions.PREPARE_ABORT
    is_done = current.state == (transitions.COMPLETE_COMMIT if is_commit else transitions.COMPLETE_ABORT)
    if is_done and is_retry:
        return Answer(ProducerIdentity(current.producer_id, current.producer_epoch))
    # an abort of nothing still bumps the epoch: the producer cannot know whether a partition was added
    is_late_abort = current.state in (transitions.COMPLETE_COMMIT, transitions.COMPLETE_ABORT) and not is_retry
    if not is_commit and (current.state == transitions.EMPTY or is_late_abort):
        return transitions.PREPARE_ABORT
    return InvalidTxnStateError(_INVALID_TXN_STATE)


def _decided(
    current: Transaction, target: TransactionState, client_transaction_version: int, context: Context
) -> Append:
    """Decide a version 2 transaction; its producer gets a new producer id if the epochs are used up."""
    following = transitions.prepare_abort_or_commit(
        current,
        target,
        client_transaction_version=client_transaction_version,
        next_producer_id=context.allocate() if is_epoch_exhausted(current.producer_epoch) else NO_PRODUCER_ID,
        has_no_partition=current.state != transitions.ONGOING,
        now_ms=context.now_ms,
    )
    return Append(following, Answer(ProducerIdentity(*transitions.identity_after(following))))


def fence_and_abort(current: Transaction, answer: Answer | LogstoreError, context: Context) -> Append:
    """Fence the producer of an ongoing transaction, for a newer producer or a timeout, and abort the transaction.

    The caller gets `answer` when the abort is logged.
    """
    version = context.rules.transaction_version
    if transitions.supports_epoch_bump(version):
        return replace(_decided(current, transitions.PREPARE_ABORT, version, context), answer=answer)
    # before version 2 markers carry the epoch of the producer, so it is bumped here to fence it
    epoch = min(current.producer_epoch + 1, PRODUCER_EPOCH_MAX)
    fenced = current._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
    following = transitions.prepare_abort_or_commit(
        fenced, transitions.PREPARE_ABORT, client_transaction_version=0, now_ms=context.now_ms
    )
    return Append(following, answer)


def is_timed_out(current: Transaction, *, now_ms: int) -> bool:
    """Return whether the transaction has taken longer than its timeout (`timedOutTransactions`)."""
    is_open = current.state == transitions.ONGOING and not current.is_two_phase_commit
    return is_open and current.start_timestamp_ms + current.timeout_ms < now_ms


class AbortTimedOut(NamedTuple):
    """The abort of a transaction that has timed out, whose producer is fenced."""

    transactional_id: str

    def decide(self, current: Transaction | None, context: Context) -> Outcome:
        """Return the decision to log; an Answer if the transaction has ended meanwhile."""
        if current is None or not is_timed_out(current, now_ms=context.now_ms):
            return Answer()
        return fence_and_abort(current, Answer(), context)


def is_expired(current: Transaction, rules: TransactionRules, now_ms: int) -> bool:
    """Return whether the transactional id has expired (`removeExpiredTransactionalIds`)."""
    is_old = current.last_update_timestamp_ms <= now_ms - rules.transactional_id_expiration_ms
    return is_old and current.state in IDLE
