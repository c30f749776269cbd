"""Partitions and their transaction coordinator brought into agreement after a crash.

They agree after the end of a process, because a partition joins a transaction before its data is written. They may
disagree after a power failure: each partition loses what was not synced, or keeps it, by itself.

- An open transaction that is not ongoing for the coordinator would block read_committed consumers for ever. It was
  never decided, or its decision was lost, so it is aborted; unless the coordinator still knows of a commit.
- A producer epoch that a partition has seen must not be given again, or the first batches of a new producer would be
  taken for duplicates. So the coordinator goes on from the highest.

Kafka has no such step: there other replicas have what one lost, and what is left is for `kafka-transactions.sh abort`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...coordinator.transactions.orphans import is_ongoing, orphan_marker
from ...coordinator.transactions.transaction import Transaction
from ...coordinator.transactions.transitions import COMPLETE_COMMIT
from ...layout.batch import NO_PRODUCER_ID
from ...log.partition_log import PartitionLog
from ...model import TopicPartition
from .markers import MarkerWriter
from .partition import StatePartition

if TYPE_CHECKING:
    from ..data_directory import DataDirectory

_Known = dict[int, tuple[StatePartition, Transaction]]


def reconcile(store: DataDirectory, states: Iterable[StatePartition], markers: MarkerWriter) -> None:
    """End the open transactions that nobody else would end, and raise epochs that have been used already.

    Prepared transactions must have been finished before. Nobody else may use the coordinator meanwhile.

    Raises:
        LogstoreError: a partition cannot be written.
    """
    known = _known(states)
    epochs: dict[int, int] = {}
    for partition, log in _logs(store):
        for entry in log.producer_entries():
            _, transaction = known.get(entry.producer_id, (None, None))
            if transaction is not None and transaction.producer_id == entry.producer_id:
                epochs[entry.producer_id] = max(entry.producer_epoch, epochs.get(entry.producer_id, -1))
            if entry.current_txn_first_offset is not None and not is_ongoing(transaction, entry, partition):
                markers.write(partition, orphan_marker(transaction, entry, partition))
                markers.sync([partition])
    for producer_id, epoch in epochs.items():
        state, transaction = known[producer_id]
        if epoch > transaction.producer_epoch:
            state.replace(transaction._replace(producer_epoch=epoch))  # it was given before the record of it was lost


def _known(states: Iterable[StatePartition]) -> _Known:
    """Return the transactional ids by producer id; also by one that a committed transaction has used up."""
    found: _Known = {}
    for state in states:
        for one in state.table:
            found[one.producer_id] = state, one
            if one.state is COMPLETE_COMMIT and one.previous_producer_id != NO_PRODUCER_ID:
                found[one.previous_producer_id] = state, one
    return found


def _logs(store: DataDirectory) -> Iterator[tuple[TopicPartition, PartitionLog]]:
    for topic in store.topics.values():
        for number in range(topic.partition_count):
            yield TopicPartition(topic.name, number), store.log(topic.name, number)
