"""What a request decided is logged, and what comes of it is carried out, before it is answered."""

from __future__ import annotations

from ..coordinator.transaction_outcome import Answer, Append, Outcome
from ..coordinator.transaction_states import PREPARE_COMMIT
from ..errors import ConcurrentTransactionsError, LogstoreError
from .coordinated_store import CoordinatedStore
from .coordinator_topic import CoordinatorTopic
from .transaction_markers import MarkerWriter, StatePartition


class TransitionWriter:
    """Writes transitions to `__transaction_state` (`TransactionStateManager.appendTransactionToLog`)."""

    def __init__(self, store: CoordinatedStore, topic: CoordinatorTopic, markers: MarkerWriter) -> None:
        self._store, self._topic, self._markers = store, topic, markers

    def carry_out(self, state: StatePartition, transactional_id: str, outcome: Outcome) -> Answer:
        """The answer, after what it promises has been written; raises it if it is an error.

        Raises:
            LogstoreError: the answer; or the transition could not be logged.
        """
        answer = outcome
        if isinstance(outcome, Append):
            self._write(state, outcome)
            answer = outcome.answer
        if isinstance(answer, Answer):
            return answer
        assert isinstance(answer, LogstoreError)
        unfinished = state.unfinished.get(transactional_id)
        if isinstance(answer, ConcurrentTransactionsError) and unfinished is not None:
            answer.advice = "the transaction before is decided, but its markers cannot be written; see the cause"
            raise answer from unfinished[1]
        raise answer

    def _write(self, state: StatePartition, append: Append) -> None:
        """Log a transition, and carry out what comes of it."""
        following = append.transition.next
        is_commit = following.state is PREPARE_COMMIT
        try:
            if is_commit:
                self._markers.sync(following.partitions)
            self._topic.append(state.number, [state.table.record(append)], needs_sync=is_commit)
        except BaseException:
            with state.lock:
                state.table.append_failed(append)
            raise
        with state.lock:
            completion = state.table.appended(append, now_ms=self._store.now_ms())
        if completion is not None:
            self._markers.complete(state, completion)
