"""Unwritten records of a producer, and the memory they take (`RecordAccumulator`, `BufferPool`).

A full batch is written by the thread whose record no longer fits: in Python that is faster than handing it over. Any
other batch is written by the producer's thread after `linger.ms`, see `background`.

Any line may be interrupted. A queue becomes active before it has a batch, a batch leaves its queue last, and the next
write repeats what was begun in between. Code of the caller that runs inside of a write, as a clock or a signal handler,
cannot enter the producer: see `calls`.
"""

from __future__ import annotations

import threading

from ... import clock
from ...calls import SENDING, alone
from ...columns.record_columns import RecordColumns
from ...errors import BufferExhaustedError, IllegalStateError, LogstoreError, RequestTimedOutError, UsageError
from ...layout.batch import HEADER_SIZE
from ...log.append.request import AppendInfo
from ...model import name_of
from ...store.data_directory import DataDirectory
from .background import Background
from .batch import Batch, Record, RecordFuture
from .config import ProducerConfig
from .queues import PartitionQueue, TopicQueues
from .retry import RETRIABLE
from .sender import Sender
from .states import CLOSED
from .transactions import TransactionManager

PARTITION_COUNT_AGE_MAX_S = 1.0
PAUSE_S_MAX = 0.05


class Buffer:
    """All queues of a producer.

    Attributes:
        mutex: held for all work on the queues, writes included, except for what `Producer.send` adds to an open batch.
        fast: topics by name whose open batches `Producer.send` may append to without further checks.
        is_closed: no more records are accepted.
        transactions: of a transactional producer, else None.
        background: the producer's thread.
    """

    def __init__(
        self,
        store: DataDirectory,
        config: ProducerConfig,
        sender: Sender,
        transactions: TransactionManager | None,
        *,
        owner: object,
        is_fast: bool,
    ) -> None:
        """Start empty.

        `owner`, the producer, is kept alive while something must be written; without `is_fast` no topic becomes `fast`.
        """
        self.mutex = threading.Lock()
        self.fast: dict[str, TopicQueues] = {}
        self.is_closed = False
        self._store, self._config, self._sender, self.transactions = store, config, sender, transactions
        self._batch_size: int = max(config["batch.size"], 1)
        self._linger_s: float = config["linger.ms"] / 1000
        self._is_fast = is_fast and self._linger_s > 0
        self._delivery_timeout_s: float = config["delivery.timeout.ms"] / 1000
        self._free_size: int = config["buffer.memory"]
        self._topics: dict[str, TopicQueues] = {}
        self._active: dict[PartitionQueue, None] = {}  # those with batches
        self.background = Background(
            f"logstore-{config['client.id']}",
            owner,
            self.mutex,
            write_due=self._write_due,
            has_batches=lambda: bool(self._active),
            linger_s=self._linger_s,
        )

    # -- what a producer calls ----------------------------------------------------------------------------------------

    def queues_of(self, topic: str, *, is_counted: bool = False) -> TopicQueues:
        """Return the queues of a topic; `is_counted` updates the number of its partitions.

        Raises UnknownTopicOrPartitionError, InvalidTopicError for an internal one, UsageError if the name is no text,
        and DataDirectoryError in the child of a fork.
        """
        if type(topic) is not str or topic not in self._topics:
            topic = name_of("topic", topic)
        self._store.require_same_process()
        queues = self._topics.get(topic)
        if queues is None or is_counted:
            with alone(SENDING), self.mutex:
                queues = self._topics.get(topic)
                if queues is None:
                    self._forget_deleted_topics()
                    queues = TopicQueues(topic, self._store, self._config, clock.monotonic_s())
                    self._topics[topic] = queues
                    if self._is_fast and not self.is_closed:
                        self.fast[topic] = queues
                elif is_counted:
                    queues.count(clock.monotonic_s())
        return queues

    def _forget_deleted_topics(self) -> None:
        """Drop the queues of topics that are gone, which keep their closed logs, unless they have batches."""
        known = self._store.topics.keys() | {queue.topic_partition.topic for queue in self._active}
        for topic in self._topics.keys() - known:
            self.fast.pop(topic, None)  # first: what is in `fast` is in `_topics`
            del self._topics[topic]

    def append(self, topic: str, partition: int | None, record: Record, size: int) -> RecordFuture:
        """Add a record to the open batch of its queue; `size` is an upper bound of its bytes.

        Raises:
            IllegalStateError: the producer is closed, has no open transaction, or is called from inside of a write.
            BufferExhaustedError: `buffer.memory` has no room, and gets none within `max.block.ms`.
            UsageError: the record could never fit.
            LogstoreError: as `queues_of`, `TopicQueues.queue` and `TransactionManager.require_sendable`.
        """
        queues = self.queues_of(topic)
        end_s = None
        while True:
            with alone(SENDING), self.mutex:
                now_s = clock.monotonic_s()
                if now_s - queues.known_s > PARTITION_COUNT_AGE_MAX_S:
                    queues.count(now_s)
                queue = queues.queue(record[0], partition)
                if self.transactions is not None:
                    self.transactions.require_sendable(queue.topic_partition)
                while True:
                    batch = queue.open
                    if batch is None or batch.room >= size:
                        break
                    self._seal(queue)
                    self._write(queue, now_s)
                    queue = queues.queue(record[0], partition)
                batch = batch or self._begin_batch(queue, size, now_s)
                if batch is not None:
                    future = batch.append(record, size)
                    if not self._linger_s:
                        self._seal(queue)
                        self._write(queue, now_s)
                    return future
                end_s = end_s or now_s + self._config["max.block.ms"] / 1000
                pause_s = self._make_room(max(self._batch_size, size + HEADER_SIZE), end_s)
            pause(pause_s)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Write everything, wait for retries, and, outside of callbacks, for these; return False on timeout."""
        self._store.require_same_process()
        end_s = None if timeout_s is None else clock.monotonic_s() + timeout_s
        while True:
            with alone(SENDING), self.mutex:
                now_s = clock.monotonic_s()
                due_s = self._write_all(now_s)
            if due_s is None:
                return self.background.finish_calls(None if end_s is None else max(0.0, end_s - now_s))
            if end_s is not None and now_s >= end_s:
                return False
            pause((due_s if end_s is None else min(due_s, end_s)) - now_s)

    def write_columns(self, queue: PartitionQueue, columns: RecordColumns) -> AppendInfo:
        """Append columns behind the batches of the queue, in one attempt; the caller holds the mutex.

        Raises:
            IllegalStateError: the producer is closed, or has no open transaction.
            RequestTimedOutError: a batch of the queue waits for a retry.
            LogstoreError: as `Sender.append_columns`; the transaction has failed then, unless the error is retriable.
        """
        self.require_open()
        if self.transactions is not None:
            self.transactions.require_sendable(queue.topic_partition)
        self._seal(queue)
        self._write(queue, clock.monotonic_s())
        if queue.batches:
            raise RequestTimedOutError(f"Records for {queue.topic_partition} wait to be tried again: call flush first")
        try:
            queue.rebind_log(self._store)
            return self._sender.append_columns(queue, columns)
        except RETRIABLE:
            raise
        except LogstoreError as error:
            if self.transactions is None:
                raise
            explained = self.transactions.explained(error)
            self.transactions.batch_failed(explained)
            raise explained from error

    def fail_all(self, error: LogstoreError, *, is_expected: bool) -> None:
        """Fail everything that is not written yet; `is_expected` by the program, as after an abort."""
        self._store.require_same_process()
        with alone(SENDING), self.mutex:
            for queue in list(self._active):
                self._seal(queue)
                for batch in list(queue.batches):
                    if batch.left_count and is_expected:
                        batch.set_outcome(batch.left_count, error)
                    elif batch.left_count:
                        self._sender.give_up(batch, batch.left_count, error)
                    self._finish(queue, batch)
                self._active.pop(queue, None)
        self.background.wake()  # it may sleep until a retry that is given up now, and keep the producer alive

    def close(self) -> None:
        """Accept no more records; the thread ends once nothing is left."""
        with alone(SENDING), self.mutex:
            self.is_closed = True
            self.fast.clear()
        self.background.end()

    def invalidate_after_fork(self) -> None:
        """Take a new mutex in the child of a fork, as no thread there releases the old one, and fail all futures."""
        self.mutex = threading.Lock()
        self.fast.clear()
        for queue in list(self._active):
            queue.open = None
            for batch in queue.batches:
                batch.disown(self._store.of_parent())

    def require_open(self) -> None:
        """Raise IllegalStateError after `close`."""
        if self.is_closed:
            raise IllegalStateError(CLOSED)

    @property
    def retried_error(self) -> LogstoreError | None:
        """Error of a batch that waits for a retry; None if none does."""
        with alone(SENDING), self.mutex:
            errors = (queue.batches[0].retried_error for queue in self._active if queue.batches)
            return next((error for error in errors if error is not None), None)

    # -- steps, with the mutex held -----------------------------------------------------------------------------------

    def _begin_batch(self, queue: PartitionQueue, size: int, now_s: float) -> Batch | None:
        """Open a batch with room for `size` bytes; return None if memory is short."""
        if self.is_closed:
            raise IllegalStateError(CLOSED)
        reserved_size = max(self._batch_size, size + HEADER_SIZE)
        if self._free_size < reserved_size:
            return None
        if self._linger_s:
            self.background.ensure(now_s + self._linger_s)
        self._free_size -= reserved_size  # first: `_make_room` recomputes what an interrupt leaves reserved
        self._active[queue] = None
        batch = Batch(
            queue.topic_partition,
            room=self._batch_size - HEADER_SIZE,
            reserved_size=reserved_size,
            due_s=now_s + self._linger_s,
            expiry_s=now_s + self._delivery_timeout_s,
            background=self.background,
        )
        queue.batches.append(batch)
        queue.open = batch
        return batch

    def _make_room(self, size: int, end_s: float) -> float:
        """Write all that can be written; return seconds to wait before trying again (`BufferPool.allocate`)."""
        memory_size = self._config["buffer.memory"]
        if size > memory_size:
            raise UsageError(
                f"Attempt to allocate {size} bytes, but there is a hard limit of {memory_size} on memory allocations.",
                java_class="java.lang.IllegalArgumentException",
                advice="let buffer.memory have room for a batch, see batch.size",
            )
        now_s = clock.monotonic_s()
        due_s = self._write_all(now_s)
        # counted anew: an interrupt may have left a reservation without a batch
        self._free_size = memory_size - sum(batch.reserved_size for queue in self._active for batch in queue.batches)
        if self._free_size >= size:
            return 0.0
        if due_s is None or now_s >= end_s:
            raise BufferExhaustedError(
                f"Failed to allocate {size} bytes within the configured max blocking time "
                f"{self._config['max.block.ms']} ms. Total memory: {memory_size} bytes. Available memory: "
                f"{self._free_size} bytes. Poolable size: {self._batch_size} bytes"
            )
        return min(due_s, end_s) - now_s

    def _write_due(self) -> float | None:
        """Write what is due, in the thread; return seconds until the next is due, None if nothing is left."""
        with alone(SENDING), self.mutex:
            now_s = clock.monotonic_s()
            due_s = self._write_all(now_s, is_due=True)
            self.background.until_s = due_s or 0.0  # here: who adds a batch holds the mutex too
        return None if due_s is None else due_s - now_s

    def _write_all(self, now_s: float, *, is_due: bool = False) -> float | None:
        """Write all batches, or the due ones; return when the next one is due, None if nothing is left."""
        times_s = []
        queues = list(self._active)
        for queue in queues:
            if queue.open is not None and (not is_due or queue.open.due_s <= now_s):
                self._seal(queue)
        if self.transactions is not None and self.transactions.error is None:
            number = self.transactions.number
            joining = [
                queue.topic_partition
                for queue in queues
                if queue.transaction != number and queue.batches and queue.batches[0] is not queue.open
            ]
            if len(joining) > 1:
                self.transactions.join_all(joining)
        for queue in queues:
            if queue.batches and queue.batches[0] is queue.open:
                times_s.append(queue.open.due_s)
                continue
            self._write(queue, now_s)
            if queue.batches:
                head = queue.batches[0]
                times_s.append(head.due_s if head is queue.open else head.retry_s)
        return min(times_s, default=None)

    def _seal(self, queue: PartitionQueue) -> None:
        """Close the open batch to records, so that it is written next."""
        batch = queue.open
        if batch is not None:
            self._topics[queue.topic_partition.topic].batch_sealed(queue, self._batch_size - batch.room)
            queue.open = None

    def _write(self, queue: PartitionQueue, now_s: float) -> None:
        """Write the sealed batches, up to one that waits for a retry."""
        try:
            while True:
                if not queue.batches or queue.batches[0] is queue.open:
                    break
                batch = queue.batches[0]
                if batch.retry_s > now_s and batch.left_count:
                    self.background.ensure(batch.retry_s)
                    break
                if not self._sender.append(queue, batch, now_s):
                    continue
                self._finish(queue, batch)
        except BaseException:
            self.background.wake()  # it writes what was interrupted
            raise
        if not queue.batches:
            self._active.pop(queue, None)

    def _finish(self, queue: PartitionQueue, batch: Batch) -> None:
        # the batch leaves its queue last: an interrupt repeats `complete`, and wakes every waiting thread
        batch.complete()
        queue.batches.popleft()
        self._free_size += batch.reserved_size


def pause(wait_s: float) -> None:
    """Wait briefly: other threads may change what is waited for."""
    threading.Event().wait(min(max(0.0, wait_s), PAUSE_S_MAX))
