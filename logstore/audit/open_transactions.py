"""Why a transaction is still open: its data in a partition, beside what the coordinator says of it.

A transaction is open in a partition from its first record to its marker. That is as it should be while the coordinator
says Ongoing, and for a moment after it has decided. Otherwise nobody is going to end it: it hangs (KIP-664, KIP-890).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..topics.transaction_state import TransactionMetadata, TransactionState
from .coordinator_log import PREPARED, CoordinatorEntry, CoordinatorLog
from .lives import Lives
from .partition_transactions import PartitionTransaction, PartitionTransactions

_EPOCH_MAX = 32767
_EPOCH_BUMPING_VERSION = 2  # transaction.version whose markers carry the next epoch


class Verdict(Enum):
    """What is to become of an open transaction."""

    ONGOING = "ongoing"  # the coordinator will end it
    TIMED_OUT = "timed out"  # it should have, by now
    ENDING = "ending"  # decided, the marker is on its way
    LATE = "marker is late"
    MARKER_MISSING = "marker is missing"  # decided and closed, without a marker here
    HANGING = "hanging"  # no coordinator knows of it
    UNKNOWN = "unknown"  # the coordinator's records are not here


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One open transaction in one partition.

    Attributes:
        transaction_timeout_ms, age_ms: of the whole transaction as far as its coordinator tells, else of this part.
        transactional_id, coordinator: None if there is no record of its producer.
    """

    history: PartitionTransactions
    transaction: PartitionTransaction
    verdict: Verdict
    age_ms: int
    transactional_id: str | None
    coordinator: CoordinatorEntry | None

    @property
    def name(self) -> str:
        """Of the partition."""
        return self.history.partition.name


def open_transactions(
    history: PartitionTransactions, lives: Lives, log: CoordinatorLog, now_ms: int
) -> list[OpenTransaction]:
    """All of one partition, the one that readers wait for first.

    Args:
        now_ms: the time that ages are counted to.
    """
    return [_judged(history, transaction, lives, log, now_ms) for transaction in history.open_transactions]


def _judged(
    history: PartitionTransactions, transaction: PartitionTransaction, lives: Lives, log: CoordinatorLog, now_ms: int
) -> OpenTransaction:
    owner = log.owner(transaction.producer_id)
    started_ms = transaction.first_timestamp
    if owner is None:
        verdict = Verdict.HANGING if log.is_complete and not history.may_be_ended(transaction) else Verdict.UNKNOWN
        return OpenTransaction(history, transaction, verdict, now_ms - started_ms, None, None)
    transactional_id, entry = owner
    metadata = entry.metadata
    if is_same_transaction(metadata, transaction) and metadata.start_timestamp_ms >= 0:
        started_ms = metadata.start_timestamp_ms
    verdict = _verdict(history, transaction, lives, log.history[transactional_id], now_ms)
    return OpenTransaction(history, transaction, verdict, now_ms - started_ms, transactional_id, entry)


def _verdict(
    history: PartitionTransactions,
    transaction: PartitionTransaction,
    lives: Lives,
    entries: list[CoordinatorEntry],
    now_ms: int,
) -> Verdict:
    """By the last record of the transactional id; the ones before tell whether the transaction was ever its own."""
    metadata = entries[-1].metadata
    place = history.partition.key
    if is_same_transaction(metadata, transaction) and place in metadata.partitions:
        if metadata.state is TransactionState.ONGOING:
            is_over = metadata.start_timestamp_ms + metadata.transaction_timeout_ms < now_ms
            return Verdict.TIMED_OUT if is_over else Verdict.ONGOING
        if metadata.state in PREPARED:
            is_late = metadata.last_update_timestamp_ms + metadata.transaction_timeout_ms < now_ms
            return Verdict.LATE if is_late else Verdict.ENDING
    if history.may_be_ended(transaction):
        return Verdict.UNKNOWN
    earlier = [entry for entry in entries[:-1] if is_same_transaction(entry.metadata, transaction)]
    return Verdict.MARKER_MISSING if lives.has_unanswered(place, earlier) else Verdict.HANGING


def is_same_transaction(metadata: TransactionMetadata, transaction: PartitionTransaction) -> bool:
    """Whether a coordinator's record can be about this transaction, by producer and epoch.

    Before the decision the record has the epoch of the data. After it, it has that of the marker: with transaction
    version 2 the next one, before that the same, or the next one if the producer was fenced.
    """
    if metadata.producer_id != transaction.producer_id:
        return False
    epoch, next_epoch = transaction.producer_epoch, min(transaction.producer_epoch + 1, _EPOCH_MAX)
    if metadata.state is TransactionState.ONGOING:
        return metadata.producer_epoch == epoch
    if metadata.state not in PREPARED:
        return False
    if metadata.client_transaction_version >= _EPOCH_BUMPING_VERSION:
        return metadata.producer_epoch == next_epoch
    return metadata.producer_epoch in (epoch, next_epoch)
