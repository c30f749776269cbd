"""The order of a Java HashMap, as Java 17 has it, crowded buckets included."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.folds.java_hash_map import COMPUTE, PUT, iteration_order
from logstore.kernels.fold import producer_entries as fields

CROWD = [4096 * (number * 7 % 30) for number in range(30)]  # in two buckets of 64
SPREAD = list(range(1, 40))  # that make the table grow behind them
THOUSANDS = [1000 * number for number in range(12)]


def iterated(ids: list[int], way: int) -> list[int]:
    """The ids in the order of the map that they were put into, or made in by `computeIfAbsent`."""
    entries = np.zeros((len(ids), fields.ENTRY_WIDTH), np.int64)
    entries[:, fields.PRODUCER_ID] = ids
    flat, capacity, capacities = entries.reshape(-1), 16, []
    for count, key in enumerate(ids):
        if way == COMPUTE and count > capacity * 3 // 4:
            capacity *= 2
        crowded = fields.MAP_CROWDED_BY_PUT if way == PUT else fields.MAP_CROWDED_BY_COMPUTE
        capacity = fields.map_capacity_with(key, flat, count, capacity, crowded)
        if way == PUT and count + 1 > capacity * 3 // 4:
            capacity *= 2
        capacities.append(capacity)
    order = iteration_order(np.array(ids), np.array(capacities), capacity, way)
    return [ids[place] for place in order]


PUT_CROWD = """
    28672 0 57344 53248 20480 16384 24576 49152 12288 40960 45056 4096 8192 32768 36864 61440
    86016 114688 110592 77824 106496 69632 65536 73728 98304 102400 90112 94208 118784 81920
"""
COMPUTED_CROWD = """
    32768 4096 8192 40960 36864 45056 12288 49152 20480 16384 57344 53248 61440 28672 24576 0
    98304 118784 90112 94208 69632 65536 73728 106496 102400 110592 77824 114688 86016 81920
"""


@pytest.mark.parametrize("behind", [[], SPREAD])
@pytest.mark.parametrize(("way", "expected"), [(PUT, PUT_CROWD), (COMPUTE, COMPUTED_CROWD)])
def test_a_crowded_bucket_is_a_tree_with_its_root_in_front(way: int, expected: str, behind: list[int]) -> None:
    found = [key for key in iterated(CROWD + behind, way) if key not in behind]
    assert found == list(map(int, expected.split()))


def test_a_crowded_bucket_of_a_small_table_makes_it_grow() -> None:
    assert iterated(THOUSANDS, PUT) == [0, 2000, 4000, 6000, 8000, 10000, 1000, 3000, 5000, 7000, 9000, 11000]
    assert iterated(THOUSANDS, COMPUTE) == [10000, 8000, 6000, 4000, 2000, 0, 11000, 9000, 7000, 5000, 3000, 1000]


def test_ids_of_64_bits_are_folded_into_a_bucket() -> None:
    ids = [-5, 7, -(2**63), 2**63 - 1, 2**32, 0]
    assert [ids.index(key) for key in iterated(ids, PUT)] == [2, 3, 5, 4, 0, 1]


def test_an_empty_map_has_no_order() -> None:
    assert iteration_order(np.empty(0, np.int64), np.empty(0, np.int64), 0, PUT).size == 0
