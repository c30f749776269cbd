"""Periodic functions, called in the order in which they are due (`KafkaScheduler`).

Intervals are counted by a clock that never goes back, so a step of the wall clock neither stops nor hurries them. One
thread calls the functions. A long one, such as a cleaning, runs in a thread of its own, so that the others stay
punctual. A function that fails is called again when it is next due.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from queue import Empty, SimpleQueue

from ..calls import SHORT, alone
from ..errors import UsageError
from ..threads import start_thread

IDLE_WAIT_MS = 60_000
CLOCK_WAIT_MS = 1000
_CLOCK = "clock"  # its name in `failures`
_LOOK_AGAIN_S = 1.0
_LOGGER = logging.getLogger("logstore")


@dataclass(slots=True)
class _Timer:
    name: str
    interval_ms: int | None  # None: once
    function: Callable[[], object]
    is_long: bool
    worker: _Worker | None = None  # of a long one: the thread that runs it, or ran it last


class _Worker:
    """A thread that can be waited for: `Thread.join` takes an interrupted wait for the end of the thread."""

    def __init__(self, name: str, function: Callable[[], object]) -> None:
        self._function = function
        self._ending = threading.Lock()  # held while the thread runs
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._has_ended = False

    def start(self) -> None:
        """Start the thread; to be called once."""
        self._ending.acquire()
        start_thread(self._thread)

    @property
    def is_running(self) -> bool:
        """True while the function runs."""
        return not self._has_ended and self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the function has ended; called by the function itself, do nothing."""
        while self.is_running and self._thread is not threading.current_thread():
            self._ending.acquire(timeout=_LOOK_AGAIN_S)

    def _run(self) -> None:
        try:
            self._function()
        finally:
            self._has_ended = True
            self._ending.release()


