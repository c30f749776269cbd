"""The searches in an index beside each other, and beside a look at every entry where the keys ascend."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logstore.layout.index_search import (
    NO_SLOT,
    largest_lower_bound_slot,
    largest_lower_bound_slots,
    smallest_upper_bound_slot,
)

numbers = st.integers(-3, 30) | st.sampled_from([2**63 - 1, -(2**63)])
keys_of_any_order = st.lists(numbers, max_size=30).map(lambda keys: np.array(keys, np.int64))
warm_counts = st.integers(1, 12)


@given(keys_of_any_order, numbers, warm_counts)
def test_one_target_is_found_where_many_are(keys: np.ndarray, target: int, warm_count: int) -> None:
    expected = largest_lower_bound_slots(keys, np.array([target]), warm_count).tolist()
    assert [largest_lower_bound_slot(keys, target, warm_count)] == expected


@given(st.lists(numbers, unique=True, max_size=30).map(sorted), numbers, warm_counts)
def test_bounds_among_ascending_keys_are_the_nearest_slots(keys: list[int], target: int, warm_count: int) -> None:
    array = np.array(keys, np.int64)
    above = [slot for slot, key in enumerate(keys) if key >= target]
    below = [slot for slot, key in enumerate(keys) if key <= target]
    # an equal key at the lowest slot of a search is not met: the entry behind it is given
    upper = smallest_upper_bound_slot(array, target, warm_count)
    assert upper == (above[0] if above else NO_SLOT) or (
        above and keys[above[0]] == target and upper in (*above[1:2], -1)
    )
    assert largest_lower_bound_slot(array, target, warm_count) == (below[-1] if below else NO_SLOT)
