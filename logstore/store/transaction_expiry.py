"""Transactions that take too long, and transactional ids that nobody uses any more (`TransactionCoordinator`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..coordinator.transaction_outcome import Answer, Outcome
from ..coordinator.transaction_states import DEAD
from ..topics.transaction_state import decode_key
from .coordinated_store import CoordinatedStore
from .coordinator_topic import CoordinatorTopic
from .one_by_one import do_each
from .transaction_markers import StatePartition

CarryOut = Callable[[StatePartition, str, Outcome], Answer]

_BATCH_SIZE_MAX = 1 << 19  # bytes of keys in one batch of tombstones
_RECORD_OVERHEAD_SIZE = 21  # bytes; `DefaultRecord.MAX_RECORD_OVERHEAD`


def abort_timed_out(store: CoordinatedStore, state: StatePartition, carry_out: CarryOut) -> None:
    """Fence and abort the transactions that have taken longer than their timeout.

    Raises:
        LogstoreError: of the first one that could not be; the others have been.
    """

    def abort(transactional_id: str) -> None:
        with state.lock:
            outcome = state.table.abort_timed_out(
                transactional_id, allocate=store.next_producer_id, now_ms=store.now_ms()
            )
        carry_out(state, transactional_id, outcome)

    with state.lock:
        timed_out = state.table.timed_out(now_ms=store.now_ms())
    do_each(timed_out, abort)


def remove_expired(store: CoordinatedStore, state: StatePartition, topic: CoordinatorTopic) -> None:
    """Write the tombstones of transactional ids that have expired, and forget these.

    Raises:
        LogstoreError: the partition cannot be written; those that are left live on.
    """
    with state.lock:
        keys = state.table.expire(now_ms=store.now_ms())
    try:
        for batch in tombstone_batches(keys):
            topic.append(state.number, [(key, None) for key in batch], needs_sync=False)
            with state.lock:
                for key in batch:
                    state.table.forget(key)
    except BaseException:
        _live_on(state, keys)
        raise


def _live_on(state: StatePartition, keys: list[bytes]) -> None:
    """Those of the transactional ids that are not forgotten may be used again, after an interruption too."""
    with state.lock:
        for key in keys:
            one = state.table.get(decode_key(key))
            if one is not None and one.pending_state is DEAD:
                state.table.expiry_failed(key)


def tombstone_batches(keys: list[bytes]) -> Iterator[list[bytes]]:
    """The keys in batches of a size that any topic takes."""
    batch: list[bytes] = []
    size = 0
    for key in keys:
        size += len(key) + _RECORD_OVERHEAD_SIZE
        if batch and size > _BATCH_SIZE_MAX:
            yield batch
            batch, size = [], len(key) + _RECORD_OVERHEAD_SIZE
        batch.append(key)
    if batch:
        yield batch
