"""Requests of a producer to the transaction coordinator, decided by pure functions (`TransactionCoordinator`).

`decide` takes the state of a transactional id (None: unknown) and returns an `Outcome`; it never writes, waits or reads
a clock. `ending` has the requests that end a transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from ...errors import (
    ConcurrentTransactionsError,
    CoordinatorError,
    InvalidPidMappingError,
    InvalidRequestError,
    InvalidTxnTimeoutError,
    LogstoreError,
    ProducerFencedError,
    TransactionAbortableError,
)
from ...model import TopicPartition
from ...topics.transaction_state import PREPARED
from . import transitions
from .ending import fence_and_abort
from .outcomes import Answer, Append, Context, Outcome, ProducerIdentity
from .transaction import NO_PRODUCER_EPOCH, Transaction, is_epoch_exhausted, new_transaction


class Request(Protocol):
    """A request for one transactional id."""

    @property
    def transactional_id(self) -> str:
        """Whose state it reads and changes."""

    def decide(self, current: Transaction | None, context: Context) -> Outcome:
        """Return the answer, or the change to log before it."""


class InitProducerId(NamedTuple):
    """A new producer asks for its producer id and epoch; an ongoing transaction is aborted first.

    A producer that asks for another epoch for itself passes its identity as `expected`.
    """

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None

    def decide(self, current: Transaction | None, context: Context) -> Outcome:
        """Return the answer, or the change to log before it."""
        timeout_ms, expected, (rules, allocate, now_ms) = self.timeout_ms, self.expected, context
        if not self.transactional_id:
            return InvalidRequestError()
        if not 0 < timeout_ms <= rules.timeout_max_ms:
            return InvalidTxnTimeoutError()
        if current is None:
            current = new_transaction(
                self.transactional_id, producer_id=allocate(), timeout_ms=timeout_ms, now_ms=now_ms
            )
        if current.state in PREPARED:
            return ConcurrentTransactionsError()
        if expected is not None and not _may_be(current, expected):
            return ProducerFencedError()
        if current.state == transitions.ONGOING:
            return fence_and_abort(current, ConcurrentTransactionsError(), context)
        expected_epoch = None if expected is None else expected.producer_epoch
        if is_epoch_exhausted(current.producer_epoch) and expected_epoch in (None, current.producer_epoch):
            following = transitions.prepare_producer_id_rotation(
                current,
                producer_id=allocate(),
                timeout_ms=timeout_ms,
                keep_last_epoch=expected is not None,
                now_ms=now_ms,
            )
        else:
            try:
                following = transitions.prepare_increment_producer_epoch(
                    current, timeout_ms=timeout_ms, expected_epoch=expected_epoch, now_ms=now_ms
                )
            except CoordinatorError as error:
                return error
        return Append(following, Answer(ProducerIdentity(following.producer_id, following.producer_epoch)))


def _may_be(current: Transaction, expected: ProducerIdentity) -> bool:
    """Return whether `expected` is the current producer, or had the producer id before its epochs were used up."""
    was_rotated = expected.producer_id == current.previous_producer_id and is_epoch_exhausted(expected.producer_epoch)
    return current.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == current.producer_id or was_rotated


class AddPartitions(NamedTuple):
    """Partitions join a transaction, which the first ones begin (`AddPartitionsToTxn`, `AddOffsetsToTxn`).

    With version 2 a batch or an offset commit causes this, with earlier versions a request of the producer.
    """

    transactional_id: str
    identity: ProducerIdentity
    partitions: Collection[TopicPartition]
    client_transaction_version: int

    def decide(self, current: Transaction | None, context: Context) -> Outcome:
        """Return the answer, or the change to log before it."""
        if not self.transactional_id:
            return InvalidRequestError()
        if current is None:
            return InvalidPidMappingError()
        if current.state in PREPARED:
            return ConcurrentTransactionsError()
        refusal = _refusal_of_producer(current, self.identity)
        if refusal is not None:
            return refusal
        if current.state == transitions.ONGOING and current.partitions.issuperset(self.partitions):
            return Answer()
        following = transitions.prepare_add_partitions(
            current,
            self.partitions,
            client_transaction_version=self.client_transaction_version,
            now_ms=context.now_ms,
        )
        return Append(following, Answer())


def verify_partition(
    current: Transaction | None, transactional_id: str, identity: ProducerIdentity, partition: TopicPartition
) -> LogstoreError | None:
    """Return None if the partition is in the transaction, else the error (`handleVerifyPartitionsInTransaction`)."""
    if not transactional_id:
        return InvalidRequestError()
    if current is None:
        return InvalidPidMappingError()
    refusal = _refusal_of_producer(current, identity)
    if refusal is None and partition not in current.partitions:
        return TransactionAbortableError()
    return refusal


def _refusal_of_producer(current: Transaction, identity: ProducerIdentity) -> CoordinatorError | None:
    if current.producer_id != identity.producer_id:
        return InvalidPidMappingError()
    if current.producer_epoch != identity.producer_epoch:
        return ProducerFencedError()
    return ConcurrentTransactionsError() if current.state in PREPARED else None
