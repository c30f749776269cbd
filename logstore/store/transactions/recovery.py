"""Reconciliation of partitions and their transaction coordinator after a crash.

They agree when only the process ends, because a partition joins a transaction before its data is written. They may
disagree after a power failure, as each partition loses or keeps unsynced data on its own.

- An open transaction that the coordinator does not consider ongoing would block read_committed consumers for ever. It
  was never decided, or its decision was lost, so it is aborted; unless the coordinator still knows of a commit.
- A producer epoch that a partition has seen must not be given out again, or the first batches of a new producer would
  count as duplicates. So the coordinator continues from the highest.

Kafka has no such step: other replicas have what one lost, and the rest is left to `kafka-transactions.sh abort`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...coordinator.transactions.orphans import is_ongoing, orphan_marker
from ...coordinator.transactions.transaction import Transaction
from ...coordinator.transactions.transitions import COMPLETE_COMMIT
from ...layout.batch import NO_PRODUCER_ID
from ...log.partition_log import PartitionLog
from ...model import TopicPartition
from ..host import Host
from .markers import MarkerWriter
from .partition import TransactionStatePartition

_Known = dict[int, tuple[TransactionStatePartition, Transaction]]


def reconcile(host: Host, states: Iterable[TransactionStatePartition], markers: MarkerWriter) -> None:
    """End open transactions that nothing else would end, and raise epochs that were used already.

    Prepared transactions must be finished before. Nothing else may use the coordinator meanwhile.
    """
    known = _known(states)
    epochs: dict[int, int] = {}
    for partition, log in _logs(host):
        for entry in log.producer_entries():
            _, transaction = known.get(entry.producer_id, (None, None))
            if transaction is not None and transaction.producer_id == entry.producer_id:
                epochs[entry.producer_id] = max(entry.producer_epoch, epochs.get(entry.producer_id, -1))
            if entry.current_txn_first_offset is not None and not is_ongoing(transaction, entry, partition):
                markers.write(partition, orphan_marker(transaction, entry))
                markers.sync([partition])
    for producer_id, epoch in epochs.items():
        state, transaction = known[producer_id]
        if epoch > transaction.producer_epoch:
            state.replace(transaction._replace(producer_epoch=epoch))  # it was given out, and its record was lost


def _known(states: Iterable[TransactionStatePartition]) -> _Known:
    """Return the transactional ids by producer id, and by the previous producer id of a committed transaction."""
    found: _Known = {}
    for state in states:
        for transaction in state.table:
            found[transaction.producer_id] = state, transaction
            if transaction.state is COMPLETE_COMMIT and transaction.previous_producer_id != NO_PRODUCER_ID:
                found[transaction.previous_producer_id] = state, transaction
    return found


def _logs(host: Host) -> Iterator[tuple[TopicPartition, PartitionLog]]:
    for topic in host.topics.values():
        for number in range(topic.partition_count):
            yield TopicPartition(topic.name, number), host.log(topic.name, number)
