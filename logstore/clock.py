"""The only module that asks for the time, so that everything else can be run at any time."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Milliseconds since 1970, as Kafka counts them."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds since some moment, never going back: for intervals."""
    return time.monotonic()
