"""Rules of Kafka at their edges, as Java computes them."""

from __future__ import annotations

import pytest

from logstore.kernels.rules import (
    decrement_sequence,
    has_segment_room,
    increment_sequence,
    is_timestamp_in_range,
    waited_ms,
)
from logstore.layout.record import SEQUENCE_MAX

NOW = 1_700_000_000_000
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("sequence", "increment", "after"),
    [
        (0, 0, 0),
        (5, 3, 8),
        (SEQUENCE_MAX, 1, 0),
        (SEQUENCE_MAX - 1, 3, 1),
        (SEQUENCE_MAX, SEQUENCE_MAX, SEQUENCE_MAX - 1),
    ],
)
def test_zero_follows_the_largest_sequence(sequence: int, increment: int, after: int) -> None:
    assert increment_sequence(sequence, increment) == after
    assert decrement_sequence(after, increment) == sequence


@pytest.mark.parametrize(
    ("timestamp", "before_max", "after_max", "is_in_range"),
    [
        (NOW, 0, 0, True),
        (NOW - 10, 10, 0, True),
        (NOW - 11, 10, 0, False),
        (NOW + 10, 0, 10, True),
        (NOW + 11, 0, 10, False),
        (-1, 0, 0, True),  # none
        (LONG_MAX, LONG_MAX, LONG_MAX, True),
        (LONG_MAX, LONG_MAX, LONG_MAX - NOW - 1, False),
        (LONG_MIN, 0, 0, False),  # its age is beyond 64 bits, and negative in Java
        (LONG_MIN, 0, LONG_MAX, True),
    ],
)
def test_times_are_within_both_bounds(timestamp: int, before_max: int, after_max: int, is_in_range: bool) -> None:
    assert is_timestamp_in_range(timestamp, NOW, before_max, after_max) is is_in_range


@pytest.mark.parametrize(
    ("segment_size", "size", "waited", "relative_offset", "has_room"),
    [
        (0, 100, 0, 0, True),
        (40, 60, 10, 5, True),
        (41, 60, 10, 5, False),  # above 100 bytes
        (90, 60, 10, 5, False),
        (0, 101, 10, 5, False),
        (40, 60, 11, 5, False),  # too old
        (0, 60, 11, 5, True),  # an empty one is of any age
        (40, 60, 10, 2**31 - 1, True),
        (40, 60, 10, 2**31, False),
        (40, 60, 10, -1, False),
    ],
)
def test_a_segment_has_room_for_bytes_time_and_offsets(
    segment_size: int, size: int, waited: int, relative_offset: int, has_room: bool
) -> None:
    assert has_segment_room(segment_size, size, 100, waited, 10, relative_offset) is has_room


def test_a_segment_waits_by_its_timestamps_or_by_the_clock() -> None:
    assert waited_ms(NOW, NOW + 7, NOW - 50, NOW + 100) == 7
    assert waited_ms(-1, NOW + 7, NOW - 50, NOW + 100) == 150
    assert waited_ms(0, 7, NOW - 50, NOW) == 7
