"""The thread that writes a producer's batches when they have waited for `linger.ms`, or are to be tried again.

It is begun by the first record, and ends when there was nothing to do for a while, so that it does not keep a producer
that nobody has any more. While it waits for a batch's time it is not woken before the producer is closed: what comes
later is due later. And as long as batches keep coming it naps between them, no longer than they linger, for to wake it
takes a sender longer than many a transaction.
"""

from __future__ import annotations

import threading
import weakref

from .. import clock
from .accumulator import Accumulator

IDLE_S_MAX = 1.0
NAP_S_MAX = 0.005
NAP_COUNT = 20  # without a batch, until it is to be woken


class LingerThread:
    """At most one thread for an accumulator, which it keeps going."""

    def __init__(self, accumulator: Accumulator, name: str, owner: object) -> None:
        """The thread has this name, and keeps `owner` as long as it runs."""
        self._accumulator = accumulator
        self._name = name
        self._owner = weakref.ref(owner)
        self._has_work = threading.Condition(accumulator.mutex)
        self._is_running = self._is_idle = False
        self._nap_s = min(accumulator.linger_s, NAP_S_MAX)
        self._nap_count = 0
        accumulator.keep_going = self._keep_going

    def _keep_going(self) -> None:
        """There is something to do, or nothing any more; the mutex is held."""
        if self._is_idle or self._accumulator.is_closed:
            self._has_work.notify()
        elif not self._is_running:
            threading.Thread(target=self._run, args=(self._owner(),), name=self._name, daemon=True).start()
            self._is_running = True  # after the start, which may fail: the next record then tries again

    def _run(self, owner: object) -> None:
        try:
            while self._has_gone_on():
                self._accumulator.complete()
        finally:
            self._is_running = False

    def _has_gone_on(self) -> bool:
        """Write what is due, and wait for what comes next; False if nothing came for a while, or will come."""
        accumulator = self._accumulator
        with accumulator.mutex:
            now_s = clock.monotonic_s()
            due_s = accumulator.drain_due(now_s)
            if accumulator.has_done:
                return True
            has_work = True
            if due_s is not None:
                self._nap_count = 0
                self._has_work.wait(min(max(0.0, due_s - now_s), threading.TIMEOUT_MAX))  # linger.ms may be for ever
            elif not accumulator.is_closed and self._nap_s and self._nap_count < NAP_COUNT:
                self._nap_count += 1
                self._has_work.wait(self._nap_s)
            else:
                self._is_idle = True
                has_work = not accumulator.is_closed and self._has_work.wait(IDLE_S_MAX)
                self._is_idle = False
                self._nap_count = 0
            if not has_work:
                self._is_running = False  # with the mutex held: whoever comes now begins another
            return has_work
