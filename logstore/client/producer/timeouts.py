"""Errors of a transaction that its timeout has ended, which Kafka's client takes for a newer producer's doing."""

from __future__ import annotations

from ...coordinator.transactions.outcomes import ProducerIdentity
from ...errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogstoreError,
    ProducerFencedError,
    TransactionAbortableError,
)
from ...store.transactions.coordinator import TransactionCoordinator


def timed_out(
    error: LogstoreError, coordinator: TransactionCoordinator, transactional_id: str, identity: ProducerIdentity
) -> LogstoreError | None:
    """Return an error that names the timeout; None if that is not the reason of this refusal of a producer.

    With epoch bumps the coordinator takes the producer's abort as a retry of its own, and the producer goes on; before
    them the producer is fenced for good.
    """
    if not isinstance(error, InvalidProducerEpochError | ProducerFencedError | InvalidTxnStateError):
        return None
    timeout_ms = coordinator.timeout_of(transactional_id, identity)
    if timeout_ms is None:
        return None
    message = (
        f"The transaction of transactionalId {transactional_id} took longer than its transaction.timeout.ms of "
        f"{timeout_ms} ms, and its coordinator has aborted it"
    )
    longer = "and raise transaction.timeout.ms if transactions may take longer"
    told: LogstoreError
    if coordinator.has_epoch_bump:
        told = TransactionAbortableError(message, advice=f"call abort_transaction, then begin again, {longer}")
    else:
        told = ProducerFencedError(message, advice=f"close this producer and open another, {longer}")
    told.__cause__ = error
    return told
