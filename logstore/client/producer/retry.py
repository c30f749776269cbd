"""Retries of a producer: which errors, and when (`ExponentialBackoff`)."""

from __future__ import annotations

import random

from ... import clock
from ...errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaStorageError,
    LogstoreError,
    NotCoordinatorError,
)
from .config import ProducerConfig

#: errors that pass by themselves; a missing topic or a broken log does not
RETRIABLE: tuple[type[LogstoreError], ...] = (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
_JITTER = 0.2
_EXPONENT_MAX = 30


def backoff_s(config: ProducerConfig, attempt_count: int) -> float:
    """Return the seconds to wait after so many attempts: after the first one none."""
    if attempt_count <= 1:
        return 0.0
    wait_ms = config["retry.backoff.ms"] * 2.0 ** min(attempt_count - 2, _EXPONENT_MAX)
    return float(min(wait_ms * random.uniform(1 - _JITTER, 1 + _JITTER), config["retry.backoff.max.ms"])) / 1000


class Attempts:
    """Attempts of one call, until a time is up."""

    def __init__(self, config: ProducerConfig, timeout_s: float) -> None:
        self._config, self._end_s = config, clock.monotonic_s() + timeout_s
        self._count = 0

    def next_s(self) -> float | None:
        """Return the monotonic time of the next attempt after one that failed; None if that is too late."""
        self._count += 1
        next_s = clock.monotonic_s() + backoff_s(self._config, self._count)
        return next_s if next_s < self._end_s else None


def raise_storage_error(error: LogstoreError) -> None:
    """Raise why a coordinator can never continue: a log it needs is closed until the store is reopened."""
    cause = error.__cause__
    if isinstance(cause, KafkaStorageError):
        raise KafkaStorageError(cause.message, path=cause.path, found=cause.found, advice=cause.given_advice) from error
