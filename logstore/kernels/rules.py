"""Rules of Kafka that kernels and Python share: a device function is ordinary Python.

Each stands here once; what is not a fast path calls it too.
"""

from __future__ import annotations

from ..jit.device import device
from ..layout.batch import NO_TIMESTAMP
from .primitives import add64, wrap32

SEQUENCE_MAX = 2147483647


@device
def increment_sequence(sequence: int, increment: int) -> int:
    """`DefaultRecordBatch.incrementSequence`, Java's overflow included: 0 follows SEQUENCE_MAX."""
    if sequence > wrap32(SEQUENCE_MAX - increment):
        return wrap32(increment - (SEQUENCE_MAX - sequence) - 1)
    return wrap32(sequence + increment)


@device
def decrement_sequence(sequence: int, decrement: int) -> int:
    """`DefaultRecordBatch.decrementSequence`, Java's overflow included: SEQUENCE_MAX comes before 0."""
    if sequence < decrement:
        return wrap32(SEQUENCE_MAX - (decrement - sequence) + 1)
    return wrap32(sequence - decrement)


@device
def is_timestamp_in_range(timestamp: int, now_ms: int, before_max_ms: int, after_max_ms: int) -> bool:
    """Whether a topic with CreateTime takes a record of this time, Java's overflow included (`LogValidator`)."""
    return timestamp == NO_TIMESTAMP or (
        add64(now_ms, -timestamp) <= before_max_ms and add64(timestamp, -now_ms) <= after_max_ms
    )
