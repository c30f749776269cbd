"""States of a transactional producer, and their transitions (`TransactionManager.State`).

>>> TransactionManagerState.READY in SOURCES[TransactionManagerState.IN_TRANSACTION]
True
"""

from __future__ import annotations

from enum import Enum

CLOSED = "Cannot perform operation after producer has been closed"
NOT_TRANSACTIONAL = "Transactional method invoked on a non-transactional producer."
NOT_IDEMPOTENT = (
    "Cannot use transactional methods without enabling transactions by setting the transactional.id configuration "
    "property"
)


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
