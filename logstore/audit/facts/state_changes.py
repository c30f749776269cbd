"""Whether one record of a transactional id may follow on another (`TransactionMetadata.completeTransitionTo`)."""

from __future__ import annotations

from collections.abc import Iterator

from ...layout.batch import NO_PRODUCER_ID
from ...topics.transaction_state import IDLE, PREPARED, VALID_PREVIOUS_STATES, TransactionMetadata, TransactionState
from ..durations import duration

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
COMPLETED = IDLE - {EMPTY}
_VERSIONS = range(3)  # of transactions, `TransactionVersion`
_EPOCH_EXHAUSTED = 32_766  # from here on a decision names the next producer id
# how far a transition raises the epoch at most: a decision by 1 to fence the producer, by 1 more with version 2
_EPOCH_STEPS = {EMPTY: 1, **dict.fromkeys(PREPARED, 2)}


def difference(before: TransactionMetadata, after: TransactionMetadata) -> tuple[str, str] | None:
    """Return what was expected of `after` and what it has instead; None if it may follow on `before`."""
    return next(_differences(before, after), None)


def difference_of_first(first: TransactionMetadata) -> tuple[str, str] | None:
    """Return what was expected of the first record of a transactional id and what it has instead; None if it fits."""
    if first.state is not EMPTY or first.producer_epoch or first.start_timestamp_ms >= 0:
        found = f"{first.state.name} of epoch {first.producer_epoch}, with a start at {first.start_timestamp_ms}"
        return "EMPTY of epoch 0, the first record of its transactional id", found
    return next(_of_replaced(first, first), None)


def _differences(before: TransactionMetadata, after: TransactionMetadata) -> Iterator[tuple[str, str]]:
    state = after.state
    # one that could not be replicated is written again
    if state is not before.state and before.state not in VALID_PREVIOUS_STATES.get(state, ()):
        yield "a state that may follow", state.name
    yield from _of_producer(before, after)
    if state is not EMPTY and after.transaction_timeout_ms != before.transaction_timeout_ms:
        yield f"a timeout of {duration(before.transaction_timeout_ms)}", duration(after.transaction_timeout_ms)
    yield from _of_partitions(before, after)
    yield from _of_replaced(before, after)
    if state in COMPLETED and after.client_transaction_version != before.client_transaction_version:
        versions = before.client_transaction_version, after.client_transaction_version
        yield f"version {versions[0]} of transactions, as was decided by", f"version {versions[1]}"
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


def _of_replaced(before: TransactionMetadata, after: TransactionMetadata) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with ids that come before and behind, which are told where a producer's epochs run out."""
    if after.client_transaction_version not in _VERSIONS:
        yield f"a version of transactions up to {_VERSIONS[-1]}", f"version {after.client_transaction_version}"
    if after.previous_producer_id not in (NO_PRODUCER_ID, before.producer_id):
        yield f"previous producer {before.producer_id}, or none", f"previous producer {after.previous_producer_id}"
    is_replaced = after.producer_epoch >= _EPOCH_EXHAUSTED or after.next_producer_epoch >= 0
    if after.next_producer_id != NO_PRODUCER_ID and not is_replaced:
        yield "no next producer, as long as there are epochs", f"next producer {after.next_producer_id}"


def _of_partitions(before: TransactionMetadata, after: TransactionMetadata) -> Iterator[tuple[str, str]]:
    old, new = set(before.partitions), set(after.partitions)
    if after.state in IDLE and new:
        yield "no partitions", _names(new)
    if before.state is ONGOING and after.state is ONGOING and not old <= new:
        yield f"all partitions that it had, {_names(old)}", _names(new)
    if before.state in (ONGOING, after.state) and after.state in PREPARED and old != new:
        yield f"the partitions that it had, {_names(old)}", _names(new)


def _names(partitions: set[tuple[str, int]]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions)) or "none"
