"""Batch of records for one partition, its outcome, and the futures of its records (`ProducerBatch`)."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...calls import require_outside
from ...errors import (
    InvalidRecordError,
    InvalidTimestampError,
    LogstoreError,
    ReentrantCallError,
    RequestTimedOutError,
)
from ...log.append.request import AppendInfo
from ...model import OfOneProcess, TopicPartition
from ..arguments import require_function, time_left
from .background import Background

_WITH_INVALID = "Failed to append record because it was part of a batch which had one more more invalid records"
_LOGGER = logging.getLogger("logstore")

#: key, value, timestamp in ms, headers as `encode_headers` returns them, or empty
Record = tuple[bytes | None, bytes | None, int, bytes]
ITEM_COUNT = 4  # items of a record
Outcome = AppendInfo | LogstoreError


class Batch:
    """Records appended as one batch, or as several if the topic takes only smaller ones.

    Every step may be interrupted and repeated: one `+=` adds a record, one `append` an outcome.

    Attributes:
        topic_partition: the destination.
        items: of the records, one behind the other, so that a slice with a step is a column; empty once all have an
            outcome.
        room: bytes that still fit, before compression.
        due_s, expiry_s: monotonic times at which it must be written, and at which it expires.
        reserved_size: its share of `buffer.memory`, in bytes.
        retry_s: monotonic time before which it is not tried again.
        attempt_count: failed attempts.
        retried_error: of the last failed attempt.
        is_done: the outcome of every record is known.
        is_reported: the program has seen an error of it.
    """

    retry_s = 0.0
    attempt_count = 0
    retried_error: LogstoreError | None = None
    is_done = is_reported = False
    _timestamps: Sequence[int] = ()
    _attempt: tuple[object, int] = (None, 0)

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        room: int,
        reserved_size: int,
        due_s: float,
        expiry_s: float,
        background: Background,
    ) -> None:
        self.topic_partition = topic_partition
        self.items: list[Any] = []
        self.room, self.reserved_size = room, reserved_size
        self.due_s, self.expiry_s = due_s, expiry_s
        self._background = background
        self._outcomes: list[tuple[int, int, Outcome]] = []  # first record, end, outcome
        self._actions: deque[Callable[[], object]] = deque()
        self._latches: list[threading.Lock] = []

    def append(self, record: Record, size: int) -> RecordFuture:
        """Add a record of at most `size` bytes; the caller holds the producer's mutex."""
        self.room -= size  # first: an interrupt in between wastes room, but leaves no uncounted record
        future = RecordFuture()
        key, value, _, _ = record
        future._batch, future._index = self, len(self.items) // ITEM_COUNT
        future._key_size = -1 if key is None else len(key)
        future._value_size = -1 if value is None else len(value)
        self.items += record
        return future

    def columns(self, start: int, count: int) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Return the keys, values, timestamps and headers of `count` records."""
        items, begin, end = self.items, ITEM_COUNT * start, ITEM_COUNT * (start + count)
        keys, values = items[begin:end:ITEM_COUNT], items[begin + 1 : end : ITEM_COUNT]
        return keys, values, items[begin + 2 : end : ITEM_COUNT], items[begin + 3 : end : ITEM_COUNT]

    # -- what the sender tells ----------------------------------------------------------------------------------------

    @property
    def done_count(self) -> int:
        """The number of records with a known outcome; they come first."""
        return self._outcomes[-1][1] if self._outcomes else 0

    @property
    def left_count(self) -> int:
        """The number of records without one."""
        return len(self.items) // ITEM_COUNT - self.done_count if self.items else 0

    def set_outcome(self, count: int, outcome: Outcome) -> None:
        """Set the outcome of the next `count` records."""
        start = self.done_count
        self._outcomes.append((start, start + count, outcome))

    def sequence(self, attempt: object, next_sequence: int) -> int:
        """Return the sequence to write with: that of the last attempt if this repeats it, else `next_sequence`.

        So if an interrupt hid that the log already has the records, the log recognizes the duplicate.
        """
        if self._attempt[0] != attempt:
            self._attempt = (attempt, next_sequence)
        return self._attempt[1]

    def complete(self) -> None:
        """Wake waiting threads and have callbacks called: all records have an outcome. May be repeated."""
        if self.items:
            self._timestamps = self.items[2::ITEM_COUNT]
        self.is_done = True
        self.items = []
        for latch in tuple(self._latches):
            if latch.locked():
                latch.release()
        if self._actions:
            self._background.post(self.run_actions)

    def disown(self, error: LogstoreError) -> None:
        """Fail the rest in the child of a fork: no thread there writes it, or runs its callbacks."""
        if not self.is_done:
            self._actions.clear()
            self.set_outcome(self.left_count, error)
            self.complete()

    # -- what futures ask ---------------------------------------------------------------------------------------------

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until all records have an outcome; return False on timeout.

        Uses a lock of its own: an interrupt can leave a Condition locked. Raises ReentrantCallError in a call that the
        writing thread may wait for, and in the writing thread.
        """
        require_outside()
        if self._background.is_current:
            raise ReentrantCallError(
                "A callback waits for a record of its own producer, whose callbacks run in the thread that writes it",
                advice="give the record a callback of its own, or let another thread wait",
            )
        latch = threading.Lock()
        latch.acquire()
        self._latches.append(latch)
        if self.is_done:  # it was done before the latch was visible
            return True
        if timeout_s is None:
            return latch.acquire()
        if latch.acquire(timeout=min(max(timeout_s, 0.0), threading.TIMEOUT_MAX)):
            return True
        self._latches.remove(latch)
        return self.is_done

    def when_done(self, action: Callable[[], object]) -> None:
        """Have `action` called in the producer's thread once all records have an outcome."""
        self._actions.append(action)
        if self.is_done:
            self._background.post(self.run_actions)

    def run_actions(self) -> None:
        """Call the waiting actions, each once, whichever thread comes first."""
        while self._actions:
            try:
                action = self._actions.popleft()
            except IndexError:
                return
            try:
                action()
            except BaseException as error:  # SystemExit in a callback would end the thread that `flush` waits for
                _LOGGER.error("A callback of a record failed: %r", error, exc_info=error)

    def offset_and_timestamp(self, index: int) -> tuple[int, int]:
        """Return offset and timestamp of a record in the log."""
        start, info = self._outcome(index)
        assert isinstance(info, AppendInfo)
        offset = info.first_offset + index - start
        return offset, self._timestamps[index] if info.log_append_time < 0 else info.log_append_time

    def is_written(self, index: int) -> bool:
        """Return whether a record is in the log; not a question of the program, as `error_of` is."""
        return isinstance(self._outcome(index)[1], AppendInfo)

    def error_of(self, index: int) -> LogstoreError | None:
        """Return why a record is not in the log; None if it is. The program has seen it then."""
        error = self.refusal(index)
        self.is_reported = self.is_reported or error is not None
        return error

    def refusal(self, index: int) -> LogstoreError | None:
        """Return what `error_of` does, for what is no question of the program (`Sender.failBatch`)."""
        start, error = self._outcome(index)
        if not isinstance(error, LogstoreError):
            return None
        if not isinstance(error, InvalidRecordError | InvalidTimestampError) or not error.record_errors:
            return error
        messages = {one.batch_index: one.message for one in error.record_errors}
        if index - start not in messages:
            return InvalidRecordError(_WITH_INVALID, advice="see the errors of the other records, and send this again")
        kind = type(error) if len(messages) == 1 else InvalidRecordError
        return kind(messages[index - start])

    def _outcome(self, index: int) -> tuple[int, Outcome]:
        return next((start, outcome) for start, end, outcome in self._outcomes if index < end)


