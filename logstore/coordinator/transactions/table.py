"""The transactional ids of a partition of `__transaction_state`: replayed from its records, changed by requests.

The owner of a table writes: it logs the record of an `Append`, then puts `following` into the table. When all markers
of a decision are written, it logs the completion and puts that.

>>> from .outcomes import Context, TransactionRules
>>> table = TransactionTable(TransactionRules(), coordinator_epoch=0)
>>> from .requests import InitProducerId
>>> append = InitProducerId("billing", 60000).decide(None, Context(table.rules, lambda: 4000, now_ms=5))
>>> table.put(append.following)
>>> table.get("billing").producer_epoch
0
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import TopicPartition
from ...topics.transaction_state import decode_key, encode_key
from . import ending
from .outcomes import TransactionRules
from .transaction import Transaction, from_record, log_record


class TransactionTable:
    """Transactional ids by name. Not thread-safe: one lock guards a table and its log.

    `coordinator_epoch` is the leader epoch of the partition of `__transaction_state`; markers carry it.
    """

    def __init__(self, rules: TransactionRules, *, coordinator_epoch: int) -> None:
        self.rules = rules
        self.coordinator_epoch = coordinator_epoch
        self._transactions: dict[str, Transaction] = {}

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._transactions.values())

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the state of a transactional id, None if it is unknown."""
        return self._transactions.get(transactional_id)

    def put(self, transaction: Transaction) -> None:
        """Replace the state of a transactional id, after its record was logged."""
        self._transactions[transaction.transactional_id] = transaction

    def record(self, transaction: Transaction) -> tuple[bytes, bytes]:
        """Return key and value of the record to log."""
        return log_record(transaction, version=min(self.rules.transaction_version, 1))

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply the next record of the log; raises SchemaError."""
        if value is None:
            self._transactions.pop(decode_key(key), None)
        else:
            self.put(from_record(key, value))

    def marker_written(self, transactional_id: str, partition: TopicPartition) -> None:
        """Note that a partition of a decided transaction does not wait for its marker any more."""
        current = self._transactions[transactional_id]
        self.put(current._replace(partitions=current.partitions - {partition}))

    def timed_out(self, *, now_ms: int) -> list[str]:
        """Return the transactional ids whose transaction has timed out, see `ending.AbortTimedOut`."""
        return [transaction.transactional_id for transaction in self if ending.is_timed_out(transaction, now_ms=now_ms)]

    def expired(self, *, now_ms: int) -> list[bytes]:
        """Return the keys of tombstones for transactional ids that have expired; log and `replay` them."""
        rules = self.rules
        return [
            encode_key(name) for name, known in self._transactions.items() if ending.is_expired(known, rules, now_ms)
        ]
