"""The order in which a Java HashMap with Long keys goes through its entries, which is that of a `.snapshot`.

Buckets come in the order of the hash's low bits; within a bucket entries come as they were put, or the other way
around when they were made by `computeIfAbsent`. The number of buckets depends on what was ever in the map.

>>> ids = np.array([16, 3, 0, 1 << 32])
>>> ids[iteration_order(ids, np.full(4, 16), 16, PUT)].tolist()
[16, 0, 4294967296, 3]
>>> ids[iteration_order(ids, np.full(4, 16), 16, COMPUTE)].tolist()
[0, 16, 4294967296, 3]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]

PUT = 0
COMPUTE = 1
_MASK32 = (1 << 32) - 1


def java_hashes(keys: Int64Array) -> Int64Array:
    """`HashMap.hash(Long)` of each key: 32 bits, unsigned."""
    low = (keys ^ (keys >> 32)) & _MASK32
    return low ^ (low >> 16)


def iteration_order(keys: Int64Array, capacities: Int64Array, capacity: int, way: int) -> Int64Array:
    """Where the map's entries are in `keys`, in the order of its iterator.

    Args:
        keys: distinct, in the order in which they came.
        capacities: buckets of the map once each was in it.
        capacity: buckets of the map now.
        way: PUT or COMPUTE, how the entries came.
    """
    if not keys.size:
        return np.empty(0, np.int64)
    buckets = java_hashes(keys) & (capacity - 1)
    if way == PUT:
        return np.argsort(buckets, kind="stable")
    return keys.size - 1 - np.argsort(buckets[::-1], kind="stable")
