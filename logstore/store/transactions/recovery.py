"""After a crash: what the partitions know of producers, held against what their coordinator knows.

The end of the process alone never parts them, for a partition is in the transaction before its data is in the
partition. A power failure may: of what was not synced, the disk keeps what it likes, in each partition by itself.

- An open transaction that the coordinator has not as ongoing would hold up read_committed consumers for ever. It was
  never decided, or its decision did not last, so it is aborted; unless the coordinator still knows of a commit.
- A producer epoch that a partition has seen must not be given again, or the first batches of a new producer would be
  taken for repetitions. So the coordinator goes on from the highest.

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
    from ..store import Store

_Known = dict[int, tuple[StatePartition, Transaction]]


def reconcile(store: Store, states: Iterable[StatePartition], markers: MarkerWriter) -> None:
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
    """The transactional ids by producer id; also by the used up one, whose last transaction was committed."""
    found: _Known = {}
    for state in states:
        for one in state.table:
            found[one.producer_id] = state, one
            if one.state is COMPLETE_COMMIT and one.previous_producer_id != NO_PRODUCER_ID:
                found[one.previous_producer_id] = state, one
    return found


def _logs(store: Store) -> Iterator[tuple[TopicPartition, PartitionLog]]:
    for topic in store.topics.values():
        for number in range(topic.partition_count):
            yield TopicPartition(topic.name, number), store.log(topic.name, number)
