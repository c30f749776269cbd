"""The transactional ids of a partition of `__transaction_state`: replayed from its records, changed by requests.

The owner of a table writes. It logs the record of an `Append`, then calls `appended` (or `append_failed`). It carries
out the `Completion` of a decision, then calls `completed`.

>>> from .outcomes import TransactionRules
>>> table = TransactionTable(TransactionRules())
>>> from .requests import init_producer_id
>>> request = init_producer_id(None, "billing", timeout_ms=60000, rules=table.rules, allocate=lambda: 4000, now_ms=5)
>>> append = table.begin(request)
>>> table.appended(append, now_ms=5), table.get("billing").producer_epoch
(None, 0)
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import TopicPartition
from ...topics.transaction_state import decode_key, encode_key
from . import ending, transitions
from .outcomes import Append, Completion, Outcome, TransactionRules, begin_completion
from .transaction import Transaction, from_record, log_record


class TransactionTable:
    """Transactional ids by name. Not thread-safe: one lock guards a table and its log.

    `coordinator_epoch` is the leader epoch of the partition of `__transaction_state`; markers carry it.
    """

    def __init__(self, rules: TransactionRules, *, coordinator_epoch: int = 0) -> None:
        self.rules = rules
        self.coordinator_epoch = coordinator_epoch
        self._transactions: dict[str, Transaction] = {}

    def __len__(self) -> int:
        return len(self._transactions)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._transactions.values())

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the transactional id as it stands, None if it is unknown."""
        return self._transactions.get(transactional_id)

    def replay(self, key: bytes, value: bytes | None, *, offset: int | None = None) -> None:
        """Apply the next record of the log; raises SchemaError, which names `offset`."""
        if value is None:
            self._transactions.pop(decode_key(key, offset=offset), None)
        else:
            transaction = from_record(key, value, offset=offset)
            self._transactions[transaction.transactional_id] = transaction

    def completion_of(self, transactional_id: str, *, now_ms: int) -> Completion | None:
        """Return how to finish a decided transaction, also one that was begun before; None without a decision."""
        current = self.get(transactional_id)
        if current is None or current.state not in transitions.PREPARED:
            return None
        return self._begun(begin_completion(current._replace(pending_state=None), **self._at(now_ms)))

    def release(self) -> None:
        """Drop pending transitions: what the log does not have by now has not happened."""
        for one in list(self):
            if one.pending_state is not None:
                self._transactions[one.transactional_id] = one._replace(pending_state=None)

    def begin(self, outcome: Outcome) -> Outcome:
        """Make an Append pending; return the outcome of a request (see `requests`, `ending`) as it is."""
        if isinstance(outcome, Append):
            current = outcome.transition.current
            self._transactions[current.transactional_id] = current
        return outcome

    def timed_out(self, *, now_ms: int) -> list[str]:
        """Return the transactional ids whose transaction has timed out, see `ending.abort_timed_out`."""
        return [one.transactional_id for one in self if ending.is_timed_out(one, now_ms=now_ms)]

    def expire(self, *, now_ms: int) -> list[bytes]:
        """Mark transactional ids that have expired as dead; return the keys of the tombstones to log."""
        expired = [one for one in self if ending.is_expired(one, rules=self.rules, now_ms=now_ms)]
        for one in expired:
            self._transactions[one.transactional_id] = transitions.prepare_dead(one).current
        return [encode_key(one.transactional_id) for one in expired]

    def record(self, append: Append | Completion) -> tuple[bytes, bytes]:
        """Return key and value of the record to log."""
        return log_record(append.transition.next, version=self.rules.record_version)

    def appended(self, append: Append, *, now_ms: int) -> Completion | None:
        """Complete the transition of `append`, whose record is in the log; return the Completion of a decision."""
        following = self._complete(append.transition)
        if following.state not in transitions.PREPARED:
            return None
        return self._begun(begin_completion(following, **self._at(now_ms)))

    def append_failed(self, append: Append) -> None:
        """Undo `append`, whose record could not be written, except for an epoch that was raised to fence."""
        before = append.transition.current
        has_failed = before.has_failed_epoch_fence or (
            append.is_epoch_fence and not transitions.supports_epoch_bump(self.rules.transaction_version)
        )
        self._transactions[before.transactional_id] = before._replace(
            pending_state=None, has_failed_epoch_fence=has_failed
        )

    def marker_written(self, completion: Completion, partition: TopicPartition) -> bool:
        """Note that a partition has its marker, or needs none; return whether no partition is left.

        Raises KeyError for a partition that is not waiting.
        """
        current = self._transactions[completion.transition.current.transactional_id]
        if partition not in current.partitions:
            raise KeyError(partition)
        current = current._replace(partitions=current.partitions - {partition})
        self._transactions[current.transactional_id] = current
        return not current.partitions

    def completed(self, completion: Completion) -> None:
        """End the transaction of `completion`, whose record is in the log."""
        self._complete(completion.transition)

    def forget(self, key: bytes) -> None:
        """Forget an expired transactional id, whose tombstone is in the log."""
        del self._transactions[decode_key(key)]

    def _at(self, now_ms: int) -> dict[str, int]:
        return {"coordinator_epoch": self.coordinator_epoch, "now_ms": now_ms}

    def _begun(self, completion: Completion) -> Completion:
        current = completion.transition.current
        self._transactions[current.transactional_id] = current
        return completion

    def _complete(self, transition: transitions.Transition) -> Transaction:
        following = transition.next
        current = self._transactions[following.transactional_id]
        completed = transitions.complete_transition(current, following)
        self._transactions[following.transactional_id] = completed
        return completed
