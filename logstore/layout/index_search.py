"""How Kafka finds an entry in an offset or time index (`AbstractIndex.indexSlotRangeFor`).

A binary search for the last entry whose key is not above the target. Lookups are mostly for recent offsets,
so it first tries the *warm* section, the last 8192 bytes of entries, which stay in the page cache:

    first warm slot = max(0, entries - 1 - 8192 / entry size)
    key[first warm] < target   → search [first warm, entries - 1]
    key[0] > target            → none (slot -1)
    otherwise                  → search [0, first warm]

On a sorted index the warm section changes nothing. On a damaged one it decides which entry is found, and an
equal key ends the search at once, so both are kept here step by step.

>>> keys = np.array([10, 20, 20, 30], dtype=np.int64)
>>> largest_lower_bound_slots(keys, np.array([9, 10, 25, 99], dtype=np.int64), warm_entry_count=1024).tolist()
[-1, 0, 2, 3]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WARM_BYTES = 8192
NO_SLOT = -1


def largest_lower_bound_slots(
    keys: NDArray[np.int64], targets: NDArray[np.int64], warm_entry_count: int
) -> NDArray[np.int64]:
    """Slot of the largest entry ≤ each target, `NO_SLOT` if all are larger.

    Args:
        keys: int64, one per entry, ascending unless the index is damaged.
        targets: int64, any length.
        warm_entry_count: `WARM_BYTES` // entry size.

    Returns:
        int64, one slot per target, as from `AbstractIndex.largestLowerBoundSlotFor`, also for unsorted keys.
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
        high = np.where(open_ & (found == targets), middle, high)
    return np.where(~in_warm & (keys[0] > targets), np.int64(NO_SLOT), low)
