"""Work on one thing after the other, helped by other threads, for a reader who gets the results in order.

What is to be worked on is made one at a time, because each depends on the one before. The reader makes it, and takes
part in the work while no result is ready: a third thread on two processors would wake up for each result, and take its
processor from the work. Work should be kernels for the most part, which release the interpreter.
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
AHEAD_COUNT = 2  # things in work or ready, beside one a helper: with more, their memory is more than a cache holds


def in_order(make_next: Callable[[], T | None], work: Callable[[T], R]) -> Generator[R]:
    """`work(thing)` of each thing that `make_next` makes until it makes None, in order.

    What either raises is raised in the place of the result. The helpers, as many as there are processors beside the
    reader's, two at most, end with the last thing, and when the generator is closed.
    """
    yield from _Ahead(make_next, work, min(processor_count() - 1, HELPER_COUNT_MAX)).results()


def processor_count() -> int:
    """Those that this thread may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Ahead(Generic[T, R]):
    """Things that wait for someone to work on them, and results by number."""

    def __init__(self, make_next: Callable[[], T | None], work: Callable[[T], R], helper_count: int) -> None:
        self._make_next = make_next
        self._work = work
        self._helper_count = helper_count
        self._made_count = 0
        self._is_all_made = False
        self._is_over = False  # nobody wants a result any more
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
            # whoever stops early may cut the file next, and bytes that are gone must not be read
            for helper in helpers:
                helper.join()

    def _is_made(self, number: int) -> bool:
        """Whether there is such a thing; so many are made that each thread has one, and none are far ahead."""
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
                if not self._waiting:  # a helper is at it
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
