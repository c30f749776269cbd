"""Verdicts on open transactions: data in a partition beside its coordinator's records.

A transaction should be open while its coordinator says Ongoing, and for a moment after the decision. Otherwise nobody
is going to end it: it hangs (KIP-664, KIP-890).

Verdicts go by the clocks of coordinators, brokers and files, never by a producer's, see `facts.times`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..layout.record import PRODUCER_EPOCH_MAX
from ..topics.transaction_state import PREPARED, TOPIC, TransactionMetadata, TransactionState
from .cluster import Known
from .facts.states import CoordinatorEntry
from .facts.times import Clock
from .facts.transactions import PartitionTransaction, PartitionTransactions
from .lives import EPOCH_BUMPING_VERSION, Lives
from .open_transactions import RULE_OF, Age, Moment, OpenTransaction, Verdict

_DEFAULT_TIMEOUT_MS = 60_000  # transaction.timeout.ms of a producer, where no coordinator tells


def judge(
    history: PartitionTransactions, transaction: PartitionTransaction, lives: Lives, moment: Moment
) -> OpenTransaction:
    """Return the verdict on an open transaction of a partition, with its age."""
    transactional_id, entry = lives.log.owner(transaction.producer_id) or (None, None)
    entries, started_ms = list[CoordinatorEntry](), -1
    if transactional_id is not None and entry is not None:
        entries = lives.log.entries(lives.log.history[transactional_id])
        if is_same_transaction(entry.metadata, transaction):
            started_ms = entry.metadata.start_timestamp_ms
    verdict = _Case(history, transaction, entries, lives, moment).verdict()
    age = _age(history, transaction, started_ms, moment.now_ms)
    timeout_ms = _DEFAULT_TIMEOUT_MS if entry is None else entry.metadata.transaction_timeout_ms
    is_overdue = verdict in RULE_OF or age.age_ms > timeout_ms
    return OpenTransaction(history, transaction, verdict, age, transactional_id, entry, moment, is_overdue=is_overdue)


def _age(history: PartitionTransactions, transaction: PartitionTransaction, started_ms: int, now_ms: int) -> Age:
    """Return the age by the coordinator's clock, or the producer's unless what was written by then refutes it."""
    begun_ms, clock = history.times.written_by(transaction.first_offset)
    if started_ms >= 0:
        begun_ms, clock = started_ms, Clock.COORDINATOR
    elif 0 <= transaction.first_timestamp < begun_ms and transaction.first_timestamp <= now_ms:
        begun_ms, clock = transaction.first_timestamp, Clock.PRODUCER
    return Age(max(now_ms - begun_ms, 0), clock)


class _Case(NamedTuple):
    """An open transaction, and the records of its transactional id, oldest first; none if no id has its producer."""

    history: PartitionTransactions
    transaction: PartitionTransaction
    entries: list[CoordinatorEntry]
    lives: Lives
    moment: Moment

    def verdict(self) -> Verdict:
        """Judge by the last record of the transactional id; earlier ones say whether it ever had the transaction."""
        history, transaction, moment, log = self.history, self.transaction, self.moment, self.lives.log
        place, last = history.partition.key, self.entries[-1].metadata if self.entries else None
        if last is not None and is_same_transaction(last, transaction) and place in last.partitions:
            if last.state is TransactionState.ONGOING:
                is_over = last.start_timestamp_ms + last.transaction_timeout_ms < moment.judged_ms
                return Verdict.TIMED_OUT if is_over else Verdict.ONGOING
            if last.state in PREPARED:
                is_late = last.last_update_timestamp_ms + last.transaction_timeout_ms < moment.judged_ms
                return Verdict.LATE if is_late else Verdict.ENDING
        if history.is_marker_cleaned(transaction):
            return Verdict.MARKER_CLEANED
        if history.may_be_ended(transaction) or log.has_damage:
            return Verdict.DAMAGED
        if not (self.entries or log.is_complete):
            return Verdict.UNKNOWN
        if history.evidence.cluster.is_in_sync(*place) is Known.NO:
            return Verdict.RECENT  # the leader may have its marker
        earlier = [entry for entry in self.entries[:-1] if is_same_transaction(entry.metadata, transaction)]
        if self.lives.has_unanswered(place, transaction, earlier):
            decided = [one for one in earlier if one.metadata.state in PREPARED and place in one.metadata.partitions]
            # the last one may have got its marker after the partition was read
            is_decided_late = max((one.timestamp for one in decided), default=-1) > history.settled_ms
            return Verdict.RECENT if is_decided_late else Verdict.MARKER_MISSING
        return Verdict.RECENT if self._is_written_late() else Verdict.HANGING

    def _is_written_late(self) -> bool:
        """Return whether the data may be newer than what was read of its coordinator, or older than its decision."""
        written_ms, _ = self.history.times.written_by(self.transaction.last_offset)
        if written_ms > self.moment.cluster.settled_ms and not self._is_known_since(written_ms):
            return True
        if self.lives.log.knows_all_of(self.transaction.producer_id):
            return False
        behind = [entry.timestamp for entry in self.entries if entry.timestamp > written_ms]
        return min(behind, default=-1) > self.history.settled_ms

    def _is_known_since(self, written_ms: int) -> bool:
        """Return whether the coordinator's log is newer than the data: it knew of the transaction before the data came.

        It is if it has had a later epoch of the producer for a minute; if its files at rest were written later than
        those of the data; and beside a running broker, which leads it, if it was read later.
        """
        cluster, times = self.moment.cluster, self.lives.log.times
        epoch = self.transaction.producer_id, self.transaction.producer_epoch
        later = (one.timestamp for one in self.entries if epoch < one.metadata[:2] <= (epoch[0], PRODUCER_EPOCH_MAX))
        if min(later, default=cluster.settled_ms + 1) <= cluster.settled_ms:
            return True
        read = {one.partition: times[one.partition] for one in self.entries[-1:]} or times
        if self.moment.is_at_rest:
            return cluster.has_one_time or all(one.read_up_to_ms >= written_ms for one in read.values())
        is_later = all(one.begun_ms >= self.history.times.ended_ms for one in read.values())
        leads = (self.history.evidence.cluster.is_in_sync(TOPIC, partition) is Known.YES for partition in read)
        return cluster.is_live and is_later and all(leads)


def is_same_transaction(metadata: TransactionMetadata, transaction: PartitionTransaction) -> bool:
    """Return whether a coordinator's record can be about this transaction, by producer and epoch.

    Before the decision the record has the epoch of the data, after it that of the marker: the next epoch with
    transaction version 2; with older versions the same, or the next if the producer was fenced.
    """
    if metadata.producer_id != transaction.producer_id:
        return False
    epoch, next_epoch = transaction.producer_epoch, min(transaction.producer_epoch + 1, PRODUCER_EPOCH_MAX)
    if metadata.state is TransactionState.ONGOING:
        return metadata.producer_epoch == epoch
    if metadata.state not in PREPARED:
        return False
    if metadata.client_transaction_version >= EPOCH_BUMPING_VERSION:
        return metadata.producer_epoch == next_epoch
    return metadata.producer_epoch in (epoch, next_epoch)
