"""Producer of a store, with the names and guarantees of Kafka's producer.

    producer = store.producer(linger_ms=20)
    future = producer.send("orders", key=b"42", value=b"paid", headers=[("trace", b"7")])
    future.get().offset

    producer = store.producer(transactional_id="billing-1")
    producer.init_transactions()
    with producer.transaction():
        producer.send("orders", value=b"paid")
        producer.send_offsets_to_transaction({("payments", 0): 17}, consumer.group_metadata())

A producer is idempotent by default: each record is in the log once, in the order of `send` within a partition, however
often it was tried. When its future is done, a record is in the log and survives the end of the process.

Callbacks run in a thread of the producer, one after the other, never inside `send`; when `flush` returns, the callbacks
of the records it wrote have run. An interrupted call has lost its answer, but no record.

Immediate errors are raised by `send`; later ones are in the future, and in a transaction raised by
`commit_transaction`. An error has a `recovery`: call again, abort the transaction, close the producer, or correct the
call. In a transaction the producer's `state` decides: after an error the transaction must be aborted or, after a fatal
one, the producer closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ...calls import SENDING, alone
from ...clock import now_ms, time_ns
from ...coordinator.groups.membership import ConsumerGroupMetadata
from ...errors import IllegalStateError, LogstoreError, RequestTimedOutError
from ...layout.batch import HEADER_SIZE
from ...layout.record import NO_HEADERS, RECORD_OVERHEAD_SIZE, Headers, encode_headers
from ...store.closing import ClosedInWith
from ...store.data_directory import DataDirectory
from ..arguments import (
    INT_MAX,
    LONG_MAX,
    Offsets,
    checked_group,
    duration,
    not_negative,
    offset_commits,
    time_left,
)
from ..serializers import Serializer, require_functions, serialized
from .batch import ITEM_COUNT, RecordFuture
from .buffer import Buffer
from .columns import ColumnsMetadata, send_columns
from .config import SIZES_OF_SIZES, ProducerConfig, record_size_max, require_record_size
from .ending import Ending
from .sender import Sender
from .states import NOT_IDEMPOTENT, NOT_TRANSACTIONAL, TransactionManagerState
from .transactions import TransactionManager

IN_TRANSACTION = TransactionManagerState.IN_TRANSACTION


class Producer(ClosedInWith):
    """Made by `Store.producer`; usable from any thread, but with one transaction at a time.

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
        """Take a configuration of `parse_producer_config`."""
        self.config = config
        self._store, self._now_ms = store, store.now_ms
        require_functions(key_serializer=key_serializer, value_serializer=value_serializer)
        self._key_serializer, self._value_serializer = key_serializer, value_serializer
        self._size_max = record_size_max(config)
        is_transactional = config["transactional.id"] is not None
        self._transactions = TransactionManager(store, config) if is_transactional else None
        self._sender = Sender(store, config, self._transactions)
        fits = max(config["batch.size"], 1) + SIZES_OF_SIZES <= self._size_max
        is_plain = key_serializer is None and value_serializer is None and store.now_ms is now_ms
        is_fast = fits and is_plain
        self._buffer = Buffer(store, config, self._sender, self._transactions, owner=self, is_fast=is_fast)
        self._fast = self._buffer.fast
        self._ending = Ending(self._buffer, self._sender)

    @property
    def state(self) -> TransactionManagerState | None:
        """State of a transactional producer; None for any other."""
        return None if self._transactions is None else self._transactions.state

    def __repr__(self) -> str:
        kind = "idempotent" if self.config["enable.idempotence"] else "not idempotent"
        state = "closed" if self._buffer.is_closed else kind if self.state is None else self.state.name
        return f"<Producer {self.config['client.id']}: {state}>"

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
        """Send a record; it is written now or within `linger.ms`.

        Args:
            value, key: bytes or None, or what the serializers take.
            headers: (key, value) pairs.
            partition: by default chosen by the key as in the Java client; without a key, one for a batch.
            timestamp_ms: by default the present time.

        Raises:
            UsageError: an invalid partition or timestamp.
            UnknownTopicOrPartitionError, InvalidTopicError: no such topic or partition; an internal topic.
            SerializationError, RecordTooLargeError, BufferExhaustedError: not bytes, too large, no room in time.
            IllegalStateError, ReentrantCallError: closed, no open transaction; a signal handler interrupts a call.
            LogstoreError: the transaction or the producer has failed; see `recovery`.
        """
        # Exact types run no code of the caller, and a single `+=` is done or not, wherever an interrupt comes.
        is_plain = type(value) is bytes and (key is None or type(key) is bytes) and type(topic) is str
        has_ms = timestamp_ms is None or (type(timestamp_ms) is int and 0 <= timestamp_ms <= LONG_MAX)
        if self._fast and is_plain and has_ms and partition is None:
            key_size, value_size = -1 if key is None else len(key), len(value)
            encoded = b"" if headers is None else encode_headers(headers)
            size = RECORD_OVERHEAD_SIZE + value_size + len(encoded) + (key_size if key else 0)
            with alone(SENDING), self._buffer.mutex:
                queues, batch = self._fast.get(topic), None
                if queues is not None and (self._transactions is None or self._transactions.state is IN_TRANSACTION):
                    queue = queues.sticky if key is None or queues.ignores_keys else queues.by_key.get(key)
                    batch = None if queue is None else queue.open
                if batch is not None and size <= batch.room:
                    batch.room -= size
                    items, future = batch.items, RecordFuture()
                    future._batch, future._index = batch, len(items) // ITEM_COUNT
                    future._key_size, future._value_size = key_size, value_size
                    timestamp = time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
                    items += (key, value, timestamp, encoded)
                    return future
        try:
            return self._send(topic, value, key, headers, partition, timestamp_ms)
        except LogstoreError as error:
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
        """Write many records given as columns, in large batches; when it returns they are in the log.

        Args:
            values, keys: lists of bytes, numpy or Arrow, see `columns.any_columns`; keys choose partitions.
            timestamps: ms since 1970, numpy's datetime64 or Arrow's; None for the present time.
            headers: a list of (key, value) for each record, or Arrow's.
            partition: for all records; None sends those without key to one partition.

        Returns:
            Where the records are, for each partition.

        Raises:
            UsageError: columns of different lengths, or an item that is not bytes.
            LogstoreError: as `send`, or refused by a log: the batches before are written, unless a transaction aborts.
        """
        from ...columns.any_columns import record_columns

        columns = record_columns(values=values, keys=keys, timestamps=timestamps, headers=headers)
        try:
            return send_columns(self._buffer, self.config, topic, columns.stamped(self._now_ms()), partition)
        except LogstoreError as error:
            self._fail_transaction(error)
            raise

    def flush(self, timeout: float | None = None) -> bool:
        """Write everything sent before; return True when all futures are done and their callbacks have run.

        Called by a callback, it does not wait for other callbacks, and raises nothing.

        Args:
            timeout: seconds; None waits as long as it takes, at most `delivery.timeout.ms`.

        Raises:
            UsageError: a timeout that is none.
            LogstoreError: why the first record was refused, if the program has asked no future and given no errback.
        """
        is_done = self._buffer.flush(time_left(timeout))
        if is_done and not self._buffer.background.is_current:
            self._sender.raise_unreported()
        return is_done

    def init_transactions(self) -> None:
        """Register as the only producer with this `transactional.id`; once, before the first transaction.

        An open transaction of an earlier one is aborted, and its later calls fail.

        Raises:
            IllegalStateError: the producer has no `transactional.id`, or has done this before.
            InvalidTxnTimeoutError: `transaction.timeout.ms` is more than `transaction.max.timeout.ms`.
            RequestTimedOutError: not done within `max.block.ms`; call it again.
            LogstoreError: the producer cannot continue, see `recovery`.
        """
        self._transactional().init()

    def transaction(self) -> AbstractContextManager[None]:
        """Return a `with` block that begins a transaction and commits it; an exception aborts it and propagates.

        Raises:
            As `begin_transaction` and `commit_transaction`; after a RequestTimedOutError call `commit_transaction`.
        """
        return _transaction_of(self)

    def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises:
            IllegalStateError: a transaction is open, or `init_transactions` was not called.
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
        """Commit a group's offsets together with the transaction.

        Args:
            offsets: by partition the offset of the next record to read.
            group_metadata: of `Consumer.group_metadata`; refused if the group has rebalanced without the consumer. A
                group id alone is never refused.

        Raises:
            UsageError: no group, a negative offset.
            IllegalStateError: no transaction.
            CommitFailedError: the consumer is not in the group any more; abort the transaction.
            RequestTimedOutError: not done within `max.block.ms`.
            LogstoreError: see `recovery`.
        """
        group = checked_group(group_id if group_metadata is None else group_metadata)
        transactions = self._transactional()
        if commits := offset_commits(offsets, self._store.leader_epoch_before):
            transactions.send_offsets(commits, group)

    def commit_transaction(self) -> None:
        """Write what was sent, and make it visible in all partitions together with the offsets; or raise.

        Raises:
            IllegalStateError: no transaction.
            RequestTimedOutError: not done within `max.block.ms`; call this again, nothing else.
            KafkaStorageError: a log cannot be written; the next opening of the store shows whether the transaction
                counts.
            LogstoreError: why a record could not be written, or the coordinator's error, see `recovery`; except after
                the two errors above the transaction does not count.
        """
        try:
            self._transactional().commit(self._buffer.flush)
        except RequestTimedOutError as error:
            error.__cause__ = error.__cause__ or self._buffer.retried_error  # a full disk, say
            raise
        finally:
            self._sender.forget_unreported()  # an error is one of theirs, or says that none counts

    def abort_transaction(self) -> None:
        """Discard the transaction; also after an error.

        Raises:
            IllegalStateError: no transaction.
            RequestTimedOutError: not done within `max.block.ms`; call this again, nothing else.
            LogstoreError: the producer cannot continue; its transaction is aborted by the next owner of the id, or by
                timeout.
        """
        transactions = self._transactional()
        cause = transactions.error
        transactions.abort(lambda: self._ending.drop(cause))
        self._sender.forget_unreported()

    def close(self, timeout: float | None = None) -> None:
        """Write what was sent, and close; an open transaction is aborted. A second call does nothing.

        A commit or abort that another thread waits for, or that timed out, is finished first. A callback that closes
        the producer does not wait.

        Args:
            timeout: seconds to wait for that and for retries; then they are given up, and futures and waiting threads
                get an error.

        Raises:
            UsageError: a timeout that is none; nothing is closed.
            LogstoreError: records were refused or given up, and the program has not seen that, as `flush`; or the
                transaction could not be ended.
        """
        if not self._store.is_after_fork:
            self._ending.close(None if timeout is None else duration("timeout", timeout))

    def invalidate_after_fork(self) -> None:
        """Refuse all calls in the child of a fork, and write nothing: that is the parent's task."""
        self._buffer.invalidate_after_fork()
        self._ending.invalidate_after_fork()

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
        """Send any record, by the slow path; code of the caller runs here, before a lock is held."""
        if timestamp_ms is not None:
            timestamp_ms = not_negative("timestamp", timestamp_ms, LONG_MAX)
        if partition is not None:
            partition = not_negative("partition", partition, INT_MAX)
        if type(value) is not bytes or self._value_serializer is not None:
            value = serialized(self._value_serializer, "value", topic, value)
        if key is not None:
            key = serialized(self._key_serializer, "key", topic, key)
        encoded = b"" if headers is None else encode_headers(headers)
        key_size, value_size = -1 if key is None else len(key), -1 if value is None else len(value)
        size = RECORD_OVERHEAD_SIZE + max(key_size, 0) + max(value_size, 0) + len(encoded)
        if size + HEADER_SIZE + SIZES_OF_SIZES > self._size_max:
            require_record_size(self.config, key_size, value_size, len(encoded or NO_HEADERS))
        timestamp = self._now_ms() if timestamp_ms is None else timestamp_ms
        return self._buffer.append(topic, partition, (key, value, timestamp, encoded), size)

    def _fail_transaction(self, error: LogstoreError) -> None:
        """Fail the transaction: it must not be committed without the refused record (`KafkaProducer.doSend`).

        Only an error of Kafka's protocol fails it (`ApiException`): no wrong argument, and nothing that is not bytes.
        """
        is_of_protocol = error.kafka_code is not None
        if is_of_protocol and self._transactions is not None and self._transactions.state is IN_TRANSACTION:
            self._transactions.batch_failed(error)

    def _transactional(self) -> TransactionManager:
        if not self.config["enable.idempotence"]:
            raise IllegalStateError(NOT_IDEMPOTENT)
        self._store.require_same_process()
        self._buffer.require_open()
        if self._transactions is None:
            raise IllegalStateError(NOT_TRANSACTIONAL)
        return self._transactions


@contextmanager
def _transaction_of(producer: Producer) -> Iterator[None]:
    was_ready = producer.state is TransactionManagerState.READY  # else the open transaction was begun elsewhere
    try:
        producer.begin_transaction()
        yield
        producer.commit_transaction()
    except BaseException as error:
        # A commit that timed out may still be done: it must be called again, not aborted.
        if was_ready and producer.state in (IN_TRANSACTION, TransactionManagerState.ABORTABLE_ERROR):
            try:
                producer.abort_transaction()
            except LogstoreError as abort_error:
                error.add_note(f"Then aborting the transaction failed: {abort_error!r}")
        raise
