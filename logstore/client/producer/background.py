"""Background thread of a producer: writes batches after `linger.ms` or for another attempt, and runs callbacks.

It starts with the first record, and ends after a while without work, so that it does not keep alive a producer that
nothing refers to. While batches keep coming it sleeps between them, at most as long as they linger, without being
woken: that would cost the sender more than a small transaction. It is woken for a batch that is due before it wakes: a
retry of a full batch while the open one lingers, or another batch while a retry waits.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ... import clock
from ...calls import SHORT, alone
from ...threads import start_thread

IDLE_S_MAX = 1.0
NAP_S_MAX = 0.005
NAP_COUNT = 20  # naps without a batch before the thread waits to be woken
_CALLS_S = 0.1


class Background:
    """At most one thread at a time, which calls `write_due` and posted functions.

    A signal may interrupt any line, so waits use a SimpleQueue and plain locks: a Condition could stay locked.

    Attributes:
        is_idle: the thread must be woken for a batch.
        until_s: the thread sleeps until then unless it is woken, monotonic; 0 if no batch was left. Set with the mutex.
    """

    def __init__(
        self,
        name: str,
        owner: object,
        mutex: threading.Lock,
        *,
        write_due: Callable[[], float | None],
        has_batches: Callable[[], bool],
        linger_s: float,
    ) -> None:
        """Start no thread yet.

        Args:
            owner: kept alive while the thread runs.
            mutex: held by the caller of `ensure` for a batch, and when the thread decides to end.
            write_due: called without the mutex; returns the seconds until the next call, None if nothing is left.
            has_batches: called with the mutex.
        """
        self._name, self._owner = name, weakref.ref(owner)
        self._mutex, self._write_due, self._has_batches = mutex, write_due, has_batches
        self._nap_s = min(linger_s, NAP_S_MAX)
        self._nap_count = 0
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._calls: deque[Callable[[], object]] = deque()  # the first one may be running
        self.is_idle = self._is_ending = False
        self.until_s = 0.0

    @property
    def is_current(self) -> bool:
        """True in the background thread, that is in a callback."""
        return threading.current_thread() is self._thread

    @property
    def is_running(self) -> bool:
        """True if there is a thread."""
        return self._thread is not None and self._thread.is_alive()

    def ensure(self, due_s: float = math.inf) -> None:
        """Make sure that a thread handles new work, a batch by `due_s`; raise RuntimeError if none can be started."""
        if self.is_idle or due_s < self.until_s:
            self.wake()
        if not self.is_running:
            with alone(SHORT), self._starting:
                if not self.is_running:
                    thread = threading.Thread(target=self._run, args=(self._owner(),), name=self._name, daemon=True)
                    self._thread = thread
                    start_thread(thread)

    def wake(self) -> None:
        """Make the thread look for work, if there is one."""
        self._wakes.put(None)

    def end(self) -> None:
        """Let the thread end once nothing is left."""
        self._is_ending = True
        self.wake()

    def post(self, run_actions: Callable[[], object]) -> None:
        """Run the callbacks of a batch in the thread."""
        self._calls.append(run_actions)
        self.ensure()
        self.wake()

    def finish_calls(self, timeout_s: float | None) -> bool:
        """Wait until all due callbacks have run; return False on timeout."""
        if not self._calls or self.is_current:
            return True
        end_s = None if timeout_s is None else clock.monotonic_s() + timeout_s
        latch = threading.Lock()
        latch.acquire()
        self._calls.append(latch.release)
        while True:
            self.ensure()
            self.wake()
            left_s = _CALLS_S if end_s is None else min(_CALLS_S, end_s - clock.monotonic_s())
            if latch.acquire(timeout=max(left_s, 0.0)):
                return True
            if left_s <= 0:
                return False

    def _run(self, owner: object) -> None:
        while self.is_current and self._has_work_left():
            self._run_calls()

    def _run_calls(self) -> None:
        while self._calls:
            self._calls[0]()
            self._calls.popleft()  # after the call: `finish_calls` must wait while it runs

    def _has_work_left(self) -> bool:
        """Write what is due and wait for more; return False, for good, if nothing comes."""
        due_s = self._write_due()
        if self._calls:
            return True
        if due_s is not None:
            self._nap_count = 0
            self._is_woken(due_s)
        elif self._nap_s and self._nap_count < NAP_COUNT and not self._is_ending:
            self._nap_count += 1
            self._is_woken(self._nap_s)
        else:
            self._nap_count = 0
            return self._is_woken_from_idleness() or not self._has_ended()
        return True

    def _is_woken_from_idleness(self) -> bool:
        self.is_idle = True
        try:
            # work that came before `is_idle` was visible has woken nobody
            return self._write_due() is not None or (not self._is_ending and self._is_woken(IDLE_S_MAX))
        finally:
            self.is_idle = False

    def _has_ended(self) -> bool:
        """End the thread unless there is work; holds the locks, so that later work starts another thread."""
        with self._mutex, self._starting:
            if self._calls or self._has_batches():
                return False
            self._thread = None
            return True

    def _is_woken(self, wait_s: float) -> bool:
        """Wait; return whether the thread was woken."""
        try:
            self._wakes.get(timeout=min(max(0.0, wait_s), threading.TIMEOUT_MAX))  # linger.ms may be endless
        except Empty:
            return False
        while not self._wakes.empty():
            self._wakes.get()
        return True
