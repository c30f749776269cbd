"""Waiting for records of some partitions: who waits is woken by the append, and looks at what is ready only.

    arrivals = Arrivals()
    arrivals.expect(partition, log)           # before the last look at the log: nothing that comes later is missed
    ready = arrivals.wait(timeout_s=0.5)      # the partitions that got something

As a fetch of Kafka's that is parked until there is enough (`DelayedFetch`, `DelayedOperationPurgatory`).
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue

from .. import clock
from ..log.partition_log import PartitionLog
from ..model import TopicPartition

LOOK_AGAIN_S = 1.0


class Arrivals:
    """Partitions that are waited for by one thread; any thread may append to them and call `wake`."""

    def __init__(self) -> None:
        self._expected: dict[TopicPartition, PartitionLog] = {}
        # one call of C to wait and one to wake: an interrupt leaves no lock behind
        self._ready: SimpleQueue[TopicPartition | None] = SimpleQueue()
        self._next_look_s = clock.monotonic_s() + LOOK_AGAIN_S

    def expect(self, partition: TopicPartition, log: PartitionLog) -> None:
        """Have the next append to the partition wake `wait`, a marker of a transaction too.

        May be called again for a partition that is expected already.
        """
        if self._expected.get(partition) is not log:
            self._expected[partition] = log
            log.watch(lambda: self._ready.put(partition))

    def wake(self) -> None:
        """Let `wait` return at once."""
        self._ready.put(None)

    def wait(self, timeout_s: float) -> set[TopicPartition]:
        """Wait for an append, a `wake`, or the time to be up; return the partitions that are expected no longer.

        They have got something, or may have: every `LOOK_AGAIN_S` all are told, for an append that was interrupted may
        have woken nobody.
        """
        now_s = clock.monotonic_s()
        ready = self._take(max(min(timeout_s, self._next_look_s - now_s), 0))
        if clock.monotonic_s() >= self._next_look_s:
            self._next_look_s = now_s + LOOK_AGAIN_S
            ready |= self._expected.keys()
        for partition in ready:
            self._expected.pop(partition, None)
        return ready

    def _take(self, timeout_s: float) -> set[TopicPartition]:
        ready: set[TopicPartition | None] = set()
        with suppress(Empty):
            ready.add(self._ready.get(timeout=timeout_s))
            while True:
                ready.add(self._ready.get_nowait())
        return {partition for partition in ready if partition is not None}
