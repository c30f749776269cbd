"""States of a transactional producer, and their transitions (`TransactionManager.State`); its `with` block.

>>> TransactionManagerState.READY in SOURCES[TransactionManagerState.IN_TRANSACTION]
True
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from ...errors import LogstoreError

if TYPE_CHECKING:
    from .producer import Producer

CLOSED = "Cannot perform operation after producer has been closed"
NOT_TRANSACTIONAL = "Transactional method invoked on a non-transactional producer."
NOT_IDEMPOTENT = (
    "Cannot use transactional methods without enabling transactions by setting the transactional.id configuration "
    "property"
)

#: messages for requests that were not answered in time
UNANSWERED = {
    "InitProducerId": "InitTransactions timed out - did not complete coordinator discovery or receive the "
    "InitProducerId response within max.block.ms.",
    "TxnOffsetCommit": "SendOffsetsToTransaction timed out - did not reach the coordinator or receive the "
    "TxnOffsetCommit/AddOffsetsToTxn response within max.block.ms",
    "EndTxn(true)": "CommitTransaction timed out - did not complete EndTxn with the transaction coordinator within "
    "max.block.ms",
    "EndTxn(false)": "AbortTransaction timed out - did not complete EndTxn(abort) with the transaction coordinator "
    "within max.block.ms",
}


class TransactionManagerState(Enum):
    """Kafka's states, except PREPARED_TRANSACTION, which belongs to two-phase commits decided elsewhere."""

    UNINITIALIZED = "UNINITIALIZED"
    INITIALIZING = "INITIALIZING"
    READY = "READY"
    IN_TRANSACTION = "IN_TRANSACTION"
    COMMITTING_TRANSACTION = "COMMITTING_TRANSACTION"
    ABORTING_TRANSACTION = "ABORTING_TRANSACTION"
    ABORTABLE_ERROR = "ABORTABLE_ERROR"
    FATAL_ERROR = "FATAL_ERROR"


_S = TransactionManagerState

#: the states from which a state may be entered
SOURCES: dict[TransactionManagerState, frozenset[TransactionManagerState]] = {
    _S.UNINITIALIZED: frozenset({_S.READY, _S.ABORTABLE_ERROR}),
    _S.INITIALIZING: frozenset({_S.UNINITIALIZED, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION}),
    _S.READY: frozenset({_S.INITIALIZING, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION}),
    _S.IN_TRANSACTION: frozenset({_S.READY}),
    _S.COMMITTING_TRANSACTION: frozenset({_S.IN_TRANSACTION}),
    _S.ABORTING_TRANSACTION: frozenset({_S.IN_TRANSACTION, _S.ABORTABLE_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION, _S.ABORTABLE_ERROR, _S.INITIALIZING}),
    _S.FATAL_ERROR: frozenset(TransactionManagerState),
}

ERRORS = frozenset({_S.ABORTABLE_ERROR, _S.FATAL_ERROR})
ONGOING = frozenset({_S.IN_TRANSACTION, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION, _S.ABORTABLE_ERROR})


@contextmanager
def transaction_of(producer: Producer) -> Iterator[None]:
    """See `Producer.transaction`."""
    was_ready = producer.state is _S.READY  # else the open transaction was begun elsewhere
    try:
        producer.begin_transaction()
        yield
        producer.commit_transaction()
    except BaseException as error:
        # A commit that timed out may still be done: it must be called again, not aborted.
        if was_ready and producer.state in (_S.IN_TRANSACTION, _S.ABORTABLE_ERROR):
            try:
                producer.abort_transaction()
            except LogstoreError as abort_error:
                error.add_note(f"Then aborting the transaction failed: {abort_error!r}")
        raise
