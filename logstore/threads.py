"""Work on threads that an interrupt of the waiting thread neither hangs nor leaves running.

    waiting = SimpleQueue()
    thread_count = start_threads(work, waiting, 2)
    try:
        task = WorkItem(argument)
        waiting.put(task)               # a thread does it, or task.run(work) does it here
        task.result()
    finally:
        end_threads(waiting, tasks)     # nobody works on any of them any more

Not an executor: an interrupt (Ctrl-C) of `submit` or of a wait may leave one of its locks locked, or turn into a
RuntimeError, and work goes on that nobody waits for. And its end takes locks of `threading`: where the garbage
collection ends a generator that has one, it may do so in the middle of `Thread.start`, and wait for itself. Here every
wait is one C call, for work that another thread has begun. No thread but one goes on in the child of a fork, nor when
the interpreter has begun to end: there nobody is waited for, and what others had begun is done anew.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident, start_new_thread  # those of `threading` are more than one C call
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import closing, suppress
from os import getpid
from queue import SimpleQueue
from sys import is_finalizing
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class WorkItem(Generic[T, R]):
    """A piece of work, done once, by the thread that is the first to begin it.

    Attributes:
        argument: what to work on.
        is_done: the work has ended, with a result or an error.
    """

    __slots__ = ("_begun_by", "_error", "_latch", "_result", "argument", "is_done")

    def __init__(self, argument: T) -> None:
        self.argument = argument
        self.is_done = False
        self._result: R | None = None
        self._error: BaseException | None = None
        # process, and whether the interpreter ends, to the thread that began it there; `setdefault` is one C call
        self._begun_by: dict[tuple[int, bool], int] = {}
        self._latch = allocate_lock()  # held until it is done
        self._latch.acquire()

    def run(self, work: Callable[[T], R]) -> None:
        """Do the work, unless it has been begun; an error is raised where it is waited for, an interrupt here."""
        if self.is_done or not self.begin():
            return
        try:
            self._result = work(self.argument)
        except BaseException as error:
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self.is_done = True
            self._latch.release()

    def wait(self) -> BaseException | None:
        """Wait until the work is done, which another thread has begun or will begin; return its error."""
        if not self.is_done:
            self._latch.acquire()
        return self._error

    def result(self) -> R:
        """Wait; return the result, or raise the error."""
        if (error := self.wait()) is not None:
            raise error
        return self._result  # type: ignore[return-value]

    def begin(self) -> bool:
        """Return whether this thread is the one that has begun it, now or before; no other will do it then."""
        return self._begun_by.setdefault((getpid(), is_finalizing()), get_ident()) == get_ident()


Waiting = SimpleQueue[WorkItem[T, R] | None]  # None: the threads end


def start_threads(work: Callable[[T], R], waiting: Waiting[T, R], count: int) -> int:
    """Start threads that work off what waits, up to `count`; return how many there are."""

    def work_off() -> None:
        while (task := waiting.get()) is not None:
            with suppress(BaseException):  # raised where the task is waited for
                task.run(work)
        waiting.put(None)  # for the next thread

    for number in range(count):
        try:
            start_new_thread(work_off, ())
        except RuntimeError:  # the interpreter is shutting down, or there are too many threads
            return number
    return count


def end_threads(waiting: Waiting[T, R], tasks: Iterable[WorkItem[T, R]]) -> None:
    """End the threads; return once nobody works on any of the tasks. Those not begun are left out."""
    waiting.put(None)
    for task in [task for task in tasks if not task.begin()]:
        task.wait()


def begun(work: Callable[[T], R], argument: T) -> WorkItem[T, R]:
    """Begin work on a thread of its own, for `result`; an interrupt of that leaves it to end, or to end the program."""
    waiting: Waiting[T, R] = SimpleQueue()
    task: WorkItem[T, R] = WorkItem(argument)
    waiting.put(task)
    waiting.put(None)
    if not start_threads(work, waiting, 1):
        task.run(work)
    return task


def each_done(
    work: Callable[[T], object], items: Collection[T], thread_count: int
) -> Generator[tuple[T, BaseException | None]]:
    """Yield each item in order once `work` has run on it, in up to `thread_count` threads, with the error it raised.

    When the generator ends or is closed, also by an interrupt, no thread works any more; items not begun are left out.
    The calling thread works only if no thread can be started.
    """
    tasks: list[WorkItem[T, object]] = [WorkItem(item) for item in items]
    waiting: Waiting[T, object] = SimpleQueue()
    for task in tasks:
        waiting.put(task)
    try:
        has_threads = start_threads(work, waiting, min(thread_count, len(tasks))) > 0
        for task in tasks:
            if not has_threads:
                task.run(work)
            yield task.argument, task.wait()
    finally:
        end_threads(waiting, tasks)


def start_thread(thread: Thread) -> None:
    """Start a thread from another one, as an interrupt turns into a RuntimeError in `Thread.start`.

    Raises:
        RuntimeError: there are too many threads.
    """
    with closing(each_done(Thread.start, [thread], 1)) as started:
        ((_, error),) = started
    if error is not None:
        raise error
