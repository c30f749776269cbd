"""Parallel work on a sequence, with results in order.

Each item depends on the one before, so the reader makes them one at a time. It also works on them while no result is
ready: a third thread on two processors would wake up for each result and take its processor from the work. The work
should be mostly kernels, which release the GIL.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

HELPER_COUNT_MAX = 2
AHEAD_COUNT = 2  # items in work or ready, beside one for each helper: more would not fit into a cache


def in_order(make_next: Callable[[], T | None], work: Callable[[T], R]) -> Generator[R]:
    """Yield `work(item)` for each item that `make_next` returns until it returns None, in order.

    What either raises is raised in the place of the result. There are as many helper threads as other processors, at
    most two; they end with the last item, or when the generator is closed.
    """
    yield from _Ahead(make_next, work, min(processor_count() - 1, HELPER_COUNT_MAX)).results()


def processor_count() -> int:
    """Return the number of processors that this thread may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Ahead(Generic[T, R]):
    """Items that wait for a thread, and results by number."""

    def __init__(self, make_next: Callable[[], T | None], work: Callable[[T], R], helper_count: int) -> None:
        self._make_next = make_next
        self._work = work
        self._helper_count = helper_count
        self._made_count = 0
        self._is_all_made = False
        self._is_over = False  # the reader wants no more results
        self._change = threading.Condition()
        self._waiting: deque[tuple[int, T]] = deque()
        self._results: dict[int, R | BaseException] = {}

    def results(self) -> Generator[R]:
        helpers: list[threading.Thread] = []
        try:
            for _ in range(self._helper_count):
                helper = threading.Thread(target=self._help, daemon=True)
                helper.start()
                helpers.append(helper)
            number = 0
            while self._is_made(number):
                yield self._result(number)
                number += 1
        finally:
            with self._change:
                self._is_over = True
                self._change.notify_all()
            # a reader that stops early may cut the file next: no helper may still touch the mapping
            for helper in helpers:
                helper.join()

    def _is_made(self, number: int) -> bool:
        """Make items ahead, one for each thread but not many; return whether item `number` exists."""
        limit = number + self._helper_count + AHEAD_COUNT
        while not self._is_all_made and self._made_count < limit and len(self._waiting) <= self._helper_count:
            self._make()
        return number < self._made_count

    def _make(self) -> None:
        try:
            thing = self._make_next()
        except Exception as error:  # raised when its turn has come
            self._put(self._made_count, error)
            self._made_count += 1
            self._is_all_made = True
            return
        if thing is None:
            self._is_all_made = True
            return
        with self._change:
            self._waiting.append((self._made_count, thing))
            self._change.notify_all()
        self._made_count += 1

    def _result(self, number: int) -> R:
        while True:
            with self._change:
                if number in self._results:
                    result = self._results.pop(number)
                    break
                if not self._waiting:  # a helper is working on it
                    self._change.wait()
                    continue
                other, thing = self._waiting.popleft()
            self._put(other, self._worked(thing, Exception))
        if isinstance(result, BaseException):
            raise result
        return result

    def _help(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_over)
                if self._is_over:
                    return
                number, thing = self._waiting.popleft()
            self._put(number, self._worked(thing, BaseException))

    def _worked(self, thing: T, caught: type[BaseException]) -> R | BaseException:
        try:
            return self._work(thing)
        except caught as error:  # raised again by the reader
            return error

    def _put(self, number: int, result: R | BaseException) -> None:
        with self._change:
            self._results[number] = result
            self._change.notify_all()
