"""Columns of records written to the logs of a topic at once: the fast way in for many records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ... import clock
from ...calls import SENDING, alone
from ...columns.record_columns import RecordColumns
from ...errors import LogstoreError
from ...log.append.request import AppendInfo
from ...model import TopicPartition
from .buffer import Buffer, pause
from .config import ProducerConfig, require_column_sizes
from .queues import PartitionQueue, TopicQueues, partitions_for_keys
from .retry import RETRIABLE, Backoff
from .transactions import TransactionManager

_NO_SIZE = 1 << 62  # counts as a full batch for the sticky partitioner


class ColumnsMetadata(NamedTuple):
    """Where the records of one partition are, in order; offsets are inclusive."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    record_count: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


class ColumnsSender:
    """Appends columns for one producer, behind its earlier records."""

    def __init__(self, config: ProducerConfig, buffer: Buffer, transactions: TransactionManager | None) -> None:
        self._config, self._buffer, self._transactions = config, buffer, transactions
        self._ignores_keys: bool = config["partitioner.ignore.keys"]
        self._max_block_s: float = config["max.block.ms"] / 1000
        self._backoff = Backoff(config)

    def send(self, topic: str, columns: RecordColumns, partition: int | None) -> list[ColumnsMetadata]:
        """Append all rows, in order within each partition; see `Producer.send_columns`."""
        require_column_sizes(self._config, columns)
        self._buffer.require_open()
        queues = self._buffer.queues_of(topic, is_counted=True)
        self._buffer.flush(self._max_block_s)
        written: list[ColumnsMetadata] = []
        try:
            for queue, part in self._parts(queues, columns, partition):
                info = self._appended(queue, part)
                written.append(ColumnsMetadata(*queue.topic_partition, info.first_offset, info.last_offset, len(part)))
                with alone(SENDING), self._buffer.mutex:
                    queues.batch_sealed(queue, _NO_SIZE)
        except LogstoreError as error:
            if self._transactions is None and written:
                error.add_note(f"What is for {', '.join(str(one.topic_partition) for one in written)} is written.")
            raise
        return written

    def _parts(
        self, queues: TopicQueues, columns: RecordColumns, partition: int | None
    ) -> Iterator[tuple[PartitionQueue, RecordColumns]]:
        """Divide the rows by queue."""
        if not len(columns):
            return
        if partition is not None or columns.keys is None or self._ignores_keys:
            with alone(SENDING), self._buffer.mutex:
                queue = queues.queue(None, partition)
            yield queue, columns
            return
        with alone(SENDING), self._buffer.mutex:
            partitions = partitions_for_keys(columns.keys, queues.partition_count)
            if (is_keyless := partitions < 0).any():
                sticky = queues.queue(None, None)  # of the keyless rows
                partitions[is_keyless] = sticky.topic_partition.partition
            chosen = [queues.of_partition(number) for number in np.unique(partitions).tolist()]
        for queue in chosen:
            rows = np.flatnonzero(partitions == queue.topic_partition.partition)
            yield queue, columns if rows.size == len(columns) else columns.take(rows)

    def _appended(self, queue: PartitionQueue, columns: RecordColumns) -> AppendInfo:
        """Try for `max.block.ms`; the mutex is released between attempts."""
        end_s = clock.monotonic_s() + self._max_block_s
        attempt_count = 0
        while True:
            with alone(SENDING), self._buffer.mutex:
                try:
                    return self._buffer.write_columns(queue, columns)
                except RETRIABLE as error:
                    attempt_count += 1
                    retry_s = clock.monotonic_s() + self._backoff.wait_s(attempt_count)
                    if retry_s >= end_s:
                        if self._transactions is not None:
                            self._transactions.batch_failed(error)
                        raise
            while (wait_s := retry_s - clock.monotonic_s()) > 0:
                pause(wait_s)
