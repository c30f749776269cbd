"""What is tried again within this process, when, and for how long (`ExponentialBackoff`)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import TypeVar

from .. import clock
from ..errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    LogstoreError,
    NotCoordinatorError,
)
from .producer_config import ProducerConfig

T = TypeVar("T")

#: what passes by itself; that a topic is gone, or a log cannot be written, does not
RETRIABLE: tuple[type[LogstoreError], ...] = (
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
_JITTER = 0.2
_EXPONENT_MAX = 30


class Backoff:
    """How long to wait before something is tried again: the first time not at all."""

    def __init__(self, config: ProducerConfig) -> None:
        self._first_s = config["retry.backoff.ms"] / 1000
        self._max_s = config["retry.backoff.max.ms"] / 1000

    def wait_s(self, attempt_count: int) -> float:
        """Seconds before another attempt, after so many."""
        if attempt_count <= 1:
            return 0.0
        wait_s = self._first_s * 2.0 ** min(attempt_count - 2, _EXPONENT_MAX)
        return float(min(wait_s * random.uniform(1 - _JITTER, 1 + _JITTER), self._max_s))


def retried(call: Callable[[], T], backoff: Backoff, timeout_s: float) -> T:
    """What `call` returns in the end; its last error when it takes longer than `timeout_s`."""
    end_s = clock.monotonic_s() + timeout_s
    attempt_count = 0
    while True:
        try:
            return call()
        except RETRIABLE:
            attempt_count += 1
            wait_s = backoff.wait_s(attempt_count)
            if clock.monotonic_s() + wait_s >= end_s:
                raise
        threading.Event().wait(wait_s)
