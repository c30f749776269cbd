"""Whether one record of a transactional id may follow on another (`TransactionMetadata.completeTransitionTo`)."""

from __future__ import annotations

from collections.abc import Iterator

from ...topics.transaction_state import IDLE, PREPARED, VALID_PREVIOUS_STATES, TransactionMetadata, TransactionState
from ..durations import duration

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
COMPLETED = IDLE - {EMPTY}
# how far a transition raises the epoch at most: a decision by 1 to fence the producer, by 1 more with version 2
_EPOCH_STEPS = {EMPTY: 1, **dict.fromkeys(PREPARED, 2)}


def difference(before: TransactionMetadata, after: TransactionMetadata) -> tuple[str, str] | None:
    """Return what was expected of `after` and what it has instead; None if it may follow on `before`."""
    return next(_differences(before, after), None)


def _differences(before: TransactionMetadata, after: TransactionMetadata) -> Iterator[tuple[str, str]]:
    state = after.state
    # one that could not be replicated is written again
    if state is not before.state and before.state not in VALID_PREVIOUS_STATES.get(state, ()):
        yield "a state that may follow", state.name
    yield from _of_producer(before, after)
    if state is not EMPTY and after.transaction_timeout_ms != before.transaction_timeout_ms:
        yield f"a timeout of {duration(before.transaction_timeout_ms)}", duration(after.transaction_timeout_ms)
    yield from _of_partitions(before, after)
    is_begun = before.state not in IDLE and state is not EMPTY
    start = before.start_timestamp_ms if is_begun else -1
    if (is_begun or state is EMPTY) and after.start_timestamp_ms != start:
        yield f"a start at {start}", f"one at {after.start_timestamp_ms}"


def _of_producer(before: TransactionMetadata, after: TransactionMetadata) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with id or epoch: a new id comes with epoch 0, where a producer asks or as was decided."""
    wanted = before.next_producer_id if after.state in COMPLETED else before.producer_id
    is_new = after.producer_id != before.producer_id
    if after.producer_id < 0 or (is_new and after.state is not EMPTY and after.producer_id != wanted):
        yield f"producer {before.producer_id}", f"producer {after.producer_id}"
    low = 0 if is_new else before.producer_epoch
    high = 0 if is_new else low + _EPOCH_STEPS.get(after.state, 0)
    if not low <= after.producer_epoch <= high:
        yield f"an epoch from {low} to {high}", f"epoch {after.producer_epoch}"


def _of_partitions(before: TransactionMetadata, after: TransactionMetadata) -> Iterator[tuple[str, str]]:
    old, new = set(before.partitions), set(after.partitions)
    if after.state in IDLE and new:
        yield "no partitions", _names(new)
    if before.state is ONGOING and after.state is ONGOING and not old <= new:
        yield f"all partitions that it had, {_names(old)}", _names(new)
    if before.state is ONGOING and after.state in PREPARED and old != new:
        yield f"the partitions that it had, {_names(old)}", _names(new)


def _names(partitions: set[tuple[str, int]]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions)) or "none"
