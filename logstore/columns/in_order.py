"""Parallel work on a sequence, with results in order.

Each item depends on the one before, so the reader makes them one at a time. It also works on them while no result is
ready: a third thread on two processors would wake up for each result and take its processor from the work. The work
should be mostly kernels, which release the GIL.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

HELPER_COUNT_MAX = 2
AHEAD_COUNT = 2  # items in work or ready, beside one for each helper: more would not fit into a cache


def in_order(make_next: Callable[[], T | None], work: Callable[[T], R]) -> Generator[R]:
    """Yield `work(item)` for each item that `make_next` returns until it returns None, in order.

    What either raises is raised in the place of the result. There are as many helper threads as other processors, at
    most two; they end with the last item, or when the generator is closed.
    """
    helper_count = min(processor_count() - 1, HELPER_COUNT_MAX)
    if helper_count < 1:
        while (item := make_next()) is not None:
            yield work(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    helpers = ThreadPoolExecutor(helper_count)
    ahead: deque[tuple[T, Future[R]]] = deque()
    failure: Exception | None = None
    try:
        item = make_next()
        while item is not None or ahead:
            while item is not None and len(ahead) < helper_count + AHEAD_COUNT:
                ahead.append((item, helpers.submit(work, item)))
                try:
                    item = make_next()
                except Exception as error:  # raised when its turn has come
                    failure, item = error, None
            yield _result(ahead, work)
    finally:
        # a reader that stops early may cut the file next: no helper may still touch the mapping
        helpers.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure


def processor_count() -> int:
    """Return the number of processors that this thread may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _result(ahead: deque[tuple[T, Future[R]]], work: Callable[[T], R]) -> R:
    """Return the first result; while a helper works on it, work on items that no helper has begun."""
    _, first = ahead[0]
    for row, (item, future) in enumerate(ahead):
        if first.done():
            break
        if future.cancel():
            done: Future[R] = type(future)()
            ahead[row] = item, done
            try:
                done.set_result(work(item))
            except Exception as error:
                done.set_exception(error)
            first = ahead[0][1]
    return ahead.popleft()[1].result()
