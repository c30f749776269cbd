"""The order of a Java HashMap, as Java 17 has it; trees of crowded buckets are left out."""

from __future__ import annotations

import numpy as np

from logstore.folds.java_hash_map import COMPUTE, PUT, iteration_order
from logstore.kernels.fold import producer_entries as fields

THOUSANDS = [1000 * number for number in range(12)]


def iterated(ids: list[int], way: int) -> list[int]:
    """The ids in the order of the map that they were put into, or made in by `computeIfAbsent`."""
    entries = np.zeros((len(ids), fields.ENTRY_WIDTH), np.int64)
    entries[:, fields.PRODUCER_ID] = ids
    flat, capacity = entries.reshape(-1), 16
    for count, key in enumerate(ids):
        if way == COMPUTE and count > capacity * 3 // 4:
            capacity *= 2
        crowded = fields.MAP_CROWDED_BY_PUT if way == PUT else fields.MAP_CROWDED_BY_COMPUTE
        capacity = fields.map_capacity_with(key, flat, count, capacity, crowded)
        if way == PUT and count + 1 > capacity * 3 // 4:
            capacity *= 2
    order = iteration_order(np.array(ids), capacity, way)
    return [ids[place] for place in order]


def test_a_crowded_bucket_of_a_small_table_makes_it_grow() -> None:
    assert iterated(THOUSANDS, PUT) == [0, 2000, 4000, 6000, 8000, 10000, 1000, 3000, 5000, 7000, 9000, 11000]
    assert iterated(THOUSANDS, COMPUTE) == [10000, 8000, 6000, 4000, 2000, 0, 11000, 9000, 7000, 5000, 3000, 1000]


def test_ids_of_64_bits_are_folded_into_a_bucket() -> None:
    ids = [-5, 7, -(2**63), 2**63 - 1, 2**32, 0]
    assert [ids.index(key) for key in iterated(ids, PUT)] == [2, 3, 5, 4, 0, 1]


def test_an_empty_map_has_no_order() -> None:
    assert iteration_order(np.empty(0, np.int64), 0, PUT).size == 0
