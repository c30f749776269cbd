"""The state machine of a transactional id, as pure transitions (`TransactionMetadata`, `TransactionState`).

Each function returns the next state, which is current once its record is in the log. Kafka keeps the transition as
pending meanwhile and answers CONCURRENT_TRANSACTIONS; here one lock guards the log and the state, so no request comes
in between.

>>> from .transaction import new_transaction
>>> unused = new_transaction("billing", producer_id=7, timeout_ms=1000, now_ms=5)
>>> begun = prepare_increment_producer_epoch(unused, timeout_ms=1000, expected_epoch=None, now_ms=5)
>>> begun.state.name, begun.producer_epoch
('EMPTY', 0)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import IllegalTransitionError, ProducerFencedError
from ...layout.batch import NO_PRODUCER_ID
from ...layout.record import PRODUCER_EPOCH_MAX
from ...model import TopicPartition
from ...topics.transaction_state import IDLE, PREPARED, VALID_PREVIOUS_STATES, TransactionState
from .transaction import NO_PRODUCER_EPOCH, NO_TIMESTAMP, Transaction, is_epoch_exhausted

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT


def supports_epoch_bump(transaction_version: int) -> bool:
    """Return whether every end of a transaction bumps the epoch in this version (KIP-890, `TransactionVersion`)."""
    return transaction_version >= 2


def prepare_increment_producer_epoch(
    current: Transaction, *, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> Transaction:
    """Give a new producer the next epoch; a retry of the request that bumped the epoch gets the same one again.

    Raises ProducerFencedError if `expected_epoch` is neither the current epoch nor the one before the last bump,
    IllegalTransitionError if there is no epoch left, or the state does not allow it.
    """
    if is_epoch_exhausted(current.producer_epoch):
        raise IllegalTransitionError(f"Cannot allocate any more producer epochs for producerId {current.producer_id}")
    epoch, last_epoch = current.producer_epoch + 1, current.producer_epoch
    if expected_epoch is None:
        last_epoch = NO_PRODUCER_EPOCH
    elif current.producer_epoch not in (NO_PRODUCER_EPOCH, expected_epoch):
        if expected_epoch != current.last_producer_epoch:
            raise ProducerFencedError
        epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
    return _moved(
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
) -> Transaction:
    """Give a new producer another producer id, with epoch 0, when the epochs of the current one are used up."""
    if current.state in PREPARED or current.state == ONGOING:
        raise IllegalTransitionError("Cannot rotate producer ids while a transaction is still pending")
    return _moved(
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
) -> Transaction:
    """Begin a transaction with its first partitions, or add more to it."""
    return _moved(
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
) -> Transaction:
    """Decide on `target`, PREPARE_COMMIT or PREPARE_ABORT; version 2 bumps the epoch, and markers have the new one.

    `next_producer_id` replaces the current one when the transaction completes, if its epochs are used up. If it
    `has_no_partition`, it begins now.
    """
    epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
    if supports_epoch_bump(client_transaction_version):
        last_epoch = epoch
        # an abort that fences the last epoch of all keeps it; a commit overflows as in Java, and `_moved` refuses it
        if epoch != PRODUCER_EPOCH_MAX or target != PREPARE_ABORT:
            epoch = _java_short(epoch + 1)
    return _moved(
        current,
        target,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        next_producer_id=next_producer_id,
        start_timestamp_ms=now_ms if has_no_partition else current.start_timestamp_ms,
        last_update_timestamp_ms=now_ms,
        client_transaction_version=client_transaction_version,
    )


def identity_after(decided: Transaction) -> tuple[int, int]:
    """Return producer id and epoch of a decided transaction's producer from its completion on."""
    if supports_epoch_bump(decided.client_transaction_version) and decided.next_producer_id != NO_PRODUCER_ID:
        return decided.next_producer_id, 0
    return decided.producer_id, decided.producer_epoch


def prepare_complete(current: Transaction, *, now_ms: int) -> Transaction:
    """Complete a decided transaction after all its markers; `next_producer_id` becomes current, if there is one."""
    producer_id, epoch = identity_after(current)
    return _moved(
        current,
        COMPLETE_COMMIT if current.state == PREPARE_COMMIT else COMPLETE_ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        last_update_timestamp_ms=now_ms,
    )


def _moved(current: Transaction, target: TransactionState, **changes: Any) -> Transaction:
    """Return `current` with `changes` in another state (`prepareTransitionTo`); raises IllegalTransitionError."""
    following = current._replace(state=target, previous_producer_id=current.producer_id, **changes)
    if following.producer_id < 0:
        raise IllegalTransitionError(
            f"Illegal new producer id {following.producer_id}", java_class="java.lang.IllegalArgumentException"
        )
    if following.producer_epoch < 0:
        raise IllegalTransitionError(
            f"Illegal new producer epoch {following.producer_epoch}", java_class="java.lang.IllegalArgumentException"
        )
    if current.state not in VALID_PREVIOUS_STATES[target]:
        raise IllegalTransitionError(
            f"Preparing transaction state transition to {target.name} failed since the target state {target.name} is "
            f"not a valid previous state of the current state {current.state.name}"
        )
    return following


def _java_short(value: int) -> int:
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000