class RecordMetadata(NamedTuple):
    """Place of a record in the log (`RecordMetadata`).

    Attributes:
        offset: -1 for a record of a duplicate batch that the log no longer remembers.
        timestamp: ms; of the record, or of the append in a LogAppendTime topic.
        serialized_key_size, serialized_value_size: bytes; -1 for null.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)


class RecordFuture(OfOneProcess):
    """Result of one `Producer.send`, available now or later; usable from any thread.

    The creator sets all fields: an `__init__` would take a tenth of the time of `send`.
    """

    __slots__ = ("_batch", "_index", "_key_size", "_value_size")

    _batch: Batch
    _index: int
    _key_size: int
    _value_size: int
    _instead = "give another process what `get` returns"

    def __repr__(self) -> str:
        state = "pending"
        if self._batch.is_done:
            error = self._batch.refusal(self._index)
            state = f"at offset {self._metadata().offset}" if error is None else f"failed, {error!r}"
        return f"<RecordFuture for {self._batch.topic_partition}: {state}>"

    @property
    def is_done(self) -> bool:
        """True if `get` returns at once."""
        return self._batch.is_done

    def done(self) -> bool:
        """Return `is_done`, under its name in `concurrent.futures`."""
        return self._batch.is_done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Call `get`, under its name in `concurrent.futures`."""
        return self.get(timeout)

    def succeeded(self) -> bool:
        """Return whether the record is in the log."""
        return self._batch.is_done and self._batch.error_of(self._index) is None

    def failed(self) -> bool:
        """Return whether the record will not be in the log."""
        return self._batch.is_done and self._batch.error_of(self._index) is not None

    @property
    def exception(self) -> LogstoreError | None:
        """Why the record is not in the log; None if it is, or while that is unknown."""
        return self._batch.error_of(self._index) if self._batch.is_done else None

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait until the record is in the log.

        Args:
            timeout: seconds; None waits as long as it takes, at most `delivery.timeout.ms`.

        Raises:
            UsageError: a timeout that is none.
            ReentrantCallError: in a callback of the same producer, or in the middle of another call.
            RequestTimedOutError: it took longer.
            LogstoreError: the reason why the record is not in the log.
        """
        left_s = time_left(timeout)
        if not (self._batch.is_done or self._batch.wait(left_s)):
            raise RequestTimedOutError(f"Timeout after waiting for {timeout} s.")
        error = self._batch.error_of(self._index)
        if error is not None:
            raise error
        return self._metadata()

    def add_callback(self, callback: Callable[[RecordMetadata], Any]) -> RecordFuture:
        """Have `callback` called with the metadata in the producer's thread; `Producer.flush` waits for it."""
        require_function("callback", callback)
        self._batch.when_done(lambda: callback(self._metadata()) if self._batch.is_written(self._index) else None)
        return self

    def add_errback(self, errback: Callable[[LogstoreError], Any]) -> RecordFuture:
        """Have `errback` called in the producer's thread with the error, if there is one."""
        require_function("errback", errback)

        def call() -> None:
            error = self.exception
            if error is not None:
                errback(error)

        self._batch.when_done(call)
        return self

    def _metadata(self) -> RecordMetadata:
        batch = self._batch
        topic, partition = batch.topic_partition
        sizes = self._key_size, self._value_size
        return RecordMetadata(topic, partition, *batch.offset_and_timestamp(self._index), *sizes)
