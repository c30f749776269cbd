"""Errors of a transactional producer: what each makes of its state, in the words of the Java client.

A transaction that its timeout has ended looks to Kafka's client like a newer producer's doing; here the error says so.
"""

from __future__ import annotations

from ...coordinator.transactions.outcomes import ProducerIdentity
from ...errors import (
    AbortRequiredError,
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
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
from ...store.transactions.coordinator import TransactionCoordinator
from .retry import RETRIABLE
from .states import TransactionManagerState

_S = TransactionManagerState
_ERROR_STATE = "Cannot execute transactional method because we are in an error state"
_PASSING = (*RETRIABLE, RequestTimedOutError, UnknownTopicOrPartitionError, InvalidTxnStateError)
_UNANSWERED = {
    "InitProducerId": "InitTransactions timed out - did not complete coordinator discovery or receive the "
    "InitProducerId response within max.block.ms.",
    "TxnOffsetCommit": "SendOffsetsToTransaction timed out - did not reach the coordinator or receive the "
    "TxnOffsetCommit/AddOffsetsToTxn response within max.block.ms",
    "EndTxn(true)": "CommitTransaction timed out - did not complete EndTxn with the transaction coordinator within "
    "max.block.ms",
    "EndTxn(false)": "AbortTransaction timed out - did not complete EndTxn(abort) with the transaction coordinator "
    "within max.block.ms",
}


def unanswered(request: str, max_block_ms: int) -> RequestTimedOutError:
    """Return the error of a request that had no final answer in time; see the keys of `_UNANSWERED`."""
    return RequestTimedOutError(
        f"Timeout expired after {max_block_ms}ms while awaiting {request}. {_UNANSWERED[request]}"
    )


def refusal_in(
    state: TransactionManagerState, error: LogstoreError | None, transactional_id: str, identity: ProducerIdentity
) -> LogstoreError:
    """Return the error that refuses all calls in an error state (`maybeFailWithError`); its cause is `error`."""
    who = (
        f"Producer with transactionalId '{transactional_id}' and (producerId={identity.producer_id}, "
        f"epoch={identity.producer_epoch})"
    )
    refusal: LogstoreError
    if isinstance(error, ProducerFencedError) and error.given_advice is None:  # else by the timeout
        refusal = ProducerFencedError(f"{who} has been fenced by another producer with the same transactionalId")
    elif isinstance(error, InvalidProducerEpochError):
        refusal = InvalidProducerEpochError(f"{who} attempted to produce with an old epoch")
    elif state is _S.ABORTABLE_ERROR:
        refusal = AbortRequiredError(_ERROR_STATE, found=error, advice="call abort_transaction")
    else:
        refusal = ProducerFailedError(_ERROR_STATE, found=error, advice="close this producer and open another")
    refusal.__cause__ = error
    return refusal


def after_failed_batch(error: LogstoreError) -> tuple[TransactionManagerState, LogstoreError]:
    """Return state and error after records could not be written (`maybeTransitionToErrorState`)."""
    if isinstance(error, ProducerFencedError | InvalidPidMappingError):
        return _S.FATAL_ERROR, error
    if isinstance(error, _PASSING):
        exhausted = TransactionAbortableError("Transaction Request was aborted after exhausting retries.")
        exhausted.__cause__ = error
        return _S.ABORTABLE_ERROR, exhausted
    return _S.ABORTABLE_ERROR, error


def after_refusal(error: LogstoreError, *, is_abort: bool) -> tuple[TransactionManagerState, LogstoreError]:
    """Return state and error after the coordinator has refused a request (`TxnRequestHandler`)."""
    if isinstance(error, TransactionAbortableError) and is_abort:
        return _S.FATAL_ERROR, ProducerFailedError("Failed to abort transaction")
    if isinstance(error, IllegalGenerationError | UnknownMemberIdError):
        return _S.ABORTABLE_ERROR, CommitFailedError(
            f"Transaction offset Commit failed due to consumer group metadata mismatch: {error.message}"
        )
    is_abortable = isinstance(error, TransactionAbortableError | FencedInstanceIdError | UnknownTopicOrPartitionError)
    return _S.ABORTABLE_ERROR if is_abortable else _S.FATAL_ERROR, error


def timed_out(
    error: LogstoreError, coordinator: TransactionCoordinator, transactional_id: str, identity: ProducerIdentity
) -> LogstoreError | None:
    """Return an error that names the timeout, if that is why the producer is refused; else None.

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
