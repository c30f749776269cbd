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

import logging
import threading
from collections.abc import Iterable, Iterator

from ...calls import TRANSACTIONS, alone
from ...coordinator.transactions.orphans import has_marker, is_ongoing, orphan_marker
from ...coordinator.transactions.outcomes import MarkerEntry
from ...coordinator.transactions.transaction import Transaction
from ...coordinator.transactions.transitions import COMPLETE_COMMIT
from ...errors import LogstoreError
from ...layout.batch import NO_PRODUCER_ID
from ...log.partition_log import PartitionLog
from ...model import TopicPartition
from ..host import Host
from ..internal_topic import log_or_none
from .markers import MarkerWriter
from .partition import TransactionStatePartition

_Known = dict[int, tuple[TransactionStatePartition, Transaction]]

_LOGGER = logging.getLogger("logstore")


class Orphans:
    """Open transactions that the coordinator does not know, and markers of theirs that could not be written yet.

    A topic's configuration may refuse a marker, so the store opens all the same, for it to be changed. While such a
    marker is missing its producer must write nothing newer there: the next marker would decide both transactions.

    Attributes:
        refused: by partition the markers to be tried again.
    """

    def __init__(self, host: Host, markers: MarkerWriter) -> None:
        self.refused: dict[TopicPartition, list[MarkerEntry]] = {}
        self._host, self._markers = host, markers
        self._lock = threading.Lock()

    def end(self, partition: TopicPartition, marker: MarkerEntry) -> None:
        """End a transaction; a marker that cannot be written is logged, and tried again."""
        try:
            self._write(partition, marker)
        except LogstoreError as error:
            self.refused.setdefault(partition, []).append(marker)
            _LOGGER.warning(
                "No coordinator knows the transaction of producer id %d in %s-%d, and it cannot be ended, so "
                "read_committed waits for it; it is tried again: %s",
                *(marker.producer_id, *partition, error),
            )

    def end_refused(self, partition: TopicPartition) -> None:
        """Write the markers that are missing in a partition; raises the LogstoreError of one that still fails."""
        with alone(TRANSACTIONS), self._lock:
            for marker in self.refused.get(partition, ()):
                self._write(partition, marker)
            self.refused.pop(partition, None)

    def _write(self, partition: TopicPartition, marker: MarkerEntry) -> None:
        log = log_or_none(self._host, *partition)
        entry = None if log is None else log.producer(marker.producer_id)
        if entry is None or not has_marker(entry, marker):  # else an interrupt or a failed sync came after the write
            self._markers.write(partition, marker)
        self._markers.sync([partition])


def reconcile(host: Host, states: Iterable[TransactionStatePartition], orphans: Orphans) -> None:
    """End open transactions that nothing else would end, and raise epochs that were used already.

    Prepared transactions must be tried before. Nothing else may use the coordinator meanwhile.
    """
    known = _known(states)
    epochs: dict[int, int] = {}
    for partition, log in _logs(host):
        for entry in log.producer_entries():
            _, transaction = known.get(entry.producer_id, (None, None))
            if transaction is not None and transaction.producer_id == entry.producer_id:
                epochs[entry.producer_id] = max(entry.producer_epoch, epochs.get(entry.producer_id, -1))
            if entry.current_txn_first_offset is not None and not is_ongoing(transaction, entry, partition):
                orphans.end(partition, orphan_marker(transaction, entry))
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
