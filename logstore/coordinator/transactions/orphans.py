"""Rules for a transaction that is open in a partition, and that the coordinator may have lost (an orphan).

Kafka has no such rules: other replicas have a coordinator's records, and `kafka-transactions.sh abort` ends an orphan.
"""

from __future__ import annotations

from ...folds.producer_state import ProducerEntry
from ...layout.record import PRODUCER_EPOCH_MAX
from ...model import TopicPartition
from ...topics.transaction_state import PREPARED
from .outcomes import MarkerEntry
from .transaction import Transaction
from .transitions import COMPLETE_COMMIT, ONGOING, supports_epoch_bump


def is_ongoing(transaction: Transaction | None, entry: ProducerEntry, partition: TopicPartition) -> bool:
    """Return whether the coordinator will end the transaction that the producer has open in the partition."""
    if transaction is None or partition not in transaction.partitions:
        return False
    if transaction.state in PREPARED:  # its marker has failed and is tried again; decided, it may have a new epoch
        return entry.producer_epoch <= transaction.producer_epoch
    return transaction.state is ONGOING and entry.producer_epoch == transaction.producer_epoch


def orphan_marker(transaction: Transaction | None, entry: ProducerEntry) -> MarkerEntry:
    """Return the marker for an orphan.

    It commits if the coordinator has committed this transaction and the marker was lost; else it aborts, with the
    epoch of the data, as `kafka-transactions.sh abort` does.
    """
    is_commit = (
        transaction is not None
        and transaction.state is COMPLETE_COMMIT
        and supports_epoch_bump(transaction.client_transaction_version)
        and _decided_epoch(transaction, entry.producer_id) == entry.producer_epoch + 1
    )
    return MarkerEntry(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch + is_commit,
        is_commit=is_commit,
        coordinator_epoch=max(entry.coordinator_epoch, 0),
        transaction_version=2 if is_commit else 0,
    )


def has_marker(entry: ProducerEntry, marker: MarkerEntry) -> bool:
    """Return whether a partition with this producer state has the marker already.

    With version 2 only the marker and later transactions have the marker's epoch.
    """
    if entry.producer_epoch != marker.producer_epoch:
        return entry.producer_epoch > marker.producer_epoch
    return supports_epoch_bump(marker.transaction_version) or entry.current_txn_first_offset is None


def _decided_epoch(transaction: Transaction, producer_id: int) -> int:
    """Return the epoch of the last transaction's markers; it is the highest one if they used up the producer id."""
    return transaction.producer_epoch if transaction.producer_id == producer_id else PRODUCER_EPOCH_MAX
