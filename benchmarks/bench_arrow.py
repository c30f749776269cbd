"""Columns out: records that are decoded, as Arrow, and the kernels behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.bench_encode import BATCH_SIZE, COUNT, columns_of
from benchmarks.floors import Bytes, copying, reading
from benchmarks.measured import Measured
from logstore.columns.arrow_batches import record_batch
from logstore.columns.record_building import BuiltBatches, build_batches
from logstore.columns.record_table import RecordTable
from logstore.columns.record_windows import RecordWindow, record_windows
from logstore.kernels.table.gather import FOUND_COUNT, SLACK_SIZE, VIEW_SIZE, gather_fields, write_record_views


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
    floor, gathered = copying(size), lambda copied: (copied, out[:size], ends)
    copied = measured(gather_fields, *arguments, size=size, count=count, floor=floor, hashed=gathered)
    assert (copied, ends[-1]) == (count, size)
    assert out[:value_size].tobytes() == records.value(0)


@pytest.mark.parametrize("value_size", [8, 100])
def test_write_record_views(measured: Measured, value_size: int) -> None:
    records = tables(built(value_size))[0]
    count, capacity = len(records), records.matrix.shape[1]
    offsets, timestamps = np.zeros((2, count), np.int64)
    keys, values = np.zeros((2, count * VIEW_SIZE), np.uint8)
    out = (offsets, timestamps, keys, values, np.zeros(FOUND_COUNT, np.int64))
    floor = copying(sum(array.nbytes for array in out))
    arguments = (records.data, records.data.size, records.matrix, capacity, count, *out)
    assert measured(write_record_views, *arguments, count=count, floor=floor, hashed=lambda count: out) == count
    assert offsets.tolist() == list(range(count))


@pytest.mark.parametrize("value_size", [8, 100])
@pytest.mark.parametrize("is_view", [False, True], ids=["binary", "views"])
def test_record_batches(measured: Measured, value_size: int, is_view: bool) -> None:
    pytest.importorskip("pyarrow")
    records = tables(built(value_size))

    def batches() -> list[Any]:
        return [record_batch(each, is_view=is_view) for each in records]

    found = measured(
        batches,
        title=f"{COUNT:,} decoded records of {value_size} bytes to Arrow, values {'as views' if is_view else 'copied'}",
        count=COUNT,
        size=COUNT * value_size,
        floor=copying(made_size(batches(), [each.data for each in records])),
        hashed=contents,
    )
    assert sum(batch.num_rows for batch in found) == COUNT


@pytest.mark.parametrize("is_view", [False, True], ids=["binary", "views"])
def test_bytes_to_record_batches(measured: Measured, is_view: bool) -> None:
    """From the bytes of batches, as a reader has them: decoded too, which the rows above leave out."""
    pytest.importorskip("pyarrow")
    content, how = built(100), "as views" if is_view else "copied"

    def batches() -> list[Any]:
        return [record_batch(each, is_view=is_view) for each in tables(content)]

    found = measured(
        batches,
        title=f"bytes of {COUNT:,} records of 100 bytes decoded and to Arrow, values {how}",
        count=COUNT,
        size=content.data.size,
        floor=copying(made_size(batches(), [content.data])),
        hashed=contents,
    )
    assert sum(batch.num_rows for batch in found) == COUNT


def made_size(batches: list[Any], datas: list[Bytes]) -> int:
    """Bytes of Arrow's buffers that are not the bytes of the batches themselves: what has to be copied."""
    lent = {data.ctypes.data for data in datas}
    buffers = [buffer for batch in batches for column in batch.columns for buffer in column.buffers() if buffer]
    return sum(buffer.size for buffer in buffers if buffer.address not in lent)


def contents(batches: list[Any]) -> list[Any]:
    """Offsets, timestamps and values of all rows, the same however values are held."""
    import pyarrow as pa

    found: list[Any] = []
    for batch in batches:
        _, ends, content = batch["value"].cast(pa.binary()).buffers()
        ends = np.frombuffer(ends, np.int32)[: batch.num_rows + 1]
        values = np.frombuffer(content, np.uint8)[: ends[-1]]
        found.append((batch["offset"].to_numpy(), batch["timestamp"].cast(pa.int64()).to_numpy(), ends, values))
    return found


def test_decode_to_columns(measured: Measured) -> None:
    batches = built(8)
    size, matrices = batches.data.size, lambda found: [each.matrix[:, : len(each)] for each in found]
    found = measured(tables, batches, size=size, count=COUNT, floor=reading(batches.data), hashed=matrices)
    assert sum(map(len, found)) == COUNT
