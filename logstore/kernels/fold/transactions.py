"""Open transactions as a sorted array: what `ProducerStateManager` keeps in a tree map.

`ongoing` holds pairs (first offset, producer id) by ascending first offset, in [ongoing_head, ongoing_end). A decided
one keeps its place, without its producer, until it is at the head: nothing is moved for the usual transaction, and the
first offset of all that are open is always at the head.

Of decided transactions whose marker is not below the high watermark there are none: it is the log's end.
"""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ...jit.structs import words_at
from ..primitives import add64

NONE = -1  # no offset
DECIDED = -1  # in place of the producer id, which is never negative


@device
def ongoing_position(producers: Any, first_offset: int) -> int:
    """Where `first_offset` is, or would be."""
    ongoing = words_at(producers.ongoing)
    low = producers.ongoing_head
    high = producers.ongoing_end
    if high > low and ongoing[2 * (high - 1)] < first_offset:
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
    """Add a transaction, in place of one with the same first offset; there is room for one pair more."""
    ongoing = words_at(producers.ongoing)
    position = ongoing_position(producers, first_offset)
    end = producers.ongoing_end
    if position < end and ongoing[2 * position] == first_offset:
        if ongoing[2 * position + 1] == DECIDED:
            producers.ongoing_count += 1
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
    producers.ongoing_count += 1
    return position


@device
def remove_ongoing(producers: Any, first_offset: int) -> int:
    """Take the transaction with this first offset out; 0 if there is none."""
    ongoing = words_at(producers.ongoing)
    position = ongoing_position(producers, first_offset)
    end = producers.ongoing_end
    if position >= end or ongoing[2 * position] != first_offset or ongoing[2 * position + 1] == DECIDED:
        return 0
    ongoing[2 * position + 1] = DECIDED
    producers.ongoing_count -= 1
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
    """The LSO as if the producer's transaction with its marker at `last_offset` were decided, and no other."""
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
    """First offset of the earliest transaction that is undecided; NONE without one."""
    if producers.ongoing_head < producers.ongoing_end:
        return words_at(producers.ongoing)[2 * producers.ongoing_head]
    return NONE
