"""Indexes of a segment that grows: a view of their entries costs the same, however many there are."""

from __future__ import annotations

import numpy as np

from logstore.folds import segment_indexes
from logstore.folds.segment_indexes import SegmentIndexes
from tests.properties.fold_stories import scanned
from tests.support.encoder import SOME_TIME, Batch, Rec


def step(state: SegmentIndexes, count: int) -> None:
    first = len(state.offset_entries)
    times = [SOME_TIME + first + number for number in range(count + 1)]
    batches = [
        Batch(first + number, [Rec(value=b"v" * 200)], base_timestamp=time, max_timestamp=time)
        for number, time in enumerate(times)
    ]
    _, table = scanned(batches)
    segment_indexes.step(state, table, 1, len(table))
    state.struct.indexed_position = 0


def test_a_view_of_the_entries_copies_nothing_and_stays_as_it_was() -> None:
    state = SegmentIndexes(0, index_interval_bytes=1)
    step(state, 3)
    offsets, times = state.to_offset_index("x.index"), state.to_time_index("x.timeindex")
    assert np.shares_memory(offsets.offsets, state.struct.offset_entries)
    assert np.shares_memory(times.timestamps, state.struct.time_entries)
    before = [column.tolist() for column in (offsets.offsets, offsets.positions, times.timestamps, times.offsets)]
    state.reserve(1)  # in place where there is room
    step(state, 2)
    state.reserve(10_000)  # in larger arrays
    step(state, 2)
    assert len(state.offset_entries) == 7
    assert [
        column.tolist() for column in (offsets.offsets, offsets.positions, times.timestamps, times.offsets)
    ] == before
    assert offsets.lookup(2) == (2, before[1][1])
    assert offsets.lookup_positions(np.array([0, 3, 99])).tolist() == [0, before[1][2], before[1][2]]
    assert times.lookup(SOME_TIME + 2) == (SOME_TIME + 2, 2)
