"""The state machine of a transactional id, as pure transitions (`TransactionMetadata`, `TransactionState`).

A transition has two halves. `prepare_…` says what the transactional id becomes and marks it as pending; when the record
of that is in the log, `complete_transition` makes it so. In between every request is told to come again.

>>> from .transaction import new_transaction
>>> one = new_transaction("billing", producer_id=7, timeout_ms=1000, now_ms=5)
>>> begun = prepare_increment_producer_epoch(one, timeout_ms=1000, expected_epoch=None, now_ms=5)
>>> begun.current.pending_state.name, begun.next.producer_epoch
('EMPTY', 0)
>>> complete_transition(begun.current, begun.next).producer_epoch
0
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...errors import IllegalTransitionError, ProducerFencedError
from ...layout.batch import NO_PRODUCER_ID
from ...model import TopicPartition
from ...topics.transaction_state import TransactionState
from .transaction import EPOCH_MAX, NO_PRODUCER_EPOCH, NO_TIMESTAMP, Transaction

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
DEAD, PREPARE_EPOCH_FENCE = TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE

#: states without a transaction: a new one may begin, and the transactional id may expire
IDLE = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
#: states of a transaction that is decided, but whose markers may be missing
PREPARED = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
#: state: those that it may come from
VALID_PREVIOUS_STATES = {
    EMPTY: IDLE,
    ONGOING: IDLE | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: IDLE | {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: IDLE,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}


class Transition(NamedTuple):
    """`current`, marked as pending, becomes `next` (Kafka's `TxnTransitMetadata`) once that is in the log."""

    current: Transaction
    next: Transaction


def supports_epoch_bump(transaction_version: int) -> bool:
    """Return whether every transaction of this version ends with another epoch (KIP-890, `TransactionVersion`)."""
    return transaction_version >= 2


def prepare_increment_producer_epoch(
    current: Transaction, *, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> Transition:
    """Give a producer that begins the next epoch, or the same one for a retry of the request that bumped it.

    Raises:
        ProducerFencedError: `expected_epoch` is neither the current epoch nor the one before the last bump.
        IllegalTransitionError: there is no epoch left, or the state does not allow it.
    """
    if current.is_epoch_exhausted:
        raise IllegalTransitionError(f"Cannot allocate any more producer epochs for producerId {current.producer_id}")
    epoch, last_epoch = current.producer_epoch + 1, current.producer_epoch
    if expected_epoch is None:
        last_epoch = NO_PRODUCER_EPOCH
    elif current.producer_epoch not in (NO_PRODUCER_EPOCH, expected_epoch):
        if expected_epoch != current.last_producer_epoch:
            raise ProducerFencedError
        epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
    return _prepare(
        current,
        EMPTY,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_timestamp_ms=NO_TIMESTAMP,
        last_update_timestamp_ms=now_ms,
    )


def prepare_producer_id_rotation(
    current: Transaction, *, producer_id: int, timeout_ms: int, keep_last_epoch: bool, now_ms: int
) -> Transition:
    """Give a producer that begins another producer id, from epoch 0 on: the epochs of its own are used up."""
    if current.state in PREPARED or current.state == ONGOING:
        raise IllegalTransitionError("Cannot rotate producer ids while a transaction is still pending")
    return _prepare(
        current,
        EMPTY,
        producer_id=producer_id,
        producer_epoch=0,
        last_producer_epoch=current.producer_epoch if keep_last_epoch else NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_timestamp_ms=NO_TIMESTAMP,
        last_update_timestamp_ms=now_ms,
    )


def prepare_add_partitions(
    current: Transaction, partitions: Iterable[TopicPartition], *, client_transaction_version: int, now_ms: int
) -> Transition:
    """Begin a transaction with its first partitions, or add more to it."""
    return _prepare(
        current,
        ONGOING,
        partitions=current.partitions.union(partitions),
        start_timestamp_ms=now_ms if current.state in IDLE else current.start_timestamp_ms,
        last_update_timestamp_ms=now_ms,
        client_transaction_version=client_transaction_version,
    )


def prepare_abort_or_commit(
    current: Transaction,
    target: TransactionState,
    *,
    client_transaction_version: int,
    next_producer_id: int = NO_PRODUCER_ID,
    has_no_partition: bool = False,
    now_ms: int,
) -> Transition:
    """Decide, PREPARE_COMMIT or PREPARE_ABORT; with version 2 the epoch rises, and the markers carry the new one.

    `next_producer_id`: follows the current one, whose epochs are used up. `has_no_partition`: an abort of nothing.
    """
    epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
    if supports_epoch_bump(client_transaction_version):
        last_epoch = epoch
        if epoch != EPOCH_MAX or target != PREPARE_ABORT:
            epoch = _java_short(epoch + 1)
    return _prepare(
        current,
        target,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        next_producer_id=next_producer_id,
        start_timestamp_ms=now_ms if has_no_partition else current.start_timestamp_ms,
        last_update_timestamp_ms=now_ms,
        client_transaction_version=client_transaction_version,
    )


def prepare_complete(current: Transaction, *, now_ms: int) -> Transition:
    """End a decided transaction, once all its markers are written; a new producer id replaces one that is used up."""
    producer_id, epoch = current.producer_id, current.producer_epoch
    if supports_epoch_bump(current.client_transaction_version) and current.next_producer_id != NO_PRODUCER_ID:
        producer_id, epoch = current.next_producer_id, 0
    return _prepare(
        current._replace(has_failed_epoch_fence=False) if current.has_failed_epoch_fence else current,
        COMPLETE_COMMIT if current.state == PREPARE_COMMIT else COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_timestamp_ms=now_ms,
    )


def prepare_fence_producer_epoch(current: Transaction) -> Transition:
    """Raise the epoch to fence the producer of an ongoing transaction before that is aborted; never logged as such."""
    is_last = current.has_failed_epoch_fence or current.producer_epoch == EPOCH_MAX
    return _prepare(current, PREPARE_EPOCH_FENCE, producer_epoch=current.producer_epoch + (not is_last))


def prepare_dead(current: Transaction) -> Transition:
    """Let the transactional id expire: it is forgotten once a tombstone is logged."""
    return _prepare(current, DEAD, partitions=frozenset())


def _prepare(current: Transaction, target: TransactionState, **changes: Any) -> Transition:
    """Return both halves of a transition; `previous_producer_id` becomes that of `current`."""
    if current.pending_state is not None:
        raise IllegalTransitionError(
            f"Preparing transaction state transition to {current.state.name} while it already a pending state "
            f"{current.pending_state.name}"
        )
    following = current._replace(state=target, previous_producer_id=current.producer_id, **changes)
    if following.producer_id < 0:
        raise IllegalTransitionError(
            f"Illegal new producer id {following.producer_id}", java_class="java.lang.IllegalArgumentException"
        )
    if target != DEAD and following.producer_epoch < 0:
        raise IllegalTransitionError(
            f"Illegal new producer epoch {following.producer_epoch}", java_class="java.lang.IllegalArgumentException"
        )
    if current.state not in VALID_PREVIOUS_STATES[target]:
        raise IllegalTransitionError(
            f"Preparing transaction state transition to {target.name} failed since the target state {target.name} is "
            f"not a valid previous state of the current state {current.state.name}"
        )
    return Transition(current._replace(pending_state=target), following)


def complete_transition(current: Transaction, following: Transaction) -> Transaction:
    """Return the state after the record of `following` was logged (`completeTransitionTo`).

    Raises IllegalTransitionError when `following` is not what `current` is waiting for, or cannot come after it: then
    something is broken, and the record must not count.
    """
    if current.pending_state is None:
        raise IllegalTransitionError(
            f"TransactionalId {current.transactional_id} completing transaction state transition while it does not "
            "have a pending state"
        )
    if current.pending_state == following.state == DEAD:
        raise IllegalTransitionError(
            f"TransactionalId {current.transactional_id} is trying to complete a transition to DEAD. This means that "
            "the transactionalId was being expired, and the only acceptable completion of this operation is to remove "
            "the transaction metadata from the cache, not to persist the DEAD in the log."
        )
    if current.pending_state != following.state or not _follows(current, following):
        raise IllegalTransitionError(
            f"TransactionalId {current.transactional_id} failed transition to state {following} due to unexpected "
            "metadata"
        )
    if following.pending_state is None and following.has_failed_epoch_fence == current.has_failed_epoch_fence:
        return following
    return following._replace(pending_state=None, has_failed_epoch_fence=current.has_failed_epoch_fence)


def _follows(current: Transaction, following: Transaction) -> bool:
    """Return whether every field of `following` is as the transition allows it."""
    has_same_timeout = current.timeout_ms == following.timeout_ms
    if following.state == EMPTY:
        is_same_epoch = current.producer_epoch == following.producer_epoch
        is_empty = not following.partitions and following.start_timestamp_ms == NO_TIMESTAMP
        return is_empty and (is_same_epoch or _is_bump(current, following))
    if following.state == ONGOING:
        has_all = following.partitions >= current.partitions
        return _has_right_epoch(current, following) and has_all and has_same_timeout
    if following.state in PREPARED:
        is_empty_abort = (
            following.state == PREPARE_ABORT
            and supports_epoch_bump(following.client_transaction_version)
            and current.state in IDLE
        )
        has_right_start = is_empty_abort or current.start_timestamp_ms == following.start_timestamp_ms
        has_same = current.partitions == following.partitions and has_same_timeout
        return _has_right_epoch(current, following) and has_same and has_right_start
    if following.state in (COMPLETE_COMMIT, COMPLETE_ABORT):
        has_start = following.start_timestamp_ms != NO_TIMESTAMP
        return _has_right_epoch(current, following) and has_same_timeout and has_start
    return False


def _is_bump(current: Transaction, following: Transaction) -> bool:
    is_rotation = following.producer_epoch == 0 and following.producer_id != current.producer_id
    return is_rotation or following.producer_epoch == _java_short(current.producer_epoch + 1)


def _has_right_epoch(current: Transaction, following: Transaction) -> bool:
    if supports_epoch_bump(following.client_transaction_version):
        if following.state in (COMPLETE_COMMIT, COMPLETE_ABORT) and following.producer_epoch == 0:
            has_last = following.last_producer_epoch == current.last_producer_epoch
            return has_last and following.previous_producer_id == current.producer_id
        if following.state in PREPARED:
            has_last = following.last_producer_epoch == current.producer_epoch
            return has_last and following.producer_id == current.producer_id
    is_same_id = following.producer_id == current.producer_id
    return is_same_id and following.producer_epoch == current.producer_epoch


def _java_short(value: int) -> int:
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000
