"""Batch tables of a file, window by window, and work on a sequence by several threads, with results in order.

The scan of headers is sequential, as each leads to the next, so only the reader scans; any thread checks checksums or
decodes records. Both are kernels, which release the GIL, and the threads share the page faults of the mapping.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from ..columns import batch_table
from ..columns.batch_table import BatchTable, ByteArray, compute_is_valid, headers
from ..disk.processor_quota import processor_quota
from ..threads import Waiting, WorkItem, end_threads, start_threads

T = TypeVar("T")
R = TypeVar("R")

_VARIABLE = "OMP_NUM_THREADS"  # of many libraries, not of OpenMP alone
_given: ContextVar[int | None] = ContextVar("processors", default=None)
HELPER_COUNT_MAX = 2
AHEAD_COUNT = 2  # items in work or ready, beside one for each helper: more would not fit into a cache
PARALLEL_SIZE_MIN = 4 * 1024 * 1024  # bytes; below, threads cost more than they save
WINDOW_SIZE_MIN = 1024 * 1024  # bytes; windows of a short range are smaller, so that each thread gets some
WINDOW_COUNT_MIN = 8
# Released windows are larger: no later kernel reads their bytes again from the cache, and Python runs less often.
RELEASED_WINDOW_SIZE, RELEASED_ROW_COUNT = 32 * 1024 * 1024, 16_384


def scan_windows(
    data: ByteArray,
    position: int,
    end: int,
    *,
    load: Callable[[int, int], None] | None = None,
    release: Callable[[int, int], None] | None = None,
) -> Generator[BatchTable]:
    """Scan from `position` with checksums until the scan ends; the status of the last table says why.

    Args:
        data: uint8, 1-D, contiguous, may be read-only: the whole file.
        position: byte where a batch starts.
        end: byte that no batch may reach past, at most len(data).
        load: called with each range before it is read, in order, as `LoadedFile.load`.
        release: called with the range of a window that was read, as `MappedFile.release`, by the thread that checked
            it; for a reader that needs little but the tables. Windows are larger then.
    """

    def check(table: BatchTable) -> BatchTable:
        compute_is_valid(data, table)
        if release is not None and len(table):
            release(int(table.position[0]), table.next_position)
        return table

    window_size = max((end - position) // WINDOW_COUNT_MIN, WINDOW_SIZE_MIN)
    if release is None:
        tables = headers(data, position, end, window_size=min(window_size, batch_table.WINDOW_SIZE), load=load)
    else:
        window_size = min(window_size, RELEASED_WINDOW_SIZE)
        tables = headers(data, position, end, window_size=window_size, capacity=RELEASED_ROW_COUNT)
    if end - position >= PARALLEL_SIZE_MIN:
        yield from in_order(partial(next, tables, None), check)
    else:
        yield from map(check, tables)


def in_order(make_next: Callable[[], T | None], work: Callable[[T], R]) -> Generator[R]:
    """Yield `work(item)` for each item that `make_next` returns until it returns None, in order.

    Each item depends on the one before, so the caller's thread makes them one at a time. It also works on them while no
    result is ready: a third thread on two processors would wake up for each result and take its processor from the
    work. What either raises is raised in the place of the result. There are as many helper threads as other
    processors, at most two; they end with the last item, or when the generator is closed.
    """
    helper_count = min(processor_count() - 1, HELPER_COUNT_MAX)
    if helper_count < 1:
        while (item := make_next()) is not None:
            yield work(item)
        return
    waiting: Waiting[T, R] = SimpleQueue()
    ahead: deque[WorkItem[T, R]] = deque()
    failure: Exception | None = None
    try:
        start_threads(work, waiting, helper_count)
        item = make_next()
        while True:
            while True:
                if item is None or len(ahead) == helper_count + AHEAD_COUNT:
                    break
                ahead.append(WorkItem(item))
                waiting.put(ahead[-1])
                try:
                    item = make_next()
                except Exception as error:  # raised when its turn has come
                    failure, item = error, None
            if not ahead:
                break
            yield _result(ahead, work)
    finally:
        # a reader that stops early may cut the file next: no helper may still touch the mapping
        end_threads(waiting, ahead)
    if failure is not None:
        raise failure


def processor_count() -> int:
    """Return the number of processors that this thread may use: those that it may run on, at most those given to it.

    A container's quota gives some, `processors`, and `OMP_NUM_THREADS`, if that is a number: Spark tells the workers
    of its tasks so how many are theirs (`spark.task.cpus`). Helpers would wait for those of the processes beside this
    one, or for the next period of the quota.
    """
    counts = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    if (quota := processor_quota()) is not None:
        counts.append(quota)
    if (limit := os.environ.get(_VARIABLE, "")).isdecimal():
        counts.append(int(limit))
    if (given := _given.get()) is not None:
        counts.append(given)
    return max(1, min(counts))


@contextmanager
def processors(count: int) -> Iterator[None]:
    """`with` block in which this thread uses at most so many processors, since others use the rest."""
    token = _given.set(count)
    try:
        yield
    finally:
        _given.reset(token)


def _result(ahead: deque[WorkItem[T, R]], work: Callable[[T], R]) -> R:
    """Return the first result; while a helper works on it, work on items that no helper has begun."""
    first = ahead[0]
    for task in ahead:
        if first.is_done:
            break
        task.run(work)
    first.wait()
    return ahead.popleft().result()
