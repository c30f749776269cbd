"""Offset and time index against a slow twin, over batches of any size, offset and timestamp."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.batch_table import BatchTable
from logstore.errors import IndexFullError, InvalidOffsetError, LogstoreError, OffsetOverflowError
from logstore.folds import segment_indexes
from logstore.folds.segment_indexes import SegmentIndexes, step
from logstore.kernels.fold import indexes as kernel
from logstore.kernels.fold.indexes import fold_indexes
from logstore.kernels.scan import batches as scan
from logstore.layout.offset_index import parse_offset_index
from logstore.layout.time_index import parse_time_index
from tests.naive import fold_indexes as naive
from tests.support.kernel_forms import run_both_on
from tests.support.sampling import examples

BASE_OFFSETS = [0, 100, 2**40]
REFUSALS: dict[str, type[LogstoreError]] = {
    "offset overflow": OffsetOverflowError,
    "offset index full": IndexFullError,
    "time index full": IndexFullError,
    "offset not larger": InvalidOffsetError,
    "time offset smaller": InvalidOffsetError,
}

Rows = list[tuple[int, int, int, int]]


def _run_both(*arguments: Any) -> int:
    return run_both_on(fold_indexes, arguments[-1], *arguments[:-1])


@pytest.fixture(autouse=True, scope="module")
def _both_forms() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_indexes.kernel, "fold_indexes", _run_both)
        yield


@st.composite
def segments(draw: st.DrawFn, base_offset: int, *, is_honest: bool = True) -> Rows:
    """Batches as (position, size, last offset, largest timestamp); dishonest ones may go back or far ahead."""
    position, offset, rows = 0, base_offset - 1, []
    steps = [1, 1, 2, 5] if is_honest else [1, 1, 2, 5, 0, -3, 2**31, -(2**33)]
    for _ in range(draw(st.integers(0, 25))):
        size = draw(st.integers(61, 300))
        offset += draw(st.sampled_from(steps))
        rows.append((position, size, offset, draw(st.sampled_from([-1, 0, 5, 5, 6, 7, 1000]) | st.integers(-1, 50))))
        position += size
    return rows


def table_of(rows: Rows) -> BatchTable:
    matrix = np.zeros((scan.COLUMN_COUNT, max(len(rows), 1)), np.int64)
    for row, (position, size, last_offset, timestamp) in enumerate(rows):
        matrix[scan.POSITION, row] = position
        matrix[scan.SIZE, row] = size
        matrix[scan.BASE_OFFSET, row] = last_offset - row % 3
        matrix[scan.LAST_OFFSET_DELTA, row] = row % 3
        matrix[scan.MAX_TIMESTAMP, row] = timestamp
    return BatchTable(matrix, len(rows), scan.END, 0)


def pairs(entries: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(entry) for entry in entries.tolist()]


@given(st.data(), st.sampled_from(BASE_OFFSETS), st.integers(0, 700))
def test_entries_are_those_of_the_twin_however_the_rows_come(
    draw: st.DataObject, base_offset: int, interval: int
) -> None:
    rows = draw.draw(segments(base_offset))
    table, twin = table_of(rows), naive.Indexes(base_offset, interval)
    state = SegmentIndexes(base_offset, index_interval_bytes=interval)
    row = 0
    while row < len(rows):
        end = draw.draw(st.integers(row + 1, len(rows)))
        step(state, table, row, end)
        naive.add_batches(twin, rows[row:end])
        row = end
        assert pairs(state.offset_entries) == twin.offset_entries
        assert pairs(state.time_entries) == twin.time_entries
    state.finish()
    twin.maybe_append_time(is_last=True)
    assert pairs(state.time_entries) == twin.time_entries
    assert parse_offset_index(state.offset_index_bytes(), base_offset=base_offset, path="x").positions.tolist() == [
        position for _, position in twin.offset_entries
    ]
    parsed = parse_time_index(state.time_index_bytes(), base_offset=base_offset, path="x")
    assert list(zip(parsed.timestamps.tolist(), parsed.offsets.tolist(), strict=True)) == twin.time_entries


def test_no_entry_is_written_behind_the_arrays() -> None:
    rows = [(100 * row, 100, row, row) for row in range(9)]
    table, state = table_of(rows), SegmentIndexes(0, index_interval_bytes=0)
    offset_entries, time_entries = np.full((4, 2), -7, np.int64), np.full((4, 2), -7, np.int64)
    state.struct.offset_entries, state.struct.time_entries = offset_entries, time_entries
    state.struct.offset_entry_room, state.struct.time_entry_room = 3, 2
    status = kernel.fold_indexes(table.matrix, table.capacity, 0, len(rows), state.struct)
    assert (status, state.struct.stop_row) == (kernel.NO_ROOM, 3)
    assert pairs(offset_entries) == [(1, 100), (2, 200), (-7, -7), (-7, -7)]
    assert pairs(time_entries) == [(1, 1), (2, 2), (-7, -7), (-7, -7)]


@settings(max_examples=examples(200))
@given(st.data(), st.sampled_from(BASE_OFFSETS), st.integers(0, 300), st.integers(12, 60))
def test_rows_that_the_twin_refuses_are_refused(
    draw: st.DataObject, base_offset: int, interval: int, index_size: int
) -> None:
    rows = draw.draw(segments(base_offset, is_honest=False))
    table = table_of(rows)
    state = SegmentIndexes(base_offset, index_interval_bytes=interval, index_size_max=index_size)
    twin = naive.Indexes(base_offset, interval)
    twin.offset_entries_max, twin.time_entries_max = index_size // 8, index_size // 12
    for row, batch in enumerate(rows):
        try:
            naive.add_batches(twin, [batch])
        except naive.RefusedError as refused:
            with pytest.raises(REFUSALS[refused.args[0]]) as caught:
                step(state, table, row, len(rows))
            assert (caught.value.position, caught.value.offset) == (batch[0], batch[2])
            return
        step(state, table, row, row + 1)
    assert pairs(state.offset_entries) == twin.offset_entries


@given(st.data(), st.sampled_from(BASE_OFFSETS), st.integers(0, 400))
def test_a_reopened_segment_begins_a_new_interval(draw: st.DataObject, base_offset: int, interval: int) -> None:
    rows = draw.draw(segments(base_offset))
    table, cut = table_of(rows), draw.draw(st.integers(0, len(rows)))
    first = SegmentIndexes(base_offset, index_interval_bytes=interval)
    step(first, table, 0, cut)
    first.finish()
    position = rows[cut][0] if cut < len(rows) else sum(size for _, size, _, _ in rows)
    state = SegmentIndexes.resume(
        parse_offset_index(first.offset_index_bytes(), base_offset=base_offset, path="x"),
        parse_time_index(first.time_index_bytes(), base_offset=base_offset, path="x"),
        position,
        index_interval_bytes=interval,
    )
    step(state, table, cut, len(rows))
    twin = naive.Indexes(base_offset, interval, pairs(first.offset_entries), pairs(first.time_entries))
    naive.add_batches(twin, rows[cut:])
    assert pairs(state.offset_entries) == twin.offset_entries
    assert pairs(state.time_entries) == twin.time_entries
    assert (state.largest_timestamp, state.largest_timestamp_offset) == twin.largest_so_far()
