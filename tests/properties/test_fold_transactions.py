"""Open transactions in any order, also one that no sane log has, against plain dictionaries."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logstore.folds.open_transactions import OpenTransactions
from logstore.kernels.fold import transactions as kernel
from logstore.kernels.fold.producer_struct import ProducerStruct
from logstore.native.structs import interpreted_struct
from tests.naive import fold_producers as naive

FAR = 10**6

offsets = st.integers(0, 30)


@given(st.lists(st.tuples(st.sampled_from(["put", "put", "remove"]), offsets, st.integers(0, 3)), max_size=60))
def test_undecided_transactions_are_kept_in_order(operations: list[tuple[str, int, int]]) -> None:
    state, twin = OpenTransactions(ProducerStruct()), naive.State()
    for operation, first_offset, producer_id in operations:
        state.reserve(1)
        struct = interpreted_struct(state.struct)
        if operation == "put":
            kernel.put_ongoing(struct, first_offset, producer_id)
            twin.ongoing[first_offset] = producer_id
        else:
            found = kernel.remove_ongoing(struct, first_offset)
            assert bool(found) == (twin.ongoing.pop(first_offset, None) is not None)
        assert state.ongoing_entries().tolist() == [list(pair) for pair in sorted(twin.ongoing.items())]
        assert state.ongoing_count == len(twin.ongoing)
        assert state.first_unstable_offset == min(twin.ongoing, default=None)
        others = [offset for offset, pid in twin.ongoing.items() if pid != producer_id]
        assert kernel.stable_offset(struct, producer_id, 99) == min(others, default=100)


@given(st.lists(st.tuples(offsets, st.integers(0, 9)), max_size=40))
def test_the_open_transactions_of_a_snapshot_are_all_there_are(pairs: list[tuple[int, int]]) -> None:
    state = OpenTransactions(ProducerStruct())
    state.reserve(1)
    kernel.put_ongoing(interpreted_struct(state.struct), 5, 5)
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    state.load(columns[:, 0], columns[:, 1])
    assert state.ongoing_entries().tolist() == [list(pair) for pair in sorted(dict(pairs).items())]
    assert state.last_stable_offset(FAR, 7) == min([FAR, *(max(offset, 7) for offset, _ in pairs)])
    assert state.last_stable_offset(3, 0) == min([3, *(offset for offset, _ in pairs)])
