"""Memory of windows is used again when nobody has a view of it, and never before."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from logstore.columns import window_memory as module
from logstore.columns.record_table import RecordTable
from logstore.columns.window_memory import SPARE_COUNT_MAX, STREAMS_SIZE_MAX, new_matrix, new_stream_buffer
from logstore.kernels.codec.copying import SLACK_SIZE
from logstore.kernels.decode.records import COLUMN_COUNT

VIEWS: dict[str, Callable[[Any], Any]] = {
    "a part": lambda buffer: buffer[3:9],
    "another type": lambda buffer: buffer[:80].view(np.int64).reshape(2, 5),
    "a part of a part": lambda buffer: buffer[1:100][::3][2:],
    "a memoryview": lambda buffer: buffer.data[5:],
    "a buffer of Arrow's": pa.py_buffer,
    "a part of a buffer of Arrow's": lambda buffer: pa.py_buffer(buffer).slice(10, 100),
    "a table": lambda buffer: RecordTable(buffer[:10], np.empty((1, 1), np.int64), 1),
    "another array over it": lambda buffer: np.asarray(memoryview(buffer)[7:]),
    "a cycle": lambda buffer: _cycle(buffer[1:]),
}


def _cycle(array: Any) -> list[Any]:
    cycle = [array]
    cycle.append(cycle)
    return cycle


@pytest.fixture(autouse=True)
def nothing_spare() -> Iterator[None]:
    gc.collect()
    module._spare.cache_clear()
    yield
    module._spare.cache_clear()


@pytest.mark.parametrize("view_of", VIEWS.values(), ids=VIEWS.keys())
def test_memory_is_used_again_when_the_last_view_is_gone(view_of: Callable[[Any], Any]) -> None:
    buffer = new_stream_buffer()
    address = buffer.ctypes.data
    view = view_of(buffer)
    del buffer
    gc.collect()
    other = new_stream_buffer()
    assert other.ctypes.data != address
    other[:] = 1
    del view
    gc.collect()
    assert new_stream_buffer().ctypes.data == address


def test_a_matrix_is_used_again_for_another_of_its_size() -> None:
    matrix = new_matrix(10)
    assert matrix.shape == (COLUMN_COUNT, 10)
    column, address = matrix[3, 2:5], matrix.ctypes.data
    del matrix
    assert new_matrix(10).ctypes.data != address
    del column
    assert new_matrix(11).ctypes.data != address
    assert address in {each.ctypes.data for each in [new_matrix(10), new_matrix(10)]}


def test_of_what_becomes_spare_no_more_is_kept_than_a_read_needs() -> None:
    buffers = [new_stream_buffer() for _ in range(SPARE_COUNT_MAX + 3)]
    assert len({buffer.ctypes.data for buffer in buffers}) == SPARE_COUNT_MAX + 3
    del buffers
    assert len(module._spare(STREAMS_SIZE_MAX + SLACK_SIZE)) == SPARE_COUNT_MAX


def test_two_threads_never_get_the_same_memory() -> None:
    def work(mark: int) -> None:
        for _ in range(300):
            buffer = new_stream_buffer()
            buffer[:1000] = mark
            found.append(bool((buffer[:1000] == mark).all()))

    found: list[bool] = []
    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 1200
