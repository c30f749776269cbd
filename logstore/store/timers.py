"""Functions that are called now and then, by one thread (`KafkaScheduler`).

A function that fails is called again when it is due the next time; why it failed is kept until it succeeds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

IDLE_WAIT_MS = 60_000
_LOOK_AGAIN_S = 1.0
_LOGGER = logging.getLogger("logstore")


@dataclass(slots=True)
class _Task:
    interval_ms: int | None  # None: once
    due_ms: int
    function: Callable[[], object]


class Schedule:
    """The functions by name, and the thread that calls them once it is started.

    Attributes:
        failures: from name to what the function raised the last time it was called.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.failures: dict[str, Exception] = {}
        self._now_ms = now_ms
        self._tasks: dict[str, _Task] = {}
        # plain locks and a queue: a `Condition` is Python, and an interrupt may leave it locked
        self._lock = threading.RLock()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._running = threading.RLock()
        self._ending = threading.Lock()  # held while the thread runs
        self._has_ended = False
        self._is_stopped = False
        self._thread: threading.Thread | None = None
        self._once_count = 0

    def add(self, name: str, interval_ms: int, function: Callable[[], object], *, delay_ms: int | None = None) -> None:
        """Call the function every `interval_ms`, first in `delay_ms`; a name that is there gets the new function."""
        with self._lock:
            first_ms = self._now_ms() + (interval_ms if delay_ms is None else delay_ms)
            self._tasks[name] = _Task(interval_ms, first_ms, function)
        self._wakes.put(None)

    def run_soon(self, function: Callable[[], object]) -> None:
        """Call the function once, as soon as the thread is free."""
        with self._lock:
            self._once_count += 1
            self._tasks[f"once {self._once_count}"] = _Task(None, self._now_ms(), function)
        self._wakes.put(None)

    def remove(self, name: str) -> None:
        """Never call the function again; on return it does not run any more."""
        with self._running, self._lock:
            self._tasks.pop(name, None)

    def run_due(self, now_ms: int) -> list[str]:
        """Call what is due at that time, in this thread; the names of what was called, in order."""
        with self._running:
            with self._lock:
                due = sorted((task.due_ms, name) for name, task in self._tasks.items() if task.due_ms <= now_ms)
            called = []
            for _, name in due:
                with self._lock:
                    task = self._tasks.get(name)
                    if task is None or self._is_stopped:
                        continue
                    if task.interval_ms is None:
                        del self._tasks[name]
                    else:
                        task.due_ms = now_ms + task.interval_ms
                self._call(name, task)
                called.append(name)
            return called

    def start(self) -> None:
        """Begin to call what is due."""
        self._ending.acquire()
        self._thread = threading.Thread(target=self._run, name="logstore-housekeeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Call nothing any more, not even what was to run soon; waits for the function that runs."""
        with self._lock:
            self._is_stopped = True
        self._wakes.put(None)
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        while not self._has_ended and thread.is_alive():  # not `join`, which takes a thread for ended when interrupted
            self._ending.acquire(timeout=_LOOK_AGAIN_S)

    def _call(self, name: str, task: _Task) -> None:
        try:
            task.function()
        except Exception as error:
            self.failures[name] = error
            _LOGGER.warning("%s failed and is tried again later: %s", name, error)
        else:
            self.failures.pop(name, None)

    def _run(self) -> None:
        try:
            while not self._is_stopped:
                with self._lock:
                    due_ms = min((task.due_ms for task in self._tasks.values()), default=None)
                wait_ms = IDLE_WAIT_MS if due_ms is None else min(due_ms - self._now_ms(), IDLE_WAIT_MS)
                if wait_ms <= 0 or not self._is_woken(wait_ms / 1000):
                    self.run_due(self._now_ms())
        finally:
            self._has_ended = True
            self._ending.release()

    def _is_woken(self, wait_s: float) -> bool:
        """Wait; return whether something was added or the end has come."""
        try:
            self._wakes.get(timeout=wait_s)
        except Empty:
            return False
        return True
