"""Open transactions in a sorted array, where `ProducerStateManager` has a tree map.

`ongoing` holds pairs (first offset, producer id) by ascending first offset, in [ongoing_head, ongoing_end). A completed
transaction stays in its place, marked as DECIDED, until it is at the head. So the usual transaction moves nothing, and
the head is always the first open one.

Kafka also keeps completed transactions whose marker is not below the high watermark; here that is the log's end.
"""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ...native.structs import words_at
from ..primitives import add64

NONE = -1  # no offset
DECIDED = -1  # in place of the producer id, which is never negative


@device
def ongoing_position(producers: Any, first_offset: int) -> int:
    """Return the position of `first_offset`, or where it would be inserted."""
    ongoing = words_at(producers.ongoing)
    low = producers.ongoing_head
    high = producers.ongoing_end
    if high > low and ongoing[2 * (high - 1)] < first_offset:  # the usual case: a new transaction is the last
        return high
    while low < high:
        middle = (low + high) >> 1
        if ongoing[2 * middle] < first_offset:
            low = middle + 1
        else:
            high = middle
    return low


@device
def put_ongoing(producers: Any, first_offset: int, producer_id: int) -> int:
    """Insert a transaction, or replace the one with the same first offset; the caller has checked the room."""
    ongoing = words_at(producers.ongoing)
    position = ongoing_position(producers, first_offset)
    end = producers.ongoing_end
    if position < end and ongoing[2 * position] == first_offset:
        ongoing[2 * position + 1] = producer_id
        return position
    move = end
    while move > position:
        ongoing[2 * move] = ongoing[2 * move - 2]
        ongoing[2 * move + 1] = ongoing[2 * move - 1]
        move -= 1
    ongoing[2 * position] = first_offset
    ongoing[2 * position + 1] = producer_id
    producers.ongoing_end = end + 1
    return position


@device
def remove_ongoing(producers: Any, first_offset: int) -> int:
    """Remove the transaction with this first offset; returns 0 if there is none."""
    ongoing = words_at(producers.ongoing)
    position = ongoing_position(producers, first_offset)
    end = producers.ongoing_end
    if position >= end or ongoing[2 * position] != first_offset or ongoing[2 * position + 1] == DECIDED:
        return 0
    ongoing[2 * position + 1] = DECIDED
    head = producers.ongoing_head
    while head < end and ongoing[2 * head + 1] == DECIDED:
        head += 1
    producers.ongoing_head = head
    if head == end:
        producers.ongoing_head = 0
        producers.ongoing_end = 0
    return 1


@device
def stable_offset(producers: Any, producer_id: int, last_offset: int) -> int:
    """Return the LSO as if only the producer's transaction, whose marker is at `last_offset`, were completed."""
    ongoing = words_at(producers.ongoing)
    position = producers.ongoing_head
    end = producers.ongoing_end
    while position < end:
        other = ongoing[2 * position + 1]
        if other != DECIDED and other != producer_id:
            return ongoing[2 * position]
        position += 1
    return add64(last_offset, 1)


@device
def first_unstable(producers: Any) -> int:
    """Return the first offset of the earliest open transaction; NONE if there is none."""
    if producers.ongoing_head < producers.ongoing_end:
        return words_at(producers.ongoing)[2 * producers.ongoing_head]
    return NONE
