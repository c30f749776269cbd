"""Writes records to the topics of a store, with the names and the guarantees of Kafka's producer.

    producer = store.producer(linger_ms=20)
    future = producer.send("orders", key=b"42", value=b"paid", headers=[("trace", b"7")])
    future.get().offset

    producer = store.producer(transactional_id="billing-1")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", value=b"paid")
    producer.send_offsets_to_transaction({("payments", 0): 17}, consumer.group_metadata())
    producer.commit_transaction()

A producer is idempotent if nothing is said: each record is in the log once, in the order of `send` within a partition,
whatever has to be tried again. A record is in the log, and safe from the end of the process, when its future is done.

What goes wrong at once is raised by `send`; what goes wrong later is in the future, and in a transaction raised by
`commit_transaction`. An error has a `recovery`: call again, abort the transaction, close the producer, or mend the
call. In a transaction the producer's `state` decides: after an error it is aborted, or, if that is fatal, the producer
closed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..clock import now_ms, time_ns
from ..errors import (
    ProducerFailedError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from ..layout.batch import HEADER_SIZE
from ..layout.record import RECORD_OVERHEAD_SIZE, Headers, headers_bytes
from ..store.store import Store
from .accumulator import Accumulator
from .batch_sending import BatchSender
from .columns_sending import ColumnsMetadata, ColumnsSender
from .idempotence import Idempotence
from .linger import LingerThread
from .producer_batch import MS_MAX, PARTITION_MAX, not_negative
from .producer_config import ProducerConfig
from .producer_states import ProducerState
from .producer_transactions import CLOSED_FORCEFULLY, ProducerTransactions
from .quick_batches import QuickBatches
from .record_future import RecordFuture
from .record_sizes import SIZES_OF_SIZES, record_size_max, require_record_size
from .serializers import Serializer, serialized
from .transactional_calls import TransactionalCalls

IN_TRANSACTION = ProducerState.IN_TRANSACTION


class Producer(TransactionalCalls):
    """Made by `Store.producer`; for any thread, but one transaction at a time.

    Attributes:
        config: every configuration's value, by Kafka's names.
    """

    def __init__(
        self,
        store: Store,
        config: ProducerConfig,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
    ) -> None:
        """`config`: of `parse_producer_config`."""
        self.config = config
        self._now_ms = store.now_ms
        self._has_clock = store.now_ms is now_ms
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        self._size_max = record_size_max(config)
        idempotence = Idempotence(store, is_enabled=config["enable.idempotence"])
        is_transactional = config["transactional.id"] is not None
        self._transactions = ProducerTransactions(store, config, idempotence) if is_transactional else None
        sender = BatchSender(store, config, idempotence, self._transactions)
        self._batch_size: int = max(config["batch.size"], 1)
        has_room_for_all = self._batch_size + SIZES_OF_SIZES <= self._size_max
        has_quick = has_room_for_all and key_serializer is None and value_serializer is None
        batches = QuickBatches()
        self._accumulator = Accumulator(store, config, sender, self._transactions, batches)
        self._mutex = self._accumulator.mutex
        self._quick = batches.by_topic if has_quick else {}
        self._columns_sender = ColumnsSender(config, self._accumulator, idempotence, self._transactions)
        self._closing = threading.RLock()  # a callback may close too
        self._linger = LingerThread(self._accumulator, f"logstore-{config['client.id']}", self)

    def partitions_for(self, topic: str) -> range:
        """The partitions of a topic; raises UnknownTopicOrPartitionError, InvalidTopicError."""
        return range(self._accumulator.counted_lanes_of(topic).partition_count)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordFuture:
        """Put a record on its way.

        Args:
            value, key: bytes or None, or whatever the serializers take.
            headers: (key, value) each.
            partition: by default the key's, as the Java client's hash has it; without a key one for a batch.
            timestamp_ms: by default the time now.

        Raises:
            UsageError: partition or time is negative, or no int.
            UnknownTopicOrPartitionError, InvalidTopicError: there is no such topic or partition; an internal topic.
            SerializationError, RecordTooLargeError, BufferExhaustedError: no bytes, too large, no room in time.
            IllegalStateError: the producer is closed, or it is transactional and not in a transaction.
            AbortRequiredError: the transaction has failed; see the cause.
            ProducerFencedError, InvalidProducerEpochError, ProducerFailedError: the producer cannot go on.
        """
        has_ms = timestamp_ms is None or (type(timestamp_ms) is int and 0 <= timestamp_ms <= MS_MAX)
        if has_ms and key is None and type(value) is bytes and not headers and partition is None:
            transactions = self._transactions
            with self._mutex:
                batch = self._quick.get(topic)
                if batch is not None and (transactions is None or transactions.state is IN_TRANSACTION):
                    value_size = len(value)
                    size = batch.size + RECORD_OVERHEAD_SIZE + value_size
                    if size <= self._batch_size:
                        if timestamp_ms is None:
                            timestamp_ms = time_ns() // 1_000_000 if self._has_clock else self._now_ms()
                        values = batch.values
                        future = RecordFuture()
                        future._batch, future._index = batch, len(values)
                        future._key_size, future._value_size = -1, value_size
                        values.append(value)
                        batch.timestamps.append(timestamp_ms)
                        batch.size = size
                        return future
        try:
            return self._send(topic, value, key, headers, partition, timestamp_ms)
        except (RecordTooLargeError, RequestTimedOutError, UnknownTopicOrPartitionError) as error:
            if self._transactions is not None and self._transactions.state is IN_TRANSACTION:
                self._transactions.batch_failed(error)  # or it would be committed without this record
            raise

    def send_columns(
        self,
        topic: str,
        values: Any = None,
        keys: Any = None,
        timestamps: Any = None,
        headers: Any = None,
        partition: int | None = None,
    ) -> list[ColumnsMetadata]:
        """Write many records at once, a column each, in large batches; when it returns they are in the log.

        Args:
            values, keys: lists of bytes, numpy or Arrow, see `columns.any_columns`; keys choose partitions as ever.
            timestamps: ms, or datetimes; None: the time now.
            headers: a list of (key, value) for each record, or Arrow's.
            partition: for all records; without it those without a key go to one partition.

        Returns:
            Where they are, for each partition.

        Raises:
            UsageError: columns of different lengths, or what is no bytes.
            LogstoreError: as `send`, and what a log refuses: then the batches before the refused one are written,
                unless a transaction takes them back.
        """
        from ..columns.any_columns import record_columns

        columns = record_columns(values=values, keys=keys, timestamps=timestamps, headers=headers)
        return self._columns_sender.send(topic, columns.stamped(self._now_ms()), partition)

    def flush(self, timeout: float | None = None) -> bool:
        """Write everything that was sent before; True when all futures are done.

        Args:
            timeout: seconds; None: as long as it takes, which `delivery.timeout.ms` bounds.
        """
        return self._accumulator.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Write what was sent, and end; a transaction that is open is aborted. A second call does nothing.

        A commit or abort that another thread waits for, or whose time was up, is done first.

        Args:
            timeout: seconds to wait for that, and for what has to be tried again; then it is given up, and its futures
                and whoever waits for it say so.

        Raises:
            KafkaStorageError: the disk did not take records whose futures nobody has asked; or a transaction's end.
            LogstoreError: the transaction could not be ended.
        """
        with self._closing:
            if self._accumulator.is_closed:
                return
            self._accumulator.close()
            try:
                if self._transactions is not None:
                    cause = self._transactions.error
                    self._transactions.close(timeout, self._accumulator.flush, lambda: self._drop(cause))
            except ProducerFencedError:
                pass  # the transaction is gone: whoever has the id now aborted it
            finally:
                self._settle_all(timeout)
            self._accumulator.require_told()

    def __enter__(self) -> Producer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        close_in_with(self.close, error)

    def _settle_all(self, timeout: float | None) -> None:
        """Write what is left, or fail it: no future is left behind, whatever goes wrong."""
        try:
            self._accumulator.flush(timeout)
        finally:
            self._accumulator.fail_all(ProducerFailedError(CLOSED_FORCEFULLY))

    def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> RecordFuture:
        """`send` of any record, to any batch."""
        if timestamp_ms is not None:
            timestamp_ms = not_negative("timestamp", timestamp_ms, MS_MAX)
        if partition is not None:
            partition = not_negative("partition", partition, PARTITION_MAX)
        if self._value_serializer is not None or (type(value) is not bytes and value is not None):
            value = serialized(self._value_serializer, "value", topic, value)
        if self._key_serializer is not None or (type(key) is not bytes and key is not None):
            key = serialized(self._key_serializer, "key", topic, key)
        size = RECORD_OVERHEAD_SIZE
        if value is not None:
            size += len(value)
        if key is not None:
            size += len(key)
        if headers:
            size += len(headers_bytes(headers))
        if size + HEADER_SIZE + SIZES_OF_SIZES > self._size_max:
            key_size, value_size = (-1 if part is None else len(part) for part in (key, value))
            require_record_size(self.config, key_size, value_size, len(headers_bytes(headers or ())))
        accumulator = self._accumulator
        return accumulator.append(
            accumulator.lanes_of(topic),
            partition,
            key,
            value,
            headers or (),
            self._now_ms() if timestamp_ms is None else timestamp_ms,
            size,
        )


def close_in_with(close: Callable[[], None], error: BaseException | None) -> None:
    """Call `close` at the end of a with block; an error that ends the block is not hidden by one of closing."""
    try:
        close()
    except Exception as close_error:
        if error is None:
            raise
        error.add_note(f"Then closing failed: {close_error!r}")
