"""The records of a producer that are not written yet, and the memory they take (`RecordAccumulator`, `BufferPool`).

A batch that is full is written by the thread whose record found it so: in Python that is faster than to hand it over.
One that is not full is written by the producer's thread when it has waited for `linger.ms`, see `background`.

Any line may be interrupted. A queue is among the active ones before it has a batch, a batch leaves its queue last, and
what was begun in between is done again by whoever writes next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ... import clock
from ...columns.record_columns import RecordColumns
from ...errors import BufferExhaustedError, IllegalStateError, LogstoreError, RequestTimedOutError, UsageError
from ...layout.batch import HEADER_SIZE
from ...log.append.request import AppendInfo
from ...store.data_directory import DataDirectory
from ..arguments import topic_name
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

T = TypeVar("T")


class Buffer:
    """All queues of a producer.

    Attributes:
        mutex: held for everything that is done with the queues, writing included.
        fast: by name, the topics to whose open batches `Producer.send` may append without a further look; empty while
            a batch is written.
        is_closed: nothing is taken any more.
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
        """Nothing is there yet.

        Args:
            owner: the producer, which is kept as long as something is to be written.
            is_fast: records may be put into `fast` topics.
        """
        self.mutex = threading.Lock()
        self.fast: dict[str, TopicQueues] = {}
        self.is_closed = False
        self._store, self._config, self._sender, self._transactions = store, config, sender, transactions
        self._batch_size: int = max(config["batch.size"], 1)
        self._linger_s: float = config["linger.ms"] / 1000
        self._is_fast = is_fast and self._linger_s > 0
        self._delivery_timeout_s: float = config["delivery.timeout.ms"] / 1000
        self._free_size: int = config["buffer.memory"]
        self._topics: dict[str, TopicQueues] = {}
        self._active: dict[PartitionQueue, None] = {}  # those with batches
        self._writing_thread = 0
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
        """Return the queues of a topic; `is_counted`: of the partitions that there are now.

        Raises:
            UnknownTopicOrPartitionError, InvalidTopicError: there is no such topic; an internal one.
            UsageError: the name is no text.
            IllegalStateError: as `require_outside`.
        """
        topic = topic_name(topic)
        self.require_outside()
        queues = self._topics.get(topic)
        if queues is None or is_counted:
            with self.mutex:
                queues = self._topics.get(topic)
                if queues is None:
                    ignores_keys, now_s = self._config["partitioner.ignore.keys"], clock.monotonic_s()
                    queues = TopicQueues(
                        topic, self._store, batch_size=self._batch_size, ignores_keys=ignores_keys, now_s=now_s
                    )
                    self._topics[topic] = queues
                elif is_counted:
                    queues.count(clock.monotonic_s())
        return queues

    def append(self, topic: str, partition: int | None, record: Record, size: int) -> RecordFuture:
        """Put a record into the open batch of its queue; `size`: bytes that it takes at most.

        Raises:
            IllegalStateError: the producer is closed, has no transaction for it, or writes in this very thread.
            UnknownTopicOrPartitionError, InvalidTopicError: there is no such topic or partition; an internal one.
            BufferExhaustedError: there is no room for it in `buffer.memory`, and none comes within `max.block.ms`.
            UsageError: there would be none if nothing else was there; the topic's name is no text.
            LogstoreError: the producer is in an error state, see `TransactionManager.require_sendable`.
        """
        queues = self.queues_of(topic)
        end_s = None
        while True:
            with self.mutex:
                queue = queues.queue(record[0], partition)
                if self._transactions is not None:
                    self._transactions.require_sendable(queue.topic_partition)
                batch = queue.open
                if batch is None or batch.room < size:
                    queue, batch = self._find_room(queues, record[0], partition, size)
                if batch is not None:
                    future = batch.append(record, size)
                    if not self._linger_s:
                        self._seal(queue)
                        self._write(queue, clock.monotonic_s())
                    elif self._is_fast:
                        self.fast[queue.topic_partition.topic] = queues
                    return future
                end_s = end_s or clock.monotonic_s() + self._config["max.block.ms"] / 1000
                pause_s = self._make_room(max(self._batch_size, size + HEADER_SIZE), end_s)
            pause(pause_s)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Write everything that is here, wait for what is to be tried again, and for callbacks.

        Returns:
            False if that takes longer. In a callback no others are waited for.
        """
        self.require_outside()
        end_s = None if timeout_s is None else clock.monotonic_s() + timeout_s
        while True:
            with self.mutex:
                now_s = clock.monotonic_s()
                due_s = self._write_all(now_s)
            if due_s is None:
                return self.background.finish_calls(None if end_s is None else max(0.0, end_s - now_s))
            if end_s is not None and now_s >= end_s:
                return False
            pause((due_s if end_s is None else min(due_s, end_s)) - now_s)

    def write_columns(self, queue: PartitionQueue, columns: RecordColumns) -> AppendInfo:
        """Append columns behind what waits in the queue, in one attempt; the caller holds the mutex.

        Raises:
            IllegalStateError: the producer is closed, or has no transaction for it.
            RequestTimedOutError: something waits to be tried again.
            LogstoreError: as `Sender.append_columns`; the transaction has failed then, unless it is to be tried again.
        """
        self.require_open()
        if self._transactions is not None:
            self._transactions.require_sendable(queue.topic_partition)
        self._seal(queue)
        self._write(queue, clock.monotonic_s())
        if queue.batches:
            raise RequestTimedOutError(f"Records for {queue.topic_partition} wait to be tried again: call flush first")
        try:
            queue.rebind_log(self._store)
            return self._guarded(lambda: self._sender.append_columns(queue, columns))
        except RETRIABLE:
            raise
        except LogstoreError as error:
            if self._transactions is not None:
                self._transactions.batch_failed(error)
            raise

    def fail_all(self, error: LogstoreError) -> None:
        """Give up everything that is not written yet."""
        self.require_outside()
        with self.mutex:
            for queue in list(self._active):
                self._seal(queue)
                while queue.batches:
                    batch = queue.batches[0]
                    if batch.left_count:
                        batch.settle(batch.left_count, error)
                    self._finish(queue, batch)
                self._active.pop(queue, None)
            self.fast.clear()
        self.background.wake()  # it may wait for the time of what is given up, and keeps the producer

    def close(self) -> None:
        """Take nothing any more; the thread ends when nothing is left."""
        with self.mutex:
            self.is_closed = True
            self.fast.clear()
        self.background.end()

    def invalidate_after_fork(self) -> None:
        """Take another mutex in the child of a fork: nobody may release this one there; batches are the parent's."""
        self.mutex = threading.Lock()
        self.fast.clear()

    def require_open(self) -> None:
        """Raise IllegalStateError after `close`."""
        if self.is_closed:
            raise IllegalStateError(CLOSED)

    def require_outside(self) -> None:
        """Raise IllegalStateError if this thread is just writing a batch, and runs code of the caller's in it.

        Raises:
            DataDirectoryError: in the child of a fork.
        """
        self._store.require_same_process()
        if self._writing_thread == threading.get_ident():
            raise IllegalStateError("The producer is called from inside of a write of its own, as by a clock")

    @property
    def retried_error(self) -> LogstoreError | None:
        """Why something waits to be tried again; None if nothing does."""
        with self.mutex:
            errors = (queue.batches[0].retried_error for queue in self._active if queue.batches)
            return next((error for error in errors if error is not None), None)

    # -- steps, with the mutex held -----------------------------------------------------------------------------------

    def _find_room(
        self, queues: TopicQueues, key: bytes | None, partition: int | None, size: int
    ) -> tuple[PartitionQueue, Batch | None]:
        """Return the queue of the record, and an open batch with room for it; None if there is no memory for one."""
        now_s = clock.monotonic_s()
        if now_s - queues.known_s > PARTITION_COUNT_AGE_MAX_S:
            queues.count(now_s)
        while True:
            queue = queues.queue(key, partition)
            batch = queue.open
            if batch is None:
                break
            if batch.room >= size:
                return queue, batch
            self._seal(queue)
            self._write(queue, now_s)
        self.require_open()
        reserved_size = max(self._batch_size, size + HEADER_SIZE)
        if self._free_size < reserved_size:
            return queue, None
        if self._linger_s:
            self.background.ensure()
        self._free_size -= reserved_size  # first: what an interrupt leaves reserved, `_make_room` finds
        self._active[queue] = None
        batch = Batch(
            queue.topic_partition,
            room=self._batch_size - HEADER_SIZE,
            reserved_size=reserved_size,
            due_s=now_s + self._linger_s,
            expiry_s=now_s + self._delivery_timeout_s,
            post=self.background.post,
        )
        queue.batches.append(batch)
        queue.open = batch
        return queue, batch

    def _make_room(self, size: int, end_s: float) -> float:
        """Write everything that can be; seconds to wait before memory is looked for again (`BufferPool.allocate`)."""
        memory_size = self._config["buffer.memory"]
        if size > memory_size:
            raise UsageError(
                f"Attempt to allocate {size} bytes, but there is a hard limit of {memory_size} on memory allocations.",
                java_class="java.lang.IllegalArgumentException",
                advice="let buffer.memory have room for a batch, see batch.size",
            )
        now_s = clock.monotonic_s()
        due_s = self._write_all(now_s)
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
        """Write what is due, for the thread; seconds until something is again, None if nothing is left."""
        with self.mutex:
            now_s = clock.monotonic_s()
            due_s = self._write_all(now_s, is_due=True)
        return None if due_s is None else due_s - now_s

    def _write_all(self, now_s: float, *, is_due: bool = False) -> float | None:
        """Write all batches, or those that are due; when there is something to do again, None if nothing is left."""
        times_s = []
        for queue in list(self._active):
            if queue.open is not None and (not is_due or queue.open.due_s <= now_s):
                self._seal(queue)
            if queue.batches and queue.batches[0] is queue.open:
                times_s.append(queue.open.due_s)
                continue
            self._write(queue, now_s)
            if queue.batches:
                head = queue.batches[0]
                times_s.append(head.due_s if head is queue.open else head.retry_s)
        return min(times_s, default=None)

    def _seal(self, queue: PartitionQueue) -> None:
        """Close the open batch to records; it waits to be written."""
        batch = queue.open
        if batch is not None:
            self._topics[queue.topic_partition.topic].batch_sealed(queue, self._batch_size - batch.room)
            queue.open = None

    def _write(self, queue: PartitionQueue, now_s: float) -> None:
        """Write the batches that are sealed, up to one that is to be tried again later."""
        self._guarded(lambda: self._write_sealed(queue, now_s))
        if not queue.batches:
            self._active.pop(queue, None)

    def _write_sealed(self, queue: PartitionQueue, now_s: float) -> None:
        while queue.batches and queue.batches[0] is not queue.open:
            batch = queue.batches[0]
            if batch.left_count and batch.retry_s <= now_s:
                self._sender.try_append(queue, batch, now_s)
            if not batch.left_count:
                self._finish(queue, batch)
            elif batch.retry_s > now_s:
                self.background.ensure()
                return

    def _guarded(self, write: Callable[[], T]) -> T:
        """Call `write`; see `require_outside`. Whoever sends from inside finds no fast topic, which needs the mutex."""
        self.fast.clear()
        try:
            self._writing_thread = threading.get_ident()
            result = write()
            self._writing_thread = 0
            return result
        except BaseException:
            self._writing_thread = 0
            self.background.wake()  # it writes what was interrupted
            raise

    def _finish(self, queue: PartitionQueue, batch: Batch) -> None:
        batch.complete()
        queue.batches.popleft()
        self._free_size += batch.reserved_size


def pause(wait_s: float) -> None:
    """Wait, but not for long: other threads may have made what is waited for."""
    threading.Event().wait(min(max(0.0, wait_s), PAUSE_S_MAX))
