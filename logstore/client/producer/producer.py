"""Writes records to the topics of a store, with the names and the guarantees of Kafka's producer.

    producer = store.producer(linger_ms=20)
    future = producer.send("orders", key=b"42", value=b"paid", headers=[("trace", b"7")])
    future.get().offset

    producer = store.producer(transactional_id="billing-1")
    producer.init_transactions()
    with producer.transaction():
        producer.send("orders", value=b"paid")
        producer.send_offsets_to_transaction({("payments", 0): 17}, consumer.group_metadata())

A producer is idempotent if nothing is said: each record is in the log once, in the order of `send` within a partition,
whatever has to be tried again. A record is in the log, and safe from the end of the process, when its future is done.

Callbacks run in a thread of the producer, one after the other, never inside of `send`; those of records that `flush`
has written have run when it returns. A call that is interrupted has lost its answer, not a record.

What goes wrong at once is raised by `send`; what goes wrong later is in the future, and in a transaction raised by
`commit_transaction`. An error has a `recovery`: call again, abort the transaction, close the producer, or mend the
call. In a transaction the producer's `state` decides: after an error it is aborted, or, if that is fatal, the producer
closed.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

from ... import clock
from ...clock import time_ns
from ...coordinator.groups.membership import ConsumerGroupMetadata
from ...errors import (
    IllegalStateError,
    LogstoreError,
    ProducerFailedError,
    ProducerFencedError,
    RecordTooLargeError,
    RequestTimedOutError,
    TransactionAbortedError,
    UnknownTopicOrPartitionError,
)
from ...layout.batch import HEADER_SIZE
from ...layout.record import NO_HEADERS, RECORD_OVERHEAD_SIZE, Headers, encode_headers
from ...store.closing import ClosedInWith
from ...store.data_directory import DataDirectory
from ..arguments import Offsets, checked_group, not_negative
from ..serializers import Serializer, serialized
from .batch import RecordFuture
from .buffer import Buffer
from .columns import ColumnsMetadata, ColumnsSender
from .config import SIZES_OF_SIZES, ProducerConfig, record_size_max, require_record_size
from .sender import Sender
from .states import TransactionManagerState, transaction_of
from .transactions import CLOSED_FORCEFULLY, TransactionManager

IN_TRANSACTION = TransactionManagerState.IN_TRANSACTION
MS_MAX, PARTITION_MAX = (1 << 63) - 1, (1 << 31) - 1
_NOT_TRANSACTIONAL = "Transactional method invoked on a non-transactional producer."
_NOT_IDEMPOTENT = (
    "Cannot use transactional methods without enabling transactions by setting the transactional.id configuration "
    "property"
)


class Producer(ClosedInWith):
    """Made by `Store.producer`; for any thread, but one transaction at a time.

    Attributes:
        config: every configuration's value, by Kafka's names.
    """

    def __init__(
        self,
        store: DataDirectory,
        config: ProducerConfig,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
    ) -> None:
        """`config`: of `parse_producer_config`."""
        self.config = config
        self._store, self._now_ms = store, store.now_ms
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        self._size_max = record_size_max(config)
        is_transactional = config["transactional.id"] is not None
        self._transactions = TransactionManager(store, config) if is_transactional else None
        self._sender = Sender(store, config, self._transactions)
        fits = max(config["batch.size"], 1) + SIZES_OF_SIZES <= self._size_max
        is_fast = fits and key_serializer is None and value_serializer is None and store.now_ms is clock.now_ms
        self._buffer = Buffer(store, config, self._sender, self._transactions, owner=self, is_fast=is_fast)
        self._mutex, self._fast = self._buffer.mutex, self._buffer.fast
        self._columns_sender = ColumnsSender(config, self._buffer, self._transactions)
        self._closing = threading.Lock()
        self._is_settled = False  # closed, and no record is left

    @property
    def state(self) -> TransactionManagerState | None:
        """Where a transactional producer is in its life; None for another."""
        return None if self._transactions is None else self._transactions.state

    def __repr__(self) -> str:
        kind = "idempotent" if self.config["enable.idempotence"] else "not idempotent"
        return f"<Producer {self.config['client.id']}: {kind if self.state is None else self.state.name}>"

    def partitions_for(self, topic: str) -> range:
        """Return the partitions of a topic; raises UnknownTopicOrPartitionError, InvalidTopicError."""
        return range(self._buffer.queues_of(topic, is_counted=True).partition_count)

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
            UsageError: a partition or time that is none.
            UnknownTopicOrPartitionError, InvalidTopicError: there is no such topic or partition; an internal topic.
            SerializationError, RecordTooLargeError, BufferExhaustedError: no bytes, too large, no room in time.
            IllegalStateError: the producer is closed, in no transaction, or just writes in this thread.
            LogstoreError: the transaction has failed, or the producer; see `recovery`.
        """
        # Exact types run no code of the caller's, and one `append` is done or not, wherever an interrupt comes.
        is_plain = type(value) is bytes and (key is None or type(key) is bytes) and type(topic) is str
        has_ms = timestamp_ms is None or (type(timestamp_ms) is int and 0 <= timestamp_ms <= MS_MAX)
        if self._fast and is_plain and has_ms and partition is None:
            key_size, value_size = -1 if key is None else len(key), len(value)
            encoded = encode_headers(headers) if headers else b""
            size = RECORD_OVERHEAD_SIZE + value_size + len(encoded) + (key_size if key else 0)
            with self._mutex:
                queues, batch = self._fast.get(topic), None
                if queues is not None and (self._transactions is None or self._transactions.state is IN_TRANSACTION):
                    queue = queues.sticky if key is None else queues.by_key.get(key)
                    batch = None if queue is None else queue.open
                if batch is not None and size <= batch.room:
                    batch.room -= size
                    records, future = batch.records, RecordFuture()
                    future._batch, future._index = batch, len(records)
                    future._key_size, future._value_size = key_size, value_size
                    timestamp = time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
                    records.append((key, value, timestamp, encoded))
                    return future
        try:
            return self._send(topic, value, key, headers, partition, timestamp_ms)
        except (RecordTooLargeError, RequestTimedOutError, UnknownTopicOrPartitionError) as error:
            self._fail_transaction(error)
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
        from ...columns.any_columns import record_columns

        columns = record_columns(values=values, keys=keys, timestamps=timestamps, headers=headers)
        try:
            return self._columns_sender.send(topic, columns.stamped(self._now_ms()), partition)
        except (RecordTooLargeError, RequestTimedOutError, UnknownTopicOrPartitionError) as error:
            self._fail_transaction(error)
            raise

    def flush(self, timeout: float | None = None) -> bool:
        """Write everything that was sent before; True when all futures are done and their callbacks have run.

        Called by a callback it does not wait for other callbacks.

        Args:
            timeout: seconds; None: as long as it takes, which `delivery.timeout.ms` bounds.
        """
        return self._buffer.flush(timeout)

    def init_transactions(self) -> None:
        """Begin as the only producer with this `transactional.id`; once, before the first transaction.

        What an earlier one left open is aborted, and whatever that one tries then fails.

        Raises:
            IllegalStateError: the producer has no `transactional.id`, or has done this before.
            InvalidTxnTimeoutError: `transaction.timeout.ms` is more than `transaction.max.timeout.ms`.
            RequestTimedOutError: not done within `max.block.ms`; call it again.
            LogstoreError: the producer cannot go on, see `recovery`.
        """
        self._transactional().init()

    def transaction(self) -> AbstractContextManager[None]:
        """Return a `with` block that begins a transaction and commits it; an exception aborts it and goes on.

        Raises:
            As `begin_transaction`, and `commit_transaction`, which is to be called after a RequestTimedOutError.
        """
        return transaction_of(self)

    def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises:
            IllegalStateError: there is one, or `init_transactions` was not called.
            AbortRequiredError, ProducerFencedError, InvalidProducerEpochError, ProducerFailedError: an error state.
        """
        self._transactional().begin()

    def send_offsets_to_transaction(
        self,
        offsets: Offsets,
        group_metadata: ConsumerGroupMetadata | str | None = None,
        *,
        group_id: str | None = None,
    ) -> None:
        """Commit a group's offsets if and when the transaction is committed.

        Args:
            offsets: by partition the next offset to be read.
            group_metadata: of `Consumer.group_metadata`: then it is refused when the group has gone on without the
                consumer. A group id alone refuses nobody.

        Raises:
            UsageError: no group, a negative offset.
            IllegalStateError: no transaction.
            CommitFailedError: the consumer is not in the group any more; abort the transaction.
            RequestTimedOutError: not done within `max.block.ms`.
            LogstoreError: see `recovery`.
        """
        group = checked_group(group_id if group_metadata is None else group_metadata)
        transactions = self._transactional()
        if offsets:
            transactions.send_offsets(offsets, group)

    def commit_transaction(self) -> None:
        """Write what was sent, and let all of it count, in all partitions, with the offsets; or raise.

        Raises:
            IllegalStateError: no transaction.
            RequestTimedOutError: not done within `max.block.ms`; call it again, nothing else.
            KafkaStorageError: a log cannot be written; whether the transaction counts shows when the store is opened
                anew.
            LogstoreError: why a record could not be written, or what the coordinator said, see `recovery`; after
                anything else than success or these two errors the transaction does not count.
        """
        try:
            self._transactional().commit(self._buffer.flush)
        except RequestTimedOutError as error:
            error.__cause__ = error.__cause__ or self._buffer.retried_error  # a full disk, say
            raise

    def abort_transaction(self) -> None:
        """Let nothing of the transaction count; after an error too.

        Raises:
            IllegalStateError: no transaction.
            RequestTimedOutError: not done within `max.block.ms`; call it again, nothing else.
            LogstoreError: the producer cannot go on; its transaction is aborted by whoever has the id next, or by time.
        """
        transactions = self._transactional()
        cause = transactions.error
        transactions.abort(lambda: self._drop(cause))

    def close(self, timeout: float | None = None) -> None:
        """Write what was sent, and end; a transaction that is open is aborted. A second call does nothing.

        A commit or abort that another thread waits for, or whose time was up, is done first. A callback that closes the
        producer waits for nothing.

        Args:
            timeout: seconds to wait for that, and for what has to be tried again; then it is given up, and its futures
                and whoever waits for it say so.

        Raises:
            KafkaStorageError: the disk did not take records whose futures nobody has asked; or a transaction's end.
            LogstoreError: the transaction could not be ended.
        """
        if self._store.is_after_fork:
            return
        self._buffer.require_outside()
        if not self._buffer.background.is_current:
            with self._closing:
                self._close(timeout)
        elif self._closing.acquire(blocking=False):  # else who closes waits for this callback
            try:
                self._close(0.0)
            finally:
                self._closing.release()

    def invalidate_after_fork(self) -> None:
        """Refuse everything in the child of a fork, and write nothing, which is the parent's to do."""
        self._buffer.invalidate_after_fork()
        self._mutex, self._closing = self._buffer.mutex, threading.Lock()

    # -- steps ------------------------------------------------------------------------------------------------------

    def _send(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> RecordFuture:
        """Send any record, to any batch; code of the caller's runs here, before anything is held."""
        if timestamp_ms is not None:
            timestamp_ms = not_negative("timestamp", timestamp_ms, MS_MAX)
        if partition is not None:
            partition = not_negative("partition", partition, PARTITION_MAX)
        value = serialized(self._value_serializer, "value", topic, value)
        key = serialized(self._key_serializer, "key", topic, key)
        encoded = encode_headers(headers) if headers else b""
        key_size, value_size = (-1 if part is None else len(part) for part in (key, value))
        size = RECORD_OVERHEAD_SIZE + max(key_size, 0) + max(value_size, 0) + len(encoded)
        if size + HEADER_SIZE + SIZES_OF_SIZES > self._size_max:
            require_record_size(self.config, key_size, value_size, len(encoded or NO_HEADERS))
        timestamp = self._now_ms() if timestamp_ms is None else timestamp_ms
        return self._buffer.append(topic, partition, (key, value, timestamp, encoded), size)

    def _fail_transaction(self, error: LogstoreError) -> None:
        """Fail the transaction, which must not be committed without the record that was not taken."""
        if self._transactions is not None and self._transactions.state is IN_TRANSACTION:
            self._transactions.batch_failed(error)

    def _transactional(self) -> TransactionManager:
        if not self.config["enable.idempotence"]:
            raise IllegalStateError(_NOT_IDEMPOTENT)
        self._buffer.require_outside()
        self._buffer.require_open()
        if self._transactions is None:
            raise IllegalStateError(_NOT_TRANSACTIONAL)
        return self._transactions

    def _drop(self, cause: LogstoreError | None) -> None:
        self._buffer.fail_all(cause or TransactionAbortedError("Failing batch since transaction was aborted"))

    def _close(self, timeout: float | None) -> None:
        """Close once; what an interrupt left is done by the next call."""
        if self._is_settled:
            return
        self._buffer.close()
        try:
            self._end_transaction(timeout)
        except Exception:
            self._is_settled = True
            raise
        self._is_settled = True
        if (error := self._sender.unreported_error) is not None:
            raise error

    def _end_transaction(self, timeout: float | None) -> None:
        """Leave no transaction open and no future without an answer, whatever goes wrong."""
        try:
            if self._transactions is not None:
                cause = self._transactions.error
                self._transactions.close(timeout, self._buffer.flush, lambda: self._drop(cause))
        except ProducerFencedError:
            pass  # the transaction is gone: whoever has the id now aborted it
        finally:
            try:
                self._buffer.flush(timeout)
            finally:
                self._buffer.fail_all(ProducerFailedError(CLOSED_FORCEFULLY))
