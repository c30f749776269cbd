"""Rules of Kafka that kernels and Python share, as a device function also runs as Python.

Both fast and slow paths call them, so that each rule exists once.
"""

from __future__ import annotations

from ..layout.batch import NO_TIMESTAMP
from ..layout.record import SEQUENCE_MAX
from ..native.device import device
from .primitives import add64, wrap32

RELATIVE_OFFSET_MAX = 2147483647  # offsets minus the base offset fit a non-negative int32


@device
def increment_sequence(sequence: int, increment: int) -> int:
    """Add to a sequence; 0 follows SEQUENCE_MAX (`DefaultRecordBatch.incrementSequence`, with Java's overflow)."""
    if sequence > wrap32(SEQUENCE_MAX - increment):
        return wrap32(increment - (SEQUENCE_MAX - sequence) - 1)
    return wrap32(sequence + increment)


@device
def decrement_sequence(sequence: int, decrement: int) -> int:
    """Subtract from a sequence; SEQUENCE_MAX precedes 0 (`DefaultRecordBatch.decrementSequence`, overflow too)."""
    if sequence < decrement:
        return wrap32(SEQUENCE_MAX - (decrement - sequence) + 1)
    return wrap32(sequence - decrement)


@device
def is_timestamp_in_range(timestamp: int, now_ms: int, before_max_ms: int, after_max_ms: int) -> bool:
    """Return whether a topic with CreateTime accepts the timestamp (`LogValidator`, with Java's overflow)."""
    return timestamp == NO_TIMESTAMP or (
        add64(now_ms, -timestamp) <= before_max_ms and add64(timestamp, -now_ms) <= after_max_ms
    )


@device
def waited_ms(first_timestamp: int, max_timestamp: int, created_ms: int, now_ms: int) -> int:
    """Return a segment's age by its records' timestamps, or by the clock if its first batch has none."""
    return now_ms - created_ms if first_timestamp < 0 else max_timestamp - first_timestamp


@device
def has_segment_room(
    segment_size: int, size: int, size_max: int, waited: int, age_max_ms: int, relative_offset: int
) -> bool:
    """Return whether a segment has room for a batch of `size` bytes and this last offset (`LogSegment.shouldRoll`).

    The caller checks that the indexes are not full. waited: of `waited_ms`.
    """
    return (
        segment_size <= size_max - size
        and (segment_size == 0 or waited <= age_max_ms)
        and 0 <= relative_offset <= RELATIVE_OFFSET_MAX
    )
