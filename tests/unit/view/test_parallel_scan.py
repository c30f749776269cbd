"""A file scanned ahead on two threads is the same file."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from logstore.columns import batch_table
from logstore.columns.batch_table import scan
from logstore.kernels.scan import batches as fields
from logstore.view import parallel_scan
from logstore.view.parallel_scan import processor_count, processors, scan_windows
from tests.support.encoder import Batch, Rec

FILE = b"".join(Batch(index, [Rec(b"k", b"v" * (index % 50))]).to_bytes() for index in range(200))
DAMAGED = bytearray(FILE)
DAMAGED[len(FILE) // 2] ^= 1


@pytest.fixture(params=["one thread", "two threads"])
def _threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_table, "WINDOW_SIZE", 1000)
    monkeypatch.setattr(parallel_scan, "RELEASED_WINDOW_SIZE", 2000)
    if request.param == "two threads":
        monkeypatch.setattr(parallel_scan, "PARALLEL_SIZE_MIN", 0)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("content", [FILE, bytes(DAMAGED), FILE + b"\x00" * 50, FILE[:-1], b""])
def test_windows_come_in_order_with_their_checksums(content: bytes) -> None:
    data = np.frombuffer(content, np.uint8)
    tables = list(scan_windows(data, 0, data.size))
    whole = scan(data, check_crc=True)
    matrix = np.concatenate([table.matrix[:, : table.count] for table in tables], axis=1)
    assert np.array_equal(matrix, whole.matrix)
    assert [table.status == fields.MORE for table in tables] == [True] * (len(tables) - 1) + [False]
    last = tables[-1]
    assert (last.status, last.next_position, last.bad_length) == (whole.status, whole.next_position, whole.bad_length)


@pytest.mark.usefixtures("_threads")
def test_a_window_starts_where_the_one_before_ended() -> None:
    data = np.frombuffer(FILE, np.uint8)
    position = int(scan(data).position[3])
    for table in scan_windows(data, position, data.size):
        assert table.position[0] == position
        position = table.next_position
    assert position == data.size


@pytest.mark.usefixtures("_threads")
def test_every_window_is_released_once() -> None:
    data, released = np.frombuffer(FILE, np.uint8), []
    tables = list(scan_windows(data, 0, data.size, release=lambda start, end: released.append((start, end))))
    assert sorted(released) == [(table.position[0], table.next_position) for table in tables]
    assert sum(end - start for start, end in released) == data.size


@pytest.mark.usefixtures("_threads")
def test_windows_that_are_released_are_larger_and_have_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.frombuffer(FILE, np.uint8)
    sizes = [int(table.size.sum()) for table in scan_windows(data, 0, data.size, release=lambda start, end: None)]
    assert 2000 <= max(sizes) < 2000 + 200
    assert max(int(table.size.sum()) for table in scan_windows(data, 0, data.size)) < 1000 + 200
    monkeypatch.setattr(parallel_scan, "RELEASED_ROW_COUNT", 7)
    tables = scan_windows(data, 0, data.size, release=lambda start, end: None)
    assert max(map(len, tables)) == 7


def test_a_short_range_gives_both_threads_some_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_scan, "WINDOW_SIZE_MIN", 100)
    data = np.frombuffer(FILE, np.uint8)
    assert len(list(scan_windows(data, 0, data.size))) == parallel_scan.WINDOW_COUNT_MIN


def test_error_of_a_thread_reaches_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise MemoryError("no room for a table")

    monkeypatch.setattr(parallel_scan, "PARALLEL_SIZE_MIN", 0)
    monkeypatch.setattr(batch_table, "scan_chunk", fail)
    with pytest.raises(MemoryError, match="no room for a table"):
        list(scan_windows(np.frombuffer(FILE, np.uint8), 0, len(FILE)))


@pytest.mark.parametrize(("limit", "count"), [("1", 1), ("2", 2), ("64", 3), ("0", 1), ("", 3), ("4,2", 3), ("all", 3)])
def test_a_limit_of_threads_bounds_the_processors(limit: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(parallel_scan, "processor_quota", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert processor_count() == count


def test_a_thread_uses_the_processors_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(parallel_scan, "processor_quota", lambda: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    others = list[int]()
    with processors(2):
        with processors(1):
            other = threading.Thread(target=lambda: others.append(processor_count()))
            other.start()
            other.join()
            assert processor_count() == 1
        assert processor_count() == 2
    assert [processor_count(), *others] == [3, 3]
