"""Rules of Kafka that kernels and Python share: a device function is ordinary Python.

Each stands here once; what is not a fast path calls it too.
"""

from __future__ import annotations

from ..jit.device import device
from ..layout.batch import NO_TIMESTAMP
from ..layout.record import SEQUENCE_MAX
from .primitives import add64, wrap32

RELATIVE_OFFSET_MAX = 2147483647  # offsets in a segment fit 31 bits above its base


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


@device
def waited_ms(first_timestamp: int, max_timestamp: int, created_ms: int, now_ms: int) -> int:
    """How long a segment is written by its records, or by the clock if its first batch has no timestamp."""
    return now_ms - created_ms if first_timestamp < 0 else max_timestamp - first_timestamp


@device
def has_segment_room(
    segment_size: int, size: int, size_max: int, waited: int, age_max_ms: int, relative_offset: int
) -> bool:
    """Whether a segment takes a batch of `size` bytes and this last offset (`LogSegment.shouldRoll`).

    Whether its indexes are full is asked elsewhere. waited: `waited_ms`.
    """
    return (
        segment_size <= size_max - size
        and (segment_size == 0 or waited <= age_max_ms)
        and 0 <= relative_offset <= RELATIVE_OFFSET_MAX
    )
