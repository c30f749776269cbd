"""Rows that are alike are handled at once, as many as there are: what is written would be the same without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.kernels import encode, encode_measure, encode_size, scan
from logstore.kernels.encode_fields import SLACK_SIZE

ROW_COUNT = 200
NONE = [np.zeros(0, np.int64)] * 2


class Counted:
    """A function of a kernel, and what its calls returned in all."""

    def __init__(self, function: Callable[..., int]) -> None:
        self._function = function
        self.count = 0

    def __call__(self, *arguments: Any) -> int:
        found = self._function(*arguments)
        self.count += found
        return found


def alike_counts(columns: RecordColumns, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Of rows that are measured and written as one batch."""
    measured, written = Counted(encode_measure.add_alike), Counted(encode.put_alike)
    monkeypatch.setattr(encode_measure, "add_alike", measured)
    monkeypatch.setattr(encode, "put_alike", written)
    values, times = columns.values, columns.timestamps
    assert values is not None
    assert times is not None
    state, matrix = np.zeros(encode_size.STATE_COUNT, np.int64), np.zeros((scan.COLUMN_COUNT, 1), np.int64)
    state[[encode_size.KEY_DATA_SIZE, encode_size.HEADERS_DATA_SIZE]] = -1
    state[[encode_size.KEY_WIDTH, encode_size.VALUE_WIDTH]] = -1
    state[[encode_size.VALUE_DATA_SIZE, encode_size.HAS_TIMESTAMPS]] = values.data.size, 1
    state[encode_size.ROW_COUNT] = columns.count
    batch = (matrix, 1, np.array([columns.count]))
    ranges = [values.starts, values.ends]
    assert encode_measure.measure_batches.interpret(state, *NONE, *ranges, *NONE, times, NONE[0], *batch) == 0
    size = int(matrix[scan.SIZE, 0])
    state[[encode_size.ROW, encode_size.OUT_CAPACITY]] = 0, size
    out, none = np.zeros(size + SLACK_SIZE, np.uint8), [np.zeros(0, np.uint8), *NONE]
    arguments = (state, *none, values.data, *ranges, *none, times, NONE[0], *batch, out)
    assert encode.encode_batches.interpret(*arguments) == 0
    return measured.count, written.count


def columns_of(sizes: list[int], times: list[int]) -> RecordColumns:
    values = BytesColumn.of_values([b"v" * size for size in sizes])
    return RecordColumns(len(sizes), None, values, np.array(times, np.int64))


def test_rows_of_one_size_are_measured_and_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of([9] * ROW_COUNT, [1000 + row % 50 for row in range(ROW_COUNT)])
    # the 16th row is the first that is looked at for it, and the last row ends the batch; the first of one byte and the
    # first of two bytes of offset delta are written as others are
    measured_count, written_count = alike_counts(columns, monkeypatch)
    assert measured_count >= ROW_COUNT - 2 * 16 - 1
    assert written_count == ROW_COUNT - 2


def test_rows_of_many_sizes_are_not_even_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = columns_of([row % 7 for row in range(ROW_COUNT)], [1000] * ROW_COUNT)
    assert alike_counts(columns, monkeypatch) == (0, 0)
