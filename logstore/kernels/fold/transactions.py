"""Open transactions as a sorted array: what `ProducerStateManager` keeps in a tree map.

`ongoing` holds pairs (first offset, producer id) by ascending first offset, in [ONGOING_HEAD, ONGOING_END). A decided
one keeps its place, without its producer, until it is at the head: nothing is moved for the usual transaction, and the
first offset of all that are open is always at the head.

Of decided transactions whose marker is not below the high watermark there are none: it is the log's end.
"""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ..primitives import add64

ONGOING_HEAD = 0
ONGOING_END = 1
ONGOING_COUNT = 2  # of those that are open
ONGOING_CAPACITY = 3
SLOT_COUNT = 4

NONE = -1  # no offset
DECIDED = -1  # in place of the producer id, which is never negative


@device
def ongoing_position(slots: Any, ongoing: Any, first_offset: int) -> int:
    """Where `first_offset` is, or would be."""
    low = slots[ONGOING_HEAD]
    high = slots[ONGOING_END]
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
def put_ongoing(slots: Any, ongoing: Any, first_offset: int, producer_id: int) -> int:
    """Add a transaction, in place of one with the same first offset; there is room for one pair more."""
    position = ongoing_position(slots, ongoing, first_offset)
    end = slots[ONGOING_END]
    if position < end and ongoing[2 * position] == first_offset:
        if ongoing[2 * position + 1] == DECIDED:
            slots[ONGOING_COUNT] += 1
        ongoing[2 * position + 1] = producer_id
        return position
    move = end
    while move > position:
        ongoing[2 * move] = ongoing[2 * move - 2]
        ongoing[2 * move + 1] = ongoing[2 * move - 1]
        move -= 1
    ongoing[2 * position] = first_offset
    ongoing[2 * position + 1] = producer_id
    slots[ONGOING_END] = end + 1
    slots[ONGOING_COUNT] += 1
    return position


@device
def remove_ongoing(slots: Any, ongoing: Any, first_offset: int) -> int:
    """Take the transaction with this first offset out; 0 if there is none."""
    position = ongoing_position(slots, ongoing, first_offset)
    end = slots[ONGOING_END]
    if position >= end or ongoing[2 * position] != first_offset or ongoing[2 * position + 1] == DECIDED:
        return 0
    ongoing[2 * position + 1] = DECIDED
    slots[ONGOING_COUNT] -= 1
    head = slots[ONGOING_HEAD]
    while head < end and ongoing[2 * head + 1] == DECIDED:
        head += 1
    slots[ONGOING_HEAD] = head
    if head == end:
        slots[ONGOING_HEAD] = 0
        slots[ONGOING_END] = 0
    return 1


@device
def stable_offset(slots: Any, ongoing: Any, producer_id: int, last_offset: int) -> int:
    """The LSO as if the producer's transaction with its marker at `last_offset` were decided, and no other."""
    position = slots[ONGOING_HEAD]
    end = slots[ONGOING_END]
    while position < end:
        other = ongoing[2 * position + 1]
        if other != DECIDED and other != producer_id:
            return ongoing[2 * position]
        position += 1
    return add64(last_offset, 1)


@device
def first_unstable(slots: Any, ongoing: Any) -> int:
    """First offset of the earliest transaction that is undecided; NONE without one."""
    return ongoing[2 * slots[ONGOING_HEAD]] if slots[ONGOING_HEAD] < slots[ONGOING_END] else NONE
