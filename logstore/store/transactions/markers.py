"""Markers of decided transactions, written to their partitions (`TransactionMarkerChannelManager`).

Kafka sends markers to the leaders of the partitions until they are written. Here the call that decided writes them at
once, and those that failed are tried again periodically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...coordinator.transactions.orphans import has_marker
from ...coordinator.transactions.outcomes import MarkerEntry, is_taken_over, marker_of
from ...coordinator.transactions.table import TransactionTable
from ...coordinator.transactions.transaction import Transaction
from ...errors import LogstoreError
from ...model import TopicPartition
from ...topics.consumer_offsets import TOPIC as OFFSETS_TOPIC
from ..host import Host
from ..internal_topic import CoordinatorTopic, append_marker, log_or_none

#: writes a marker to a partition of `__consumer_offsets`, which decides on the offsets waiting for it
WriteOffsetsMarker = Callable[[int, MarkerEntry], None]


class MarkerWriter:
    """Writes the markers of decided transactions."""

    def __init__(self, host: Host, topic: CoordinatorTopic, write_offsets_marker: WriteOffsetsMarker) -> None:
        self._host = host
        self._topic = topic
        self._write_offsets_marker = write_offsets_marker

    def write(self, partition: TopicPartition, marker: MarkerEntry) -> None:
        """Write a marker to one partition, unless the partition was deleted."""
        topic, number = partition
        log = log_or_none(self._host, topic, number)
        if log is None:
            return
        try:
            if topic == OFFSETS_TOPIC:
                self._write_offsets_marker(number, marker)
            else:
                append_marker(log, marker)
        except LogstoreError:
            # another log or none: the topic was deleted meanwhile, and needs no marker
            if log_or_none(self._host, topic, number) is log:
                raise

    def sync(self, partitions: Iterable[TopicPartition]) -> None:
        """Sync the partitions, if commits must be durable."""
        if self._topic.is_durable:
            for topic, number in partitions:
                log = log_or_none(self._host, topic, number)
                if log is not None:
                    log.flush()

    def write_all(self, table: TransactionTable, decided: Transaction) -> LogstoreError | None:
        """Write the missing markers; return the error of the last one that failed."""
        marker = marker_of(decided, coordinator_epoch=table.coordinator_epoch)
        current = table.get(decided.transactional_id)
        assert current is not None
        failure: LogstoreError | None = None
        for partition in sorted(current.partitions):
            try:
                self.write(partition, marker)
                self.sync([partition])
            except LogstoreError as error:
                failure = error
                if is_taken_over(error):
                    break
            else:
                table.marker_written(decided.transactional_id, partition)
        return failure

    def pass_over_written(self, table: TransactionTable, decided: Transaction) -> None:
        """Leave out partitions that have the marker already.

        Some have it if an interrupt cut off an earlier attempt, or if a power failure took the record of the completion
        and left what was written after it.
        """
        marker = marker_of(decided, coordinator_epoch=table.coordinator_epoch)
        for partition in decided.partitions:
            log = log_or_none(self._host, *partition)
            if log is None or not log.is_writable:
                continue
            entry = log.producer(marker.producer_id)
            if entry is not None and has_marker(entry, marker):
                self.sync([partition])
                table.marker_written(decided.transactional_id, partition)
