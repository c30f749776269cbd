"""Waiting for records of several partitions: an append wakes the waiting thread.

    arrivals = AppendWaiter()
    arrivals.expect(partition, log)           # before the last look at the log, so that nothing is missed
    ready = arrivals.wait(timeout_s=0.5)      # the partitions that were appended to

It works like a fetch that Kafka parks until there is enough data (`DelayedFetch`, `DelayedOperationPurgatory`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from ..log.partition_log import PartitionLog
from ..model import TopicPartition

LOOK_AGAIN_S = 1.0


class AppendWaiter:
    """Partitions that one thread waits for; any thread may append to them and call `wake`."""

    def __init__(self) -> None:
        self._watchers: dict[TopicPartition, Callable[[], None]] = {}
        self._logs: dict[TopicPartition, PartitionLog] = {}  # with which the watchers are registered
        # a single C call to wait and one to wake: an interrupt leaves no lock behind
        self._ready: SimpleQueue[TopicPartition | None] = SimpleQueue()

    def expect(self, partition: TopicPartition, log: PartitionLog) -> bool:
        """End the wait with the next append to the log, markers too; return False if that is arranged already."""
        watcher = self._watchers.get(partition)
        if watcher is None:
            watcher = self._watchers[partition] = partial(self._ready.put, partition)
        if (former := self._logs.get(partition)) is not None and former is not log:
            former.unwatch(watcher)  # of a topic that was made anew
        self._logs[partition] = log
        return log.watch(watcher)

    def keep(self, partitions: Collection[TopicPartition]) -> None:
        """Expect nothing any more from partitions that are not among these: their logs forget the watchers."""
        for partition in self._logs.keys() - set(partitions):
            self._logs.pop(partition).unwatch(self._watchers.pop(partition))

    def wake(self) -> None:
        """End the present or next wait of another thread."""
        self._ready.put(None)

    @property
    def is_idle(self) -> bool:
        """True if `wait` has nothing to return yet."""
        return self._ready.empty()

    def wait(self, timeout_s: float) -> set[TopicPartition]:
        """Wait for an append, a `wake` or the timeout; return the partitions that were appended to.

        Expect these again. The wait lasts `LOOK_AGAIN_S` at most, and then look at all partitions: an interrupted
        append may have woken nobody.
        """
        ready: set[TopicPartition | None] = set()
        with suppress(Empty):
            ready.add(self._ready.get(timeout=max(min(timeout_s, LOOK_AGAIN_S), 0)))
            while True:
                ready.add(self._ready.get_nowait())
        return {partition for partition in ready if partition is not None}
