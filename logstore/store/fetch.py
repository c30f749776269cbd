"""Waiting for records of some partitions: the append that brings them wakes who waits.

    arrivals = Arrivals()
    arrivals.expect(partition, log)           # before the last look at the log: nothing that comes later is missed
    ready = arrivals.wait(timeout_s=0.5)      # the partitions that got something

As a fetch of Kafka's that is parked until there is enough (`DelayedFetch`, `DelayedOperationPurgatory`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from ..log.partition_log import PartitionLog
from ..model import TopicPartition

LOOK_AGAIN_S = 1.0


class Arrivals:
    """Partitions that one thread waits for; any thread may append to them and call `wake`."""

    def __init__(self) -> None:
        self._watchers: dict[TopicPartition, Callable[[], None]] = {}
        # one call of C to wait and one to wake: an interrupt leaves no lock behind
        self._ready: SimpleQueue[TopicPartition | None] = SimpleQueue()

    def expect(self, partition: TopicPartition, log: PartitionLog) -> bool:
        """Have the next append to the log end the wait, also that of a marker; return False if that is so already."""
        watcher = self._watchers.get(partition)
        if watcher is None:
            watcher = self._watchers[partition] = partial(self._ready.put, partition)
        return log.watch(watcher)

    def wake(self) -> None:
        """End the wait of another thread, or the next one."""
        self._ready.put(None)

    def wait(self, timeout_s: float) -> set[TopicPartition]:
        """Wait for an append, a `wake`, or the time to be up; return the partitions that got something.

        They have to be expected again. The wait ends after `LOOK_AGAIN_S` at the latest, and then the caller looks at
        all partitions: an append that was interrupted may have woken nobody.
        """
        ready: set[TopicPartition | None] = set()
        with suppress(Empty):
            ready.add(self._ready.get(timeout=max(min(timeout_s, LOOK_AGAIN_S), 0)))
            while True:
                ready.add(self._ready.get_nowait())
        return {partition for partition in ready if partition is not None}
