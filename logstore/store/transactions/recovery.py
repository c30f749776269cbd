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

from ...coordinator.transactions.outcomes import Marker
from ...coordinator.transactions.transaction import EPOCH_MAX, Transaction
from ...coordinator.transactions.transitions import COMPLETE_COMMIT, ONGOING, PREPARED, supports_epoch_bump
from ...folds.producer_state import ProducerEntry
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
            if entry.current_txn_first_offset is not None and not _is_ongoing(transaction, entry, partition):
                markers.write(partition, _end_of(transaction, entry, partition))
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


def _is_ongoing(transaction: Transaction | None, entry: ProducerEntry, partition: TopicPartition) -> bool:
    """Whether the coordinator will end what the producer has open in the partition."""
    if transaction is None or transaction.state not in PREPARED | {ONGOING}:
        return False
    return entry.producer_epoch == transaction.producer_epoch and partition in transaction.partitions


def _end_of(transaction: Transaction | None, entry: ProducerEntry, partition: TopicPartition) -> Marker:
    """The marker of the transaction before, if that was committed and its marker is lost; else one that aborts.

    An abort that nobody asked for has the epoch of the data, as `kafka-transactions.sh abort` writes it.
    """
    is_commit = (
        transaction is not None
        and transaction.state is COMPLETE_COMMIT
        and supports_epoch_bump(transaction.client_transaction_version)
        and _decided_epoch(transaction, entry.producer_id) == entry.producer_epoch + 1
    )
    return Marker(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch + is_commit,
        is_commit=is_commit,
        coordinator_epoch=max(entry.coordinator_epoch, 0),
        transaction_version=2 if is_commit else 0,
        partitions=frozenset([partition]),
    )


def _decided_epoch(transaction: Transaction, producer_id: int) -> int:
    """The epoch that the markers of the transaction before had; a producer id is used up by the last epoch there is."""
    return transaction.producer_epoch if transaction.producer_id == producer_id else EPOCH_MAX
