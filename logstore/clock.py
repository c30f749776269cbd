"""The only module that asks for the time, so that everything else can be run at any time."""

from __future__ import annotations

import time


def monotonic_s() -> float:
    """Seconds since some moment, never going back: for intervals."""
    return time.monotonic()
