"""Work on one thing after the other by two threads ahead of the reader, who gets the results in order.

What is to be worked on is made one at a time, because each depends on the one before; the work on one goes on while the
next is made. Both should be kernels for the most part, which release the interpreter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREAD_COUNT = 2
AHEAD_COUNT = 3  # things in work or ready: with more, their memory is more than a cache holds


def in_order(make_next: Callable[[], T | None], work: Callable[[T], R]) -> Generator[R]:
    """`work(thing)` of each thing that `make_next` makes until it makes None, in order.

    What either raises is raised to the reader, in the place of the result. The threads end with the last thing, and
    when the generator is closed.
    """
    yield from _Ahead(make_next, work).results()


class _Ahead(Generic[T, R]):
    """The threads, and the results they have ready by number."""

    def __init__(self, make_next: Callable[[], T | None], work: Callable[[T], R]) -> None:
        self._make_next = make_next
        self._work = work
        self._making = threading.Lock()
        self._made_count = 0
        self._is_over = False  # nothing more is made
        self._room = threading.Semaphore(AHEAD_COUNT)
        self._ready = threading.Condition()
        self._results: dict[int, R | BaseException] = {}

    def results(self) -> Generator[R]:
        threads = [threading.Thread(target=self._run, daemon=True) for _ in range(THREAD_COUNT)]
        for thread in threads:
            thread.start()
        try:
            number = 0
            while (result := self._take(number)) is not None:
                yield result[0]
                del result
                self._room.release()
                number += 1
        finally:
            self._is_over = True
            for _ in range(THREAD_COUNT):
                self._room.release()
            # whoever stops early may cut the file next, and bytes that are gone must not be read
            for thread in threads:
                thread.join()

    def _take(self, number: int) -> tuple[R] | None:
        with self._ready:
            self._ready.wait_for(lambda: number in self._results or (self._is_over and number >= self._made_count))
            if number not in self._results:
                return None
            result = self._results.pop(number)
        if isinstance(result, BaseException):
            raise result
        return (result,)

    def _run(self) -> None:
        while True:
            self._room.acquire()
            with self._making:
                if self._is_over:
                    return
                number = self._made_count
                try:
                    thing = self._make_next()
                except BaseException as error:  # raised again by the reader
                    self._end(number, error)
                    return
                if thing is None:
                    self._end(number, None)
                    return
                self._made_count += 1
            self._put(number, self._worked(thing))

    def _worked(self, thing: T) -> R | BaseException:
        try:
            return self._work(thing)
        except BaseException as error:  # raised again by the reader
            return error

    def _end(self, number: int, error: BaseException | None) -> None:
        with self._ready:
            self._is_over = True
            if error is not None:
                self._made_count = number + 1
                self._results[number] = error
            self._ready.notify_all()
        self._room.release()  # the other thread is to see it

    def _put(self, number: int, result: R | BaseException) -> None:
        with self._ready:
            self._results[number] = result
            self._ready.notify_all()
