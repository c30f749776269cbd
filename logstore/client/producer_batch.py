"""Records on their way into one partition, and what became of them (`ProducerBatch`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from operator import index as as_index
from typing import Any

from ..errors import InvalidRecordError, InvalidTimestampError, LogstoreError, UsageError
from ..layout.record import Headers
from ..log.append_info import AppendInfo
from ..model import TopicPartition

NO_OFFSET = -1
MS_MAX, PARTITION_MAX = (1 << 63) - 1, (1 << 31) - 1
_WITH_INVALID = "Failed to append record because it was part of a batch which had one more more invalid records"
_DONE_LOCK = threading.Lock()  # one for all: it is held for a few instructions

_LOGGER = logging.getLogger("logstore")

Outcome = AppendInfo | LogstoreError


class ProducerBatch:
    """Columns of records that are appended in one piece, or in several if the topic takes only smaller ones.

    Attributes:
        topic_partition: where to.
        values: of each record; gone when all is done.
        keys: of each record; None while no record has any.
        timestamps: of each record, ms.
        headers: of each record; None while no record has any.
        size: bytes that the batch takes at most, before compression.
        deadline_s, expiry_s: by the monotonic clock, when it is to be written, and when nobody waits for it any more.
        retry_s: not to be tried before.
        attempt_count: how often it was tried in vain.
        retried_error: why it was the last time.
        reserved_size: bytes of `buffer.memory` that it has.
        settled_count: records of which it is known what became of them; in their order.
        is_done: that is known of all.
        is_told: somebody has seen an error of it.
    """

    __slots__ = (
        "_actions",
        "_event",
        "_outcomes",
        "attempt_count",
        "deadline_s",
        "expiry_s",
        "headers",
        "is_done",
        "is_told",
        "keys",
        "reserved_size",
        "retried_error",
        "retry_s",
        "settled_count",
        "size",
        "timestamps",
        "topic_partition",
        "values",
    )

    def __init__(self, topic_partition: TopicPartition, size: int, deadline_s: float, expiry_s: float) -> None:
        self.topic_partition = topic_partition
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None
        self.timestamps: list[int] = []
        self.headers: list[Headers] | None = None
        self.size = size
        self.deadline_s, self.expiry_s = deadline_s, expiry_s
        self.reserved_size = 0
        self.retry_s = 0.0
        self.attempt_count = 0
        self.retried_error: LogstoreError | None = None
        self.settled_count = 0
        self.is_done = self.is_told = False
        self._outcomes: list[tuple[int, Outcome]] = []  # from which record on
        self._actions: list[Callable[[], None]] = []
        self._event: threading.Event | None = None

    def __len__(self) -> int:
        return len(self.timestamps)

    def settle(self, count: int, outcome: Outcome) -> None:
        """It is known what became of the next `count` records."""
        self._outcomes.append((self.settled_count, outcome))
        self.settled_count += count

    def complete(self) -> None:
        """Everything is settled: wake who waits, and call who asked for it. Not to be called with a lock held."""
        with _DONE_LOCK:
            self.is_done = True
            self.values, self.keys, self.headers = [], None, None
            actions, self._actions = self._actions, []
            if self._event is not None:
                self._event.set()
        for action in actions:
            _call(action)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until everything is settled; False if that takes longer."""
        with _DONE_LOCK:
            if self.is_done:
                return True
            event = self._event = self._event or threading.Event()
        return event.wait(timeout_s)

    def when_done(self, action: Callable[[], None]) -> None:
        """Have `action` called when everything is settled, at once if it is."""
        with _DONE_LOCK:
            if not self.is_done:
                self._actions.append(action)
                return
        _call(action)

    def place_of(self, index: int) -> tuple[int, int]:
        """Offset and timestamp of a record that is in the log."""
        start, info = self._outcome(index)
        assert isinstance(info, AppendInfo)
        offset = NO_OFFSET if info.first_offset < 0 else info.first_offset + index - start
        return offset, self.timestamps[index] if info.log_append_time < 0 else info.log_append_time

    def error_of(self, index: int) -> LogstoreError | None:
        """Why a record is not in the log; None if it is (`Sender.failBatch`)."""
        start, error = self._outcome(index)
        if not isinstance(error, LogstoreError):
            return None
        self.is_told = True
        if not isinstance(error, InvalidRecordError | InvalidTimestampError) or not error.record_errors:
            return error
        messages = {one.batch_index: one.message for one in error.record_errors}
        if index - start not in messages:
            return InvalidRecordError(_WITH_INVALID, advice="see the errors of the other records, and send this again")
        kind = type(error) if len(messages) == 1 else InvalidRecordError
        return kind(messages[index - start])

    def _outcome(self, index: int) -> tuple[int, Outcome]:
        return next(one for one in reversed(self._outcomes) if one[0] <= index)


def not_negative(name: str, value: Any, maximum: int) -> int:
    """`value` as an int, or refused before it comes into a batch with others (`ProducerRecord`)."""
    try:
        number = as_index(value)
    except TypeError:
        number = -1
    if 0 <= number <= maximum:
        return number
    what = "Partition number" if name == "partition" else name.capitalize()
    raise UsageError(
        f"Invalid {name}: {value}. {what} should always be non-negative or null.",
        expected=f"an int from 0 to {maximum}",
        found=repr(value),
        java_class="java.lang.IllegalArgumentException",
    )


def _call(action: Callable[[], None]) -> None:
    """Whoever writes a batch is not to fail because of a callback."""
    try:
        action()
    except Exception as error:
        _LOGGER.error("A callback of a record failed: %r", error, exc_info=error)
