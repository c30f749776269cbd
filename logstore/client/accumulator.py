"""The records of a producer that are not written yet, and the memory they take (`RecordAccumulator`, `BufferPool`).

A batch that is full is written by the thread whose record found it so: in Python that is faster than to hand it over.
One that is not full is written when it has waited for `linger.ms`, see `linger`.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable

from .. import clock
from ..errors import BufferExhaustedError, IllegalStateError, LogstoreError, UsageError
from ..layout.batch import HEADER_SIZE
from ..layout.record import Headers
from ..store.store import Store
from .arguments import topic_name
from .batch_sending import BatchSender
from .lanes import Lane, TopicLanes
from .partitioner import StickyPartitioner
from .producer_batch import ProducerBatch
from .producer_config import ProducerConfig
from .producer_states import CLOSED
from .producer_transactions import ProducerTransactions
from .quick_batches import QuickBatches
from .record_future import RecordFuture, future_of

PARTITION_COUNT_AGE_MAX_S = 1.0


class Accumulator:
    """All lanes of a producer.

    Attributes:
        mutex: held for everything that is done with the lanes, writing included.
        written: a condition of it, notified when batches are done.
        quick: the batches that a record goes into that has neither key nor headers, nor a partition, if there is
            room for it.
        linger_s: how long a batch waits for more records.
        is_closed: nothing is taken any more.
        keep_going: called, with the mutex held, when there is something to write later, see `linger`.
    """

    def __init__(
        self,
        store: Store,
        config: ProducerConfig,
        sender: BatchSender,
        transactions: ProducerTransactions | None,
        quick: QuickBatches,
    ) -> None:
        self.mutex = threading.Lock()
        self.written = threading.Condition(self.mutex)
        self.quick = quick
        self.is_closed = False
        self.keep_going: Callable[[], None] = lambda: None
        self._store, self._config, self._sender, self._transactions = store, config, sender, transactions
        self._batch_size: int = max(config["batch.size"], 1)
        self.linger_s: float = config["linger.ms"] / 1000
        self._delivery_timeout_s: float = config["delivery.timeout.ms"] / 1000
        self._free_size: int = config["buffer.memory"]
        self._topics: dict[str, TopicLanes] = {}
        self._open_lanes: dict[Lane, None] = {}  # the oldest batch first
        self._waiting_lanes: dict[Lane, None] = {}
        self._done: deque[ProducerBatch] = deque()
        self._completing = threading.RLock()

    def lanes_of(self, topic: str) -> TopicLanes:
        """The lanes of a topic; raises UnknownTopicOrPartitionError, UsageError."""
        try:
            lanes = self._topics.get(topic)
        except TypeError:  # it cannot be hashed
            lanes = None
        if lanes is None:
            topic = topic_name(topic)
            with self.mutex:
                lanes = self._topics.get(topic) or TopicLanes(
                    topic,
                    self._store,
                    StickyPartitioner(self._batch_size, random.randrange),
                    ignores_keys=self._config["partitioner.ignore.keys"],
                    now_s=clock.monotonic_s(),
                )
                self._topics[topic] = lanes
        return lanes

    def counted_lanes_of(self, topic: str) -> TopicLanes:
        """As `lanes_of`, with the partitions that there are now."""
        lanes = self.lanes_of(topic)
        with self.mutex:
            lanes.count(clock.monotonic_s())
        return lanes

    def append(
        self,
        lanes: TopicLanes,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp: int,
        size: int,
    ) -> RecordFuture:
        """Put a record into the open batch of its lane; `size`: bytes that it takes at most.

        Raises:
            IllegalStateError: the producer is closed, or has no transaction for it.
            UnknownTopicOrPartitionError: there is no such partition.
            BufferExhaustedError: there is no room for it in `buffer.memory`, and none comes within `max.block.ms`.
            UsageError: there would be none if nothing else was there.
            LogstoreError: the producer is in an error state, see `ProducerTransactions.require_sendable`.
        """
        with self.mutex:
            lane = lanes.sticky if key is None and partition is None else None
            if lane is None:
                lane = lanes.lane(key, partition)
            if self._transactions is not None:
                self._transactions.require_sendable(lane.topic_partition)
            batch = self._held(lane)
            if batch is None or batch.size + size > self._batch_size:
                lane, batch = self._with_room(lanes, key, partition, size)
            index = len(batch.timestamps)
            batch.size += size
            batch.values.append(value)
            batch.timestamps.append(timestamp)
            if key is not None or batch.keys is not None:
                _add_key(batch, index, key)
            if headers or batch.headers is not None:
                _add_headers(batch, index, headers)
            if not self.linger_s:
                self._seal(lane)
                self._drain(lane, clock.monotonic_s())
            elif lane is lanes.sticky:
                self._set_quick(lane.topic_partition.topic, batch)
        if self._done:
            self.complete()
        return future_of(batch, index, key, value)

    def flush(self, timeout_s: float | None = None) -> bool:
        """Write everything that is here, and wait for what has to be tried again; False if that takes longer."""
        end_s = None if timeout_s is None else clock.monotonic_s() + timeout_s
        with self.mutex:
            while True:
                now_s = clock.monotonic_s()
                for lane in list(self._open_lanes):
                    self._seal(lane)
                retry_s = self.drain_due(now_s)
                if retry_s is None or (end_s is not None and now_s >= end_s):
                    break
                self.written.wait(max(0.0, (retry_s if end_s is None else min(retry_s, end_s)) - now_s))
        self.complete()
        return retry_s is None

    def write_lane(self, lane: Lane) -> None:
        """Write what waits in one lane, as far as that goes; the caller holds the mutex."""
        self._seal(lane)
        self._drain(lane, clock.monotonic_s())

    def drain_due(self, now_s: float) -> float | None:
        """Write what is due, with the mutex held; when there is something to do again, None if nothing is left."""
        while self._open_lanes:
            lane = next(iter(self._open_lanes))
            assert lane.open is not None
            if lane.open.deadline_s > now_s:
                break
            self._seal(lane)
        for lane in list(self._waiting_lanes):
            self._drain(lane, now_s)
        times_s = [lane.queue[0].retry_s for lane in self._waiting_lanes]
        times_s += [lane.open.deadline_s for lane in [*self._open_lanes][:1] if lane.open is not None]
        return min(times_s, default=None)

    def fail_all(self, error: LogstoreError) -> None:
        """Give up everything that is not written yet."""
        with self.mutex:
            for lane in list(self._open_lanes):
                self._seal(lane)
            for lane in self._waiting_lanes:
                while lane.queue:
                    batch = lane.queue.popleft()
                    batch.settle(len(batch) - batch.settled_count, error)
                    self._release(batch)
            self._waiting_lanes.clear()
            self.written.notify_all()
            if self.is_closed:
                self.keep_going()  # the thread may wait for the time of what is written by now, and keeps the producer
        self.complete()

    def require_open(self) -> None:
        """Raise IllegalStateError after `close`."""
        if self.is_closed:
            raise IllegalStateError(CLOSED)

    def require_told(self) -> None:
        """Raise the error of records that the disk did not take, if nobody has seen it: as a file's `close` does."""
        if (error := self._sender.untold_error) is not None:
            raise error

    def close(self) -> None:
        """Take nothing any more; the thread ends when nothing is left."""
        with self.mutex:
            self.is_closed = True
            if self._transactions is not None:
                self._transactions.is_closed = True
            self.keep_going()

    def complete(self) -> None:
        """Tell those who wait for batches that are done, in their order; the caller does not hold the mutex."""
        with self._completing:
            while self._done:
                self._done.popleft().complete()

    @property
    def retried_error(self) -> LogstoreError | None:
        """Why something waits to be tried again; None if nothing does."""
        with self.mutex:
            errors = (lane.queue[0].retried_error for lane in self._waiting_lanes if lane.queue)
            return next((error for error in errors if error is not None), None)

    @property
    def has_done(self) -> bool:
        """Whether `complete` has something to do."""
        return bool(self._done)

    def _with_room(
        self, lanes: TopicLanes, key: bytes | None, partition: int | None, size: int
    ) -> tuple[Lane, ProducerBatch]:
        """A lane for the record, and an open batch with room for it, in whose place there may have been a full one."""
        reserved_size = max(self._batch_size, size + HEADER_SIZE)
        now_s = clock.monotonic_s()
        if now_s - lanes.known_s > PARTITION_COUNT_AGE_MAX_S:
            lanes.count(now_s)
        while True:
            lane = lanes.lane(key, partition)
            batch = self._held(lane)
            if batch is not None and batch.size + size <= self._batch_size:
                return lane, batch
            if batch is not None:
                self._seal(lane)
                self._drain(lane, now_s)
            elif self._free_size < reserved_size:
                self._wait_for_memory(reserved_size)
            else:
                break
        self.require_open()
        self._free_size -= reserved_size
        batch = ProducerBatch(
            lane.topic_partition, HEADER_SIZE, now_s + self.linger_s, now_s + self._delivery_timeout_s
        )
        batch.reserved_size = reserved_size
        lane.open = batch
        self._open_lanes[lane] = None
        if self.linger_s:
            self.keep_going()
        return lane, batch

    def _held(self, lane: Lane) -> ProducerBatch | None:
        """The open batch of a lane; from now on with what was done quickly in it, and nothing is done so."""
        batch = lane.open
        if batch is not None:
            self.quick.take(lane.topic_partition.topic, batch)
        return batch

    def _set_quick(self, topic: str, batch: ProducerBatch) -> None:
        """The sticky lane of the topic has this open batch."""
        if batch.keys is None and batch.headers is None:
            self.quick.put(topic, batch)

    def _wait_for_memory(self, size: int) -> None:
        """Write everything that can be, else wait; the mutex is given up meanwhile (`BufferPool.allocate`)."""
        if size > self._config["buffer.memory"]:
            raise UsageError(
                f"Attempt to allocate {size} bytes, but there is a hard limit of {self._config['buffer.memory']} on "
                "memory allocations.",
                java_class="java.lang.IllegalArgumentException",
                advice="let buffer.memory have room for a batch, see batch.size",
            )
        max_block_ms = self._config["max.block.ms"]
        end_s = clock.monotonic_s() + max_block_ms / 1000
        while self._free_size < size:
            now_s = clock.monotonic_s()
            for lane in list(self._open_lanes):
                self._seal(lane)
            retry_s = self.drain_due(now_s)
            if self._free_size >= size:
                return
            if retry_s is None or now_s >= end_s:
                raise BufferExhaustedError(
                    f"Failed to allocate {size} bytes within the configured max blocking time {max_block_ms} ms. Total "
                    f"memory: {self._config['buffer.memory']} bytes. Available memory: {self._free_size} bytes. "
                    f"Poolable size: {self._batch_size} bytes"
                )
            self.written.wait(max(0.0, min(retry_s, end_s) - now_s))

    def _seal(self, lane: Lane) -> None:
        """The open batch takes no more records, and waits to be written."""
        batch = self._held(lane)
        if batch is not None:
            self._topics[lane.topic_partition.topic].passed_on(lane, batch.size)
            lane.queue.append(batch)
            lane.open = None
            del self._open_lanes[lane]
            self._waiting_lanes[lane] = None

    def _drain(self, lane: Lane, now_s: float) -> None:
        """Write the batches that wait, up to one that is to be tried again later."""
        while lane.queue:
            batch = lane.queue[0]
            if batch.retry_s > now_s or not self._sender.try_append(lane, batch, now_s):
                if batch.retry_s > now_s:
                    self.keep_going()
                    return
                continue
            lane.queue.popleft()
            self._release(batch)
        self._waiting_lanes.pop(lane, None)

    def _release(self, batch: ProducerBatch) -> None:
        self._free_size += batch.reserved_size
        self._done.append(batch)
        self.written.notify_all()


def _add_key(batch: ProducerBatch, index: int, key: bytes | None) -> None:
    if batch.keys is None:
        batch.keys = [None] * index
    batch.keys.append(key)


def _add_headers(batch: ProducerBatch, index: int, headers: Headers) -> None:
    if batch.headers is None:
        batch.headers = [()] * index
    batch.headers.append(headers)
