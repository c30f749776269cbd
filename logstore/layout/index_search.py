"""Search for an entry in an offset or time index (`AbstractIndex.indexSlotRangeFor`).

A binary search for the last entry whose key is ≤ the target. Most lookups are for recent offsets, so it first tries the
*warm* section, the last 8192 bytes of entries, which stay in the page cache:

    first warm slot = max(0, entries - 1 - 8192 / entry size)
    key[first warm] < target   → search [first warm, entries - 1]
    key[0] > target            → none (slot -1)
    otherwise                  → search [0, first warm]

In a sorted index the warm section does not change the result. In a damaged one it decides which entry is found, as does
the rule that an equal key ends the search at once; so both are the same here, step by step.

The search for the first entry ≥ a target passes over an equal key that the binary search does not meet.

>>> keys = np.array([10, 20, 20, 30], dtype=np.int64)
>>> largest_lower_bound_slots(keys, np.array([9, 10, 25, 99], dtype=np.int64), warm_entry_count=1024).tolist()
[-1, 0, 2, 3]
>>> [smallest_upper_bound_slot(keys, target, warm_entry_count=1024) for target in (9, 15, 30, 31)]
[0, 1, 3, -1]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WARM_BYTES = 8192
NO_SLOT = -1


def largest_lower_bound_slots(
    keys: NDArray[np.int64], targets: NDArray[np.int64], warm_entry_count: int
) -> NDArray[np.int64]:
    """Return the slot of the largest entry ≤ each target; `NO_SLOT` if all are larger.

    Args:
        keys: int64, one per entry, ascending unless the index is damaged.
        targets: int64, any length.
        warm_entry_count: `WARM_BYTES` // entry size.

    Returns:
        int64, one slot per target, as `AbstractIndex.largestLowerBoundSlotFor` gives it, for unsorted keys too.
    """
    if keys.size == 0:
        return np.full(targets.size, NO_SLOT, dtype=np.int64)
    first_warm = max(0, keys.size - 1 - warm_entry_count)
    in_warm = keys[first_warm] < targets
    low = np.where(in_warm, first_warm, 0)
    high = np.where(in_warm, keys.size - 1, first_warm)
    while (open_ := low < high).any():
        middle = np.where(open_, (low + high + 1) >> 1, low)
        found = keys[middle]
        high = np.where(open_ & (found > targets), middle - 1, high)
        low = np.where(open_ & (found <= targets), middle, low)
        high = np.where(open_ & (found == targets), middle, high)  # an equal key ends the search
    return np.where(~in_warm & (keys[0] > targets), np.int64(NO_SLOT), low)


def largest_lower_bound_slot(keys: NDArray[np.int64], target: int, warm_entry_count: int) -> int:
    """Return what `largest_lower_bound_slots` gives for one target; faster."""
    return _searched(keys, target, warm_entry_count)[0] if keys.size else NO_SLOT


def smallest_upper_bound_slot(keys: NDArray[np.int64], target: int, warm_entry_count: int) -> int:
    """Return the slot of the first entry ≥ the target; `NO_SLOT` if there is none.

    As `AbstractIndex.smallestUpperBoundSlotFor`: an equal key that the search meets is the result, else the slot behind
    the last one that it looked at.

    Args:
        keys, warm_entry_count: see `largest_lower_bound_slots`.
        target: int64.
    """
    if not keys.size:
        return NO_SLOT
    slot, is_met = _searched(keys, target, warm_entry_count)
    if is_met:
        return slot
    return slot + 1 if slot < keys.size - 1 else NO_SLOT


def _searched(keys: NDArray[np.int64], target: int, warm_entry_count: int) -> tuple[int, bool]:
    """Return the slot where the search ends, and whether it met the target (`AbstractIndex.indexSlotRangeFor`)."""
    entries = keys.data  # a memoryview gives Python ints, faster than an array gives its scalars
    low, high = keys.size - 1 - warm_entry_count, keys.size - 1
    if low < 0:
        low = 0
    if not entries[low] < target:
        if entries[0] > target:
            return NO_SLOT, False
        low, high = 0, low
    while low < high:
        middle = (low + high + 1) >> 1
        found = entries[middle]
        if found > target:
            high = middle - 1
        elif found < target:
            low = middle
        else:
            return middle, True
    return low, False


def entry_count_before_zeros(offsets: NDArray[np.int64], base_offset: int) -> int:
    """Return how many entries precede the zeros that end a preallocated index (`DumpLogSegments`).

    A zero entry reads as the base offset, which no entry but the first can have.

    >>> entry_count_before_zeros(np.array([100, 107, 100, 100]), 100)
    2
    """
    zeros = np.flatnonzero(offsets[1:] == base_offset)
    return int(zeros[0]) + 1 if zeros.size else offsets.size
