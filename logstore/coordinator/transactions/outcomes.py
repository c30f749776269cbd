"""Outcomes of requests to the transaction coordinator: an answer, a record to log, and the markers that follow.

After the record of a decision come its markers, one in each partition of the transaction, and then the record of the
completion. Kafka's `TransactionMarkerChannelManager` sends the markers to the leaders of the partitions; here the store
appends them. Until the completion is logged, the transactional id answers CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import InvalidProducerEpochError, LogstoreError, TransactionCoordinatorFencedError
from ...layout.batch import NO_PRODUCER_ID
from .transaction import NO_PRODUCER_EPOCH, Transaction
from .transitions import PREPARE_COMMIT

#: returns an unused producer id; an error that it raises ends the request
Allocate = Callable[[], int]


@dataclass(frozen=True, slots=True)
class TransactionRules:
    """Settings of a coordinator; `transaction_version` is the level of the feature `transaction.version`."""

    transaction_version: int = 2
    timeout_max_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000


class Context(NamedTuple):
    """What a request is decided with, beside the state of its transactional id."""

    rules: TransactionRules
    allocate: Allocate
    now_ms: int


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch, as in requests and answers."""

    producer_id: int
    producer_epoch: int


#: the identity of a producer that has none yet, or needs none
NO_IDENTITY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True)
class Answer:
    """Success; `identity` is set if the producer has to take another one."""

    identity: ProducerIdentity | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """A change to log: the caller gets `answer` once the record of `following` is in the log."""

    following: Transaction
    answer: Answer | LogstoreError


Outcome = Answer | LogstoreError | Append


class MarkerEntry(NamedTuple):
    """The marker of one transaction, the same in each of its partitions (`WriteTxnMarkers`).

    The fields are arguments of `PartitionLog.append_end_transaction`.
    """

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


def marker_of(decided: Transaction, *, coordinator_epoch: int) -> MarkerEntry:
    """Return the marker of a prepared transaction."""
    return MarkerEntry(
        producer_id=decided.producer_id,
        producer_epoch=decided.producer_epoch,
        is_commit=decided.state == PREPARE_COMMIT,
        coordinator_epoch=coordinator_epoch,
        transaction_version=decided.client_transaction_version,
    )


def is_taken_over(error: LogstoreError | None) -> bool:
    """Return whether a marker was refused because another coordinator has the transaction: write no more of them.

    After any other error it is written again. Kafka's coordinator takes one that was refused as too large or corrupt
    for a bug (`TransactionMarkerRequestCompletionHandler`); but the topic's configuration may be the cause, which can
    be changed.
    """
    return isinstance(error, InvalidProducerEpochError | TransactionCoordinatorFencedError)
