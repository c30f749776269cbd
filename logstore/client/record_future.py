"""What comes of a record that was given to a producer: its place in the log, or why it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LogstoreError, RequestTimedOutError
from ..model import TopicPartition

if TYPE_CHECKING:
    from .producer_batch import ProducerBatch


class RecordMetadata(NamedTuple):
    """Where a record is (`RecordMetadata`).

    Attributes:
        offset: -1 for a record that a duplicate batch brought a second time, out of the log's memory.
        timestamp: ms; the record's, or when the log took it, for a topic with LogAppendTime.
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


class RecordFuture:
    """The answer to one `Producer.send`, now or later; for any thread.

    Whoever makes one sets what it has, all of it: an `__init__` would take longer than the rest of a `send`.
    """

    __slots__ = ("_batch", "_index", "_key_size", "_value_size")

    _batch: ProducerBatch
    _index: int
    _key_size: int
    _value_size: int

    @property
    def is_done(self) -> bool:
        """Whether `get` answers at once."""
        return self._batch.is_done

    def succeeded(self) -> bool:
        """Whether the record is in the log."""
        return self._batch.is_done and self._batch.error_of(self._index) is None

    def failed(self) -> bool:
        """Whether the record will not be in the log."""
        return self._batch.is_done and self._batch.error_of(self._index) is not None

    @property
    def exception(self) -> LogstoreError | None:
        """Why the record is not in the log; None if it is, or if that is not known yet."""
        return self._batch.error_of(self._index) if self._batch.is_done else None

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the record to be in the log.

        Args:
            timeout: seconds; None: as long as it takes, which `delivery.timeout.ms` bounds.

        Raises:
            RequestTimedOutError: it took longer.
            LogstoreError: why the record is not in the log.
        """
        if not self._batch.wait(timeout):
            raise RequestTimedOutError(f"Timeout after waiting for {timeout} s.")
        error = self._batch.error_of(self._index)
        if error is not None:
            raise error
        return self._metadata()

    def add_callback(self, callback: Callable[[RecordMetadata], Any]) -> RecordFuture:
        """Have `callback` called with the metadata, in the thread that writes the record, or at once if it is there."""
        self._batch.when_done(lambda: callback(self._metadata()) if self.succeeded() else None)
        return self

    def add_errback(self, errback: Callable[[LogstoreError], Any]) -> RecordFuture:
        """Have `errback` called with the error, if there is one."""

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
        return RecordMetadata(topic, partition, *batch.place_of(self._index), *sizes)


def future_of(batch: ProducerBatch, index: int, key: bytes | None, value: bytes | None) -> RecordFuture:
    """The answer to record `index` of a batch."""
    future = RecordFuture()
    future._batch = batch
    future._index = index
    future._key_size = -1 if key is None else len(key)
    future._value_size = -1 if value is None else len(value)
    return future
