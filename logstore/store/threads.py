"""Parallel work that an interrupt of the waiting thread neither hangs nor leaves running.

Not an executor: an interrupt (Ctrl-C) of `submit` or of a wait may leave one of its locks locked, or turn into a
RuntimeError, and work goes on that nobody waits for. Here every wait is one C call on a `SimpleQueue`, and results are
in a list, so nothing is lost with a message from the queue.
"""

from __future__ import annotations

from _thread import start_new_thread  # `Thread.start` waits by a lock that an interrupt may leave locked
from collections.abc import Callable, Collection, Generator
from contextlib import closing
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def each_done(
    work: Callable[[T], object], items: Collection[T], thread_count: int
) -> Generator[tuple[T, BaseException | None]]:
    """Yield each item once `work` has run on it, in up to `thread_count` threads, with the error that it raised.

    When the generator ends or is closed, also by an interrupt, no thread works any more; items not begun are left out.
    The calling thread works only if no thread can be started.
    """
    waiting: SimpleQueue[T] = SimpleQueue()
    for item in items:
        waiting.put(item)
    done: list[tuple[T, BaseException | None]] = []
    progress: SimpleQueue[None] = SimpleQueue()
    is_given_up = False

    def work_off() -> None:
        while True:
            try:
                item = waiting.get_nowait()
            except Empty:
                return
            error: BaseException | None = None
            try:
                if not is_given_up:
                    work(item)
            except BaseException as raised:
                error = raised
            done.append((item, error))
            progress.put(None)

    try:
        for _ in range(min(thread_count, len(items))):
            try:
                start_new_thread(work_off, ())
            except RuntimeError:  # the interpreter is shutting down, or there are too many threads
                work_off()
                break
        for number in range(len(items)):
            while len(done) <= number:
                progress.get()
            yield done[number]
    finally:
        is_given_up = True
        work_off()
        while len(done) < len(items):
            progress.get()


def start_thread(thread: Thread) -> None:
    """Start a thread from another one, as an interrupt turns into a RuntimeError in `Thread.start`.

    Raises:
        RuntimeError: there are too many threads.
    """
    with closing(each_done(Thread.start, [thread], 1)) as started:
        for _, error in started:
            if error is not None:
                raise error
