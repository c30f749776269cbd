"""Iteration order of a Java HashMap with Long keys, which is the order of entries in a `.snapshot`.

Buckets come in the order of the hash's low bits; within a bucket entries come in insertion order, or in reverse if
`computeIfAbsent` made them. The number of buckets depends on the most entries there ever were. A bucket that was once
crowded while the table was large is a tree, see `java_tree_bin`; ids that are multiples of a power of two make such
buckets. Entries that were removed from a tree are unknown here; they would matter only there.

>>> ids = np.array([16, 3, 0, 1 << 32])
>>> ids[iteration_order(ids, np.full(4, 16), 16, PUT)].tolist()
[16, 0, 4294967296, 3]
>>> ids[iteration_order(ids, np.full(4, 16), 16, COMPUTE)].tolist()
[0, 16, 4294967296, 3]
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..columns.batch_table import Int64Array
from ..kernels.fold import producer_entries as producers
from .java_tree_bin import UNTREEIFY_COUNT, TreeBin

Entry = tuple[int, int, int]  # index in `keys`, signed hash, key

PUT = 0
COMPUTE = 1
# The number of entries in a bucket with which the next one makes it a tree.
_CROWDED_COUNT = {PUT: producers.MAP_CROWDED_BY_PUT, COMPUTE: producers.MAP_CROWDED_BY_COMPUTE}
_TREE_CAPACITY_MIN = producers.MAP_TREE_CAPACITY_MIN


def iteration_order(keys: Int64Array, capacities: Int64Array, capacity: int, way: int) -> Int64Array:
    """Return the indices of `keys` in the order of the map's iterator.

    Args:
        keys: distinct, in insertion order.
        capacities: bucket count of the map after each insertion, ascending.
        capacity: present bucket count.
        way: PUT or COMPUTE, how the entries were inserted.
    """
    if keys.size <= 1:  # the usual case of an append
        return np.zeros(keys.size, np.int64)
    hashes = cast("Int64Array", producers.java_hash(cast("Any", keys)))  # of arrays too
    buckets = hashes & (capacity - 1)
    if way == PUT:
        order = np.argsort(buckets, kind="stable")
    else:
        order = keys.size - 1 - np.argsort(buckets[::-1], kind="stable")
    tables = np.concatenate([[producers.MAP_CAPACITY_MIN], capacities[:-1]])  # bucket counts before each insertion
    if way == COMPUTE:
        tables = np.where(np.arange(keys.size) > tables * 3 // 4, 2 * tables, tables)
    for residue in _crowded_residues(hashes, capacities, way):
        members = np.flatnonzero(hashes % _TREE_CAPACITY_MIN == residue)
        places = np.flatnonzero(hashes[order] % _TREE_CAPACITY_MIN == residue)
        history = _order_with_trees(keys[members], hashes[members], tables[members], capacity, way)
        order[places] = members[history]
    return order


def _crowded_residues(hashes: Int64Array, capacities: Int64Array, way: int) -> list[int]:
    """Return the hashes modulo 64 of buckets that were ever a tree; splits keep the residue."""
    residues: set[int] = set()
    for capacity in np.unique(capacities[capacities >= _TREE_CAPACITY_MIN]).tolist():
        # of the entries inserted before the table grew further, and the one that made it grow
        count = int(np.searchsorted(capacities, capacity, side="right")) + 1
        counts = np.bincount(hashes[:count] & (capacity - 1))
        crowded = np.flatnonzero(counts > _CROWDED_COUNT[way])
        residues.update((crowded % _TREE_CAPACITY_MIN).tolist())
    return sorted(residues)


def _order_with_trees(keys: Int64Array, hashes: Int64Array, tables: Int64Array, capacity: int, way: int) -> list[int]:
    """Return the order of entries of one residue by simulating Java's buckets.

    `tables` holds the bucket count at each insertion; below 64 there are no trees.
    """
    buckets: dict[int, list[Entry] | TreeBin] = {}
    size = _TREE_CAPACITY_MIN
    signed = ((hashes + (1 << 31)) % (1 << 32) - (1 << 31)).tolist()
    for number, (key, java_hash, table) in enumerate(zip(keys.tolist(), signed, tables.tolist(), strict=True)):
        size = _grown(buckets, size, table)
        bucket = buckets.setdefault(java_hash & (size - 1), [])
        if isinstance(bucket, TreeBin):
            bucket.put(number, java_hash, key)
            continue
        count = len(bucket)
        bucket.insert(count if way == PUT else 0, (number, java_hash, key))
        if table >= _TREE_CAPACITY_MIN and count >= _CROWDED_COUNT[way]:
            buckets[java_hash & (size - 1)] = TreeBin(bucket)
    _grown(buckets, size, capacity)
    return [number for bucket in sorted(buckets) for number, _, _ in buckets[bucket]]


def _grown(buckets: dict[int, list[Entry] | TreeBin], size: int, capacity: int) -> int:
    """Double the table until it has `capacity` buckets; return the bucket count (`HashMap.resize`)."""
    while size < capacity:
        for bucket, content in list(buckets.items()):
            entries = list(content)
            low = [entry for entry in entries if not entry[1] & size]
            high = [entry for entry in entries if entry[1] & size]
            del buckets[bucket]
            for place, part, other in ((bucket, low, high), (bucket + size, high, low)):
                if part:
                    is_tree = isinstance(content, TreeBin) and len(part) > UNTREEIFY_COUNT
                    buckets[place] = (TreeBin(part) if other else content) if is_tree else part
        size *= 2
    return size
