"""Iteration order of a Java HashMap with Long keys, which is the order of entries in a `.snapshot`.

Buckets come in the order of the hash's low bits; within a bucket entries come in insertion order, or in reverse if
`computeIfAbsent` made them. The number of buckets depends on the most entries there ever were.

A HashMap of 64 buckets or more turns a bucket of nine entries into a tree, whose order is another one. That is left
out: consecutive ids, of which a coordinator has blocks of 1000, spread over the buckets, and no reader depends on the
order (`ProducerStateManager.readSnapshot` puts the entries into a map).

>>> ids = np.array([16, 3, 0, 1 << 32])
>>> ids[iteration_order(ids, 16, PUT)].tolist()
[16, 0, 4294967296, 3]
>>> ids[iteration_order(ids, 16, COMPUTE)].tolist()
[0, 16, 4294967296, 3]
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..columns.batch_table import Int64Array
from ..kernels.fold import producer_entries as producers

PUT = 0
COMPUTE = 1


def iteration_order(keys: Int64Array, capacity: int, way: int) -> Int64Array:
    """Return the indices of `keys` in the order of the map's iterator.

    Args:
        keys: distinct, in insertion order.
        capacity: present bucket count.
        way: PUT or COMPUTE, how the entries were inserted.
    """
    if keys.size <= 1:  # the usual case of an append
        return np.zeros(keys.size, np.int64)
    buckets = cast("Int64Array", producers.java_hash(cast("Any", keys))) & (capacity - 1)  # the hash takes arrays too
    if way == PUT:
        return np.argsort(buckets, kind="stable")
    return keys.size - 1 - np.argsort(buckets[::-1], kind="stable")