class Timers:
    """The functions by name, and the threads that call them after `start`.

    Attributes:
        failures: name to the error of the last call.
        is_stopped: nothing is called any more; a running function should end.
    """

    def __init__(self, ticks_ms: Callable[[], int]) -> None:
        self.failures: dict[str, BaseException] = {}
        self.is_stopped = False
        self._ticks_ms = ticks_ms
        self._numbers = itertools.count()
        # (due time, number, timer); a signal handler may add one at any moment, so that takes no lock
        self._added: deque[tuple[int, int, _Timer]] = deque()
        self._heap: list[tuple[int, int, _Timer]] = []
        # number of the entry by name, or by itself for what is called once; any other entry is dead
        self._current: dict[str | int, int] = {}
        self._own_names = {_CLOCK}  # of the store, which no program may replace
        # plain locks and a queue: an interrupt may leave a `Condition`, which is Python, locked
        self._lock = threading.Lock()  # of the heap
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._calling = threading.RLock()  # held while a short function runs
        self._worker: _Worker | None = None

    def add(
        self,
        name: str,
        interval_ms: int,
        function: Callable[[], object],
        *,
        delay_ms: int | None = None,
        is_long: bool = False,
    ) -> None:
        """Call a function of the store every `interval_ms`, first in `delay_ms`; replaces one of the same name.

        A long one is not called again while it runs.
        """
        self._own_names.add(name)
        self._put(_Timer(name, max(interval_ms, 1), function, is_long), interval_ms if delay_ms is None else delay_ms)

    def add_of_program(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        """Call a function of the program every `interval_ms`, in place of its last one of this name.

        Raises UsageError if the store has one of this name, which would not be called any more.
        """
        if name in self._own_names:
            raise UsageError(
                "The store has a task of this name, which would not be called any more",
                expected=f"another name than {', '.join(sorted(self._own_names))}",
                found=name,
                advice="choose a name of the program's own",
            )
        self._put(_Timer(name, max(interval_ms, 1), function, is_long=False), interval_ms)

    def run_soon(self, function: Callable[[], object]) -> None:
        """Call the function once, as soon as the thread is free."""
        self._put(_Timer(f"once {next(self._numbers)}", None, function, is_long=False), 0)

    def run_due(self) -> list[str]:
        """Call what is due in this thread, long functions too; return the names of the called ones, in order."""
        called, now_ms = [], self._ticks_ms()
        while (timer := self._next_due(now_ms)) is not None:
            with self._calling:
                self._call(timer, Exception)
            called.append(timer.name)
        return called

    def start(self) -> None:
        """Start the thread that calls what is due."""
        self._worker = _Worker("logstore-timers", self._run)
        self._worker.start()

    def stop(self) -> None:
        """Call nothing any more, not even what was to run soon; wait for running functions."""
        self.is_stopped = True
        self._wakes.put(None)
        if self._worker is not None:
            self._worker.wait()
        with alone(SHORT), self._lock:
            workers = [timer.worker for _, _, timer in (*self._heap, *self._added)]
        for worker in workers:
            if worker is not None:
                worker.wait()
        with self._calling:  # what `run_due` calls in another thread
            pass

    def _put(self, timer: _Timer, delay_ms: int) -> None:
        self._added.append((self._ticks_ms() + delay_ms, next(self._numbers), timer))
        self._wakes.put(None)

    def _next_due(self, now_ms: int) -> _Timer | None:
        """Return the first due timer, rescheduled if it is periodic; None if none is due."""
        with alone(SHORT), self._lock:
            while True:
                if not self._added:
                    break
                _, number, timer = entry = self._added[0]
                heappush(self._heap, entry)
                self._current[_key(timer, number)] = number
                self._added.popleft()  # last: an interrupt leaves a second entry, which dies with the first
            while self._heap and not self.is_stopped:
                due_ms, number, timer = self._heap[0]
                if self._current.get(_key(timer, number)) != number:
                    heappop(self._heap)
                    continue
                if due_ms > now_ms:
                    return None
                if timer.interval_ms is None:
                    del self._current[number]
                else:  # before the present entry goes: an interrupt must not end a periodic timer
                    self._added.append((now_ms + timer.interval_ms, next(self._numbers), timer))
                heappop(self._heap)
                return timer
            return None

    def _call(self, timer: _Timer, caught: type[BaseException] = BaseException) -> None:
        """Call the function; in a thread of the timers not even SystemExit may end it, and all other timers."""
        try:
            timer.function()
        except caught as error:
            self.failures[timer.name] = error
            again = "" if timer.interval_ms is None else " and is tried again later"
            _LOGGER.warning(
                "%s failed%s: %s", timer.name, again, error if isinstance(error, Exception) else repr(error)
            )
        else:
            self.failures.pop(timer.name, None)

    def _run(self) -> None:
        while not self.is_stopped:
            try:
                now_ms = self._ticks_ms()
                self.failures.pop(_CLOCK, None)
            except Exception as error:  # the program's clock; it may work again
                if _CLOCK not in self.failures:
                    _LOGGER.warning("The clock failed, so nothing is done in the background until it works: %r", error)
                self.failures[_CLOCK] = error
                self._wake_after(CLOCK_WAIT_MS)
                continue
            timer = self._next_due(now_ms)
            if timer is None:
                self._wait(now_ms)
            elif timer.is_long:
                self._call_beside(timer)
            else:
                with self._calling:
                    self._call(timer)

    def _call_beside(self, timer: _Timer) -> None:
        if timer.worker is not None and timer.worker.is_running:
            return
        worker = _Worker(f"logstore-{timer.name}", lambda: self._call(timer))
        try:
            worker.start()
        except RuntimeError as error:  # no thread can be started; it is tried again
            self.failures[timer.name] = error
        else:
            timer.worker = worker

    def _wait(self, now_ms: int) -> None:
        """Wait until a timer is due, one is added, or the timers are stopped."""
        with alone(SHORT), self._lock:
            due_ms = min((due_ms for due_ms, _, _ in (*self._heap[:1], *self._added)), default=None)
        wait_ms = IDLE_WAIT_MS if due_ms is None else min(due_ms - now_ms, IDLE_WAIT_MS)
        if wait_ms > 0:
            self._wake_after(wait_ms)

    def _wake_after(self, wait_ms: int) -> None:
        with suppress(Empty):
            self._wakes.get(timeout=wait_ms / 1000)


def _key(timer: _Timer, number: int) -> str | int:
    return number if timer.interval_ms is None else timer.name
