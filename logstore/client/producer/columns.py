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
from ..arguments import INT_MAX, not_negative
from .buffer import Buffer, pause
from .config import ProducerConfig, require_column_sizes
from .queues import PartitionQueue, TopicQueues, partitions_for_keys
from .retry import RETRIABLE, Attempts

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


def send_columns(
    buffer: Buffer, config: ProducerConfig, topic: str, columns: RecordColumns, partition: int | None
) -> list[ColumnsMetadata]:
    """Append all rows behind a producer's earlier records, in order within each partition."""
    if partition is not None:
        partition = not_negative("partition", partition, INT_MAX)
    require_column_sizes(config, columns)
    buffer.require_open()
    queues = buffer.queues_of(topic, is_counted=True)
    buffer.flush(config["max.block.ms"] / 1000)
    written: list[ColumnsMetadata] = []
    try:
        for queue, rows in _divided(buffer, queues, columns, partition):
            info = _append(buffer, config, queue, rows)
            written.append(ColumnsMetadata(*queue.topic_partition, info.first_offset, info.last_offset, len(rows)))
            with alone(SENDING), buffer.mutex:
                queues.batch_sealed(queue, _NO_SIZE)
    except LogstoreError as error:
        if buffer.transactions is None and written:
            error.add_note(f"What is for {', '.join(str(rows.topic_partition) for rows in written)} is written.")
        raise
    return written


def _divided(
    buffer: Buffer, queues: TopicQueues, columns: RecordColumns, partition: int | None
) -> Iterator[tuple[PartitionQueue, RecordColumns]]:
    """Divide the rows by queue."""
    if not len(columns):
        return
    if partition is not None or columns.keys is None or queues.ignores_keys:
        with alone(SENDING), buffer.mutex:
            queue = queues.queue(None, partition)
        yield queue, columns
        return
    with alone(SENDING), buffer.mutex:
        partitions = partitions_for_keys(columns.keys, queues.partition_count)
        if (is_keyless := partitions < 0).any():
            sticky = queues.queue(None, None)  # of the keyless rows
            partitions[is_keyless] = sticky.topic_partition.partition
        chosen = [queues.of_partition(number) for number in np.unique(partitions).tolist()]
    for queue in chosen:
        rows = np.flatnonzero(partitions == queue.topic_partition.partition)
        yield queue, columns if rows.size == len(columns) else columns.take(rows)


def _append(buffer: Buffer, config: ProducerConfig, queue: PartitionQueue, columns: RecordColumns) -> AppendInfo:
    """Try for `max.block.ms`; the mutex is released between attempts."""
    attempts = Attempts(config, config["max.block.ms"] / 1000)
    while True:
        with alone(SENDING), buffer.mutex:
            try:
                return buffer.write_columns(queue, columns)
            except RETRIABLE as error:
                next_s = attempts.next_s()
                if next_s is None:
                    if buffer.transactions is not None:
                        buffer.transactions.batch_failed(error)
                    raise
        while (wait_s := next_s - clock.monotonic_s()) > 0:
            pause(wait_s)
