"""The only module that asks for the time, so that everything else can be run at any time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

#: nanoseconds since 1970, for who asks so often that the call of `now_ms` takes too long
time_ns = time.time_ns

#: seconds since some moment, never going back: for intervals. Not `time.monotonic`: tests freeze that together with the
#: wall clock (freezegun), and a wait would never end
monotonic_s = partial(time.clock_gettime, time.CLOCK_MONOTONIC)


def monotonic_ms() -> int:
    """Return milliseconds since some moment, never going back: for intervals."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000_000


def now_ms() -> int:
    """Milliseconds since 1970, as Kafka counts them."""
    return time.time_ns() // 1_000_000


def ticks_of(now: Callable[[], int]) -> Callable[[], int]:
    """Return the clock of intervals beside a clock of milliseconds: a program's own clock is for both."""
    return monotonic_ms if now is now_ms else now
