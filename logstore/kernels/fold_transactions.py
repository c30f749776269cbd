"""Open transactions as sorted arrays: what `ProducerStateManager` keeps in its two tree maps.

`ongoing` holds pairs (first offset, producer id) by ascending first offset, in [ONGOING_HEAD, ONGOING_END). A decided
one keeps its place, without its producer, until it is at the head: nothing is moved for the usual transaction, and the
first offset of all that are open is always at the head.

`unreplicated` holds pairs (first offset, last offset) of decided transactions whose marker is not below the high
watermark. Only the smallest first offset of those that remain is ever asked for, so one that began later and ends no
later than another is left out: both columns ascend, and what a rising high watermark drops is a head.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from .primitives import add64

ONGOING_HEAD = 0
ONGOING_END = 1
ONGOING_COUNT = 2  # of those that are open
ONGOING_CAPACITY = 3
UNREPLICATED_HEAD = 4
UNREPLICATED_END = 5
UNREPLICATED_CAPACITY = 6
SLOT_COUNT = 7

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
def put_unreplicated(slots: Any, unreplicated: Any, first_offset: int, last_offset: int) -> int:
    """Add a decided transaction; there is room for one pair more."""
    head = slots[UNREPLICATED_HEAD]
    end = slots[UNREPLICATED_END]
    place = end
    while place > head and unreplicated[2 * place - 2] >= first_offset:
        place -= 1
    if place > head and unreplicated[2 * place - 1] >= last_offset:
        return 0
    kept = place
    while kept < end and unreplicated[2 * kept + 1] <= last_offset:
        kept += 1
    kept_count = end - kept
    if kept == place:
        move = end
        while move > place:
            unreplicated[2 * move] = unreplicated[2 * move - 2]
            unreplicated[2 * move + 1] = unreplicated[2 * move - 1]
            move -= 1
    else:
        for step in range(kept_count):
            unreplicated[2 * (place + 1 + step)] = unreplicated[2 * (kept + step)]
            unreplicated[2 * (place + 1 + step) + 1] = unreplicated[2 * (kept + step) + 1]
    unreplicated[2 * place] = first_offset
    unreplicated[2 * place + 1] = last_offset
    slots[UNREPLICATED_END] = place + 1 + kept_count
    return 1


@device
def first_unstable(slots: Any, ongoing: Any, unreplicated: Any) -> int:
    """First offset of the earliest transaction that is undecided or unreplicated; NONE without one."""
    first = ongoing[2 * slots[ONGOING_HEAD]] if slots[ONGOING_HEAD] < slots[ONGOING_END] else NONE
    if slots[UNREPLICATED_HEAD] >= slots[UNREPLICATED_END]:
        return first
    decided = unreplicated[2 * slots[UNREPLICATED_HEAD]]
    return decided if first == NONE or decided < first else first
