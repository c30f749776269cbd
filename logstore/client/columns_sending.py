"""Columns of records into the logs of a topic, at once: the fast way in for many records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..columns.record_columns import RecordColumns
from ..errors import LogstoreError, RecordTooLargeError, RequestTimedOutError, UnknownTopicOrPartitionError
from ..log.append_info import AppendInfo
from ..model import Codec, TopicPartition
from .accumulator import Accumulator
from .idempotence import Idempotence
from .lanes import Lane, TopicLanes
from .partitioner import partitions_for_keys
from .producer_config import ProducerConfig
from .producer_states import ProducerState
from .producer_transactions import ProducerTransactions
from .record_sizes import require_column_sizes
from .retrying import Backoff, retried


class ColumnsMetadata(NamedTuple):
    """Where the records of one partition are, in their order; offsets are inclusive."""

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
    """Appends columns for one producer, behind what it has sent before."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        idempotence: Idempotence,
        transactions: ProducerTransactions | None,
    ) -> None:
        self._accumulator, self._idempotence, self._transactions = accumulator, idempotence, transactions
        self._config = config
        self._codec = Codec[config["compression.type"].upper()]
        self._level: int | None = config.get(f"compression.{config['compression.type']}.level")
        self._ignores_keys: bool = config["partitioner.ignore.keys"]
        self._max_block_s: float = config["max.block.ms"] / 1000
        self._backoff = Backoff(config)

    def send(self, topic: str, columns: RecordColumns, partition: int | None) -> list[ColumnsMetadata]:
        """Append all rows; each partition's in their order. See `Producer.send_columns`."""
        try:
            return self._send(topic, columns, partition)
        except (RecordTooLargeError, RequestTimedOutError, UnknownTopicOrPartitionError) as error:
            if self._transactions is not None and self._transactions.state is ProducerState.IN_TRANSACTION:
                self._transactions.batch_failed(error)  # or it would be committed without these records
            raise

    def _send(self, topic: str, columns: RecordColumns, partition: int | None) -> list[ColumnsMetadata]:
        accumulator = self._accumulator
        require_column_sizes(self._config, columns)
        lanes = accumulator.counted_lanes_of(topic)
        accumulator.flush(self._max_block_s)
        written: list[ColumnsMetadata] = []
        try:
            with accumulator.mutex:
                accumulator.require_open()
                for lane, part in self._parts(lanes, columns, partition):
                    written.append(self._appended(lanes, lane, part))
        except LogstoreError as error:
            if self._transactions is None and written:
                error.add_note(f"What is for {', '.join(str(one.topic_partition) for one in written)} is written.")
            raise
        finally:
            accumulator.complete()
        return written

    def _parts(
        self, lanes: TopicLanes, columns: RecordColumns, partition: int | None
    ) -> Iterator[tuple[Lane, RecordColumns]]:
        """The rows by lane."""
        if not len(columns):
            return
        if partition is not None or columns.keys is None or self._ignores_keys:
            yield lanes.lane(None, partition), columns
            return
        partitions = partitions_for_keys(columns.keys, lanes.partition_count)
        if (is_keyless := partitions < 0).any():
            sticky = lanes.lane(None, None)  # where others may go by their key
            partitions[is_keyless] = sticky.topic_partition.partition
        for number in np.unique(partitions).tolist():
            rows = np.flatnonzero(partitions == number)
            yield lanes.of_partition(number), columns if rows.size == len(columns) else columns.take(rows)

    def _appended(self, lanes: TopicLanes, lane: Lane, columns: RecordColumns) -> ColumnsMetadata:
        if self._transactions is not None:
            self._transactions.require_sendable(lane.topic_partition)
        self._accumulator.write_lane(lane)
        if lane.queue:
            raise RequestTimedOutError(f"Records for {lane.topic_partition} wait to be tried again: call flush first")
        try:
            lanes.follow(lane)
            info = retried(lambda: self._append(lane, columns), self._backoff, self._max_block_s)
        except LogstoreError as error:
            if self._transactions is not None:
                self._transactions.batch_failed(error)
            raise
        lanes.passed_on(lane, 1 << 62)
        return ColumnsMetadata(*lane.topic_partition, info.first_offset, info.last_offset, len(columns))

    def _append(self, lane: Lane, columns: RecordColumns) -> AppendInfo:
        """One attempt; the sequences of batches that are written are used up, also if a later one is refused."""
        idempotence, transactions = self._idempotence, self._transactions
        sequence = idempotence.sequence(lane)
        guard = None if transactions is None else transactions.join(lane, sequence)
        log = lane.log
        with log.lock:
            before = log.log_end_offset
            try:
                return log.append_columns(
                    columns,
                    codec=self._codec,
                    level=self._level,
                    producer_id=idempotence.identity.producer_id,
                    producer_epoch=idempotence.identity.producer_epoch,
                    base_sequence=sequence,
                    is_transactional=transactions is not None,
                    leader_epoch=lane.leader_epoch,
                    guard=guard,
                )
            finally:
                count = log.log_end_offset - before
                if idempotence.is_enabled:
                    idempotence.appended(lane, count)
                if count and transactions is not None:
                    lane.transaction = transactions.number
