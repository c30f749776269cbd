"""Columns out: records that are decoded, as Arrow, and the kernels behind it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bench_encode import BATCH_SIZE, COUNT, columns_of
from benchmarks.floors import copying, reading
from benchmarks.measured import Measured
from logstore.columns.arrow_batches import record_batch
from logstore.columns.record_building import BuiltBatches, build_batches
from logstore.columns.record_table import RecordTable
from logstore.columns.record_windows import RecordWindow, record_windows
from logstore.kernels.gather import (
    FOUND_COUNT,
    SLACK_SIZE,
    VIEW_SIZE,
    gather_fields,
    write_record_views,
)


def built(value_size: int) -> BuiltBatches:
    return build_batches(columns_of(value_size, has_keys=True), batch_size=BATCH_SIZE)


def tables(batches: BuiltBatches) -> list[RecordTable]:
    windows = record_windows(batches.data, batches.table, np.arange(len(batches.table)))
    return [window.records for window in windows if isinstance(window, RecordWindow)]


@pytest.mark.parametrize("value_size", [8, 100])
def test_gather_fields(measured: Measured, value_size: int) -> None:
    records = tables(built(value_size))[0]
    count, size = len(records), int(records.value_size.sum())
    out, ends = np.zeros(size + SLACK_SIZE, np.uint8), np.zeros(count, np.int64)
    positions, sizes = records.value_position.copy(), records.value_size.copy()
    arguments = (records.data, records.data.size, positions, sizes, count, out, size, ends)
    copied = measured(gather_fields, *arguments, size=size, count=count, floor=copying(size))
    assert (copied, ends[-1]) == (count, size)
    assert out[:value_size].tobytes() == records.value(0)


@pytest.mark.parametrize("value_size", [8, 100])
def test_write_record_views(measured: Measured, value_size: int) -> None:
    records = tables(built(value_size))[0]
    count, capacity = len(records), records.matrix.shape[1]
    offsets, timestamps = np.zeros((2, count), np.int64)
    keys, values = np.zeros((2, count * VIEW_SIZE), np.uint8)
    out = (offsets, timestamps, keys, values, np.zeros(FOUND_COUNT, np.int64))
    size = sum(array.nbytes for array in out)
    arguments = (records.data, records.data.size, records.matrix, capacity, count, *out)
    assert measured(write_record_views, *arguments, count=count, floor=copying(size)) == count
    assert offsets.tolist() == list(range(count))


@pytest.mark.parametrize("value_size", [8, 100])
@pytest.mark.parametrize("is_view", [False, True], ids=["binary", "views"])
def test_record_batches(measured: Measured, value_size: int, is_view: bool) -> None:
    pytest.importorskip("pyarrow")
    records = tables(built(value_size))
    batches = measured(
        lambda: [record_batch(each, is_view=is_view) for each in records],
        title=f"{COUNT:,} records of {value_size} bytes to Arrow, {'views' if is_view else 'copies'}",
        count=COUNT,
        size=COUNT * value_size,
        floor=copying(COUNT * value_size),
        hashed=lambda batches: [batch.num_rows for batch in batches],
    )
    assert sum(batch.num_rows for batch in batches) == COUNT


def test_decode_to_columns(measured: Measured) -> None:
    batches = built(8)
    size, matrices = batches.data.size, lambda found: [each.matrix for each in found]
    found = measured(tables, batches, size=size, count=COUNT, floor=reading(batches.data), hashed=matrices)
    assert sum(map(len, found)) == COUNT
