"""Use a store for an hour as programs do all day, and see that it costs at the end what it cost in the first minute.

    python -m benchmarks.soak soak-out     # LOGSTORE_SOAK_SECONDS, 3600 by default; `make soak`

Threads send and poll in turn, follow a topic from another thread, run transactions, make and delete topics, and join
and leave groups, each at a pace of its own that leaves the processors idle most of the time. Retention, cleaning and
checkpoints run as on a broker, but every few seconds. Sixty times, each minute of an hour, memory, open files, threads,
objects, bytes on the disk and latencies are noted. The verdict compares the last quarter of the samples with the first.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles

import logstore
from benchmarks.support.soak_picture import drawn
from logstore.client.store import Store

CONFIG = {
    "log.segment.bytes": 1 << 20,  # the least; with values of a KB the first minute has all that later ones have
    "log.retention.bytes": 1 << 20,
    "log.retention.check.interval.ms": 2000,
    "log.segment.delete.delay.ms": 1000,
    "log.initial.task.delay.ms": 1000,
    "log.cleaner.backoff.ms": 2000,
    "log.cleaner.delete.retention.ms": 10_000,  # else markers stay for a day
    "offsets.topic.num.partitions": 4,
    "offsets.topic.segment.bytes": 1 << 20,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 5000,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.segment.bytes": 1 << 20,
    "transactional.id.expiration.ms": 60_000,
    "producer.id.expiration.ms": 60_000,
}
SAMPLE_COUNT = 60
VALUE = bytes(1000)
MIB = 1 << 20
#: by how much the last quarter may be above the first sample: a factor, and an amount that is noise
BOUNDS = {
    "memory": (1.1, 24 * MIB),
    "files": (1.1, 16.0),
    "threads": (1.0, 3.0),
    "objects": (1.1, 5_000.0),
    "disk": (1.5, 32 * MIB),
}
LATENCY_BOUND = 1.5, 100e-6  # of a median


class Soak:
    """The threads that use one store, and what they measured since the last sample.

    Attributes:
        errors: what any thread raised.
    """

    def __init__(self, store: Store, path: Path) -> None:
        self._store, self._path = store, path
        self.errors: list[BaseException] = []
        self._latencies: dict[str, deque[float]] = {}
        self._is_over = threading.Event()
        self._sent_s: deque[float] = deque()
        for topic in ("turns", "followed", "orders", "payments"):
            store.create_topic(topic, 2)
        store.create_topic("small", 1)
        store.log("small", 0).append_records([VALUE] * 10)
        work: dict[str, tuple[Callable[[int], None], float]] = {
            "send and poll": (self._turns(), 0.01),
            "send": (self._sending(), 0.01),
            "transaction": (self._transactions(), 0.02),
            "topic made and deleted": (self._topics, 0.2),
            "group joined and left": (self._groups, 0.1),
            "read of a topic": (self._reads, 0.05),
        }
        self._threads = [threading.Thread(target=self._repeat, args=(name, *each)) for name, each in work.items()]
        self._threads.append(threading.Thread(target=self._guarded, args=(self._follow,)))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def sample(self) -> dict[str, float]:
        """Return what the process has now, and median and 99th percentile of the latencies since the last sample, s."""
        gc.collect()
        sample: dict[str, float] = {
            "memory": resident_size(),
            "files": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
            "objects": len(gc.get_objects()),
            "disk": disk_size(self._path),
        }
        for name, found in self._latencies.items():
            times = [found.popleft() for _ in range(len(found))]
            if len(times) > 1:
                sample[name] = median(times)
                sample[f"{name}, p99"] = quantiles(times, n=100)[98]
        return sample

    # -- threads ------------------------------------------------------------------------------------------------------

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            self.errors.append(error)
            raise

    def _repeat(self, name: str, call: Callable[[int], None], pause_s: float) -> None:
        def run() -> None:
            found = self._latencies[name] = deque(maxlen=100_000)
            number = 0
            while not self._is_over.wait(pause_s):
                begin_s = time.perf_counter()
                call(number)
                found.append(time.perf_counter() - begin_s)
                number += 1

        self._guarded(run)

    def _turns(self) -> Callable[[int], None]:
        producer, consumer = self._store.producer(linger_ms=0), self._store.consumer()
        consumer.assign([("turns", 0), ("turns", 1)])
        consumer.seek_to_beginning()

        def turn(number: int) -> None:
            producer.send("turns", VALUE, partition=number % 2)
            if not consumer.poll(30_000):
                raise AssertionError("a record that was sent was not polled")

        return turn

    def _sending(self) -> Callable[[int], None]:
        producer = self._store.producer(linger_ms=0)

        def send(_: int) -> None:
            self._sent_s.append(time.perf_counter())
            producer.send("followed", VALUE, partition=0)

        return send

    def _follow(self) -> None:
        found = self._latencies["handed out"] = deque(maxlen=100_000)
        with self._store.consumer() as consumer:
            consumer.assign([("followed", 0)])
            consumer.seek_to_beginning()
            while not self._is_over.is_set():
                for records in consumer.poll(100).values():
                    now_s = time.perf_counter()
                    found.extend(now_s - self._sent_s.popleft() for _ in records)

    def _transactions(self) -> Callable[[int], None]:
        producer = self._store.producer(transactional_id="soak")
        producer.init_transactions()

        def transact(number: int) -> None:
            producer.begin_transaction()
            producer.send("orders", VALUE, partition=0)
            producer.send("payments", VALUE, partition=1)
            producer.send_offsets_to_transaction({("orders", 0): number}, group_id="soak")
            if number % 10:
                producer.commit_transaction()
            else:
                producer.abort_transaction()

        return transact

    def _topics(self, number: int) -> None:
        name = f"passing-{number}"
        self._store.create_topic(name, 3)
        with self._store.producer(transactional_id=f"passing-{number % 100}") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send(name, VALUE)
        self._store.delete_topic(name)

    def _groups(self, number: int) -> None:
        with self._store.consumer("turns", group_id=f"group-{number}", auto_offset_reset="earliest") as consumer:
            consumer.poll(10)
            consumer.commit()

    def _reads(self, _: int) -> None:
        if len(list(self._store.read("small"))) != 10:
            raise AssertionError("not all records were read")


def resident_size() -> int:
    """Bytes of memory that the process has."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def disk_size(path: Path) -> int:
    """Bytes of all logs below a directory that changes meanwhile."""
    size = 0
    for directory, _, names in os.walk(path):
        for name in names:
            with suppress(FileNotFoundError):
                size += os.stat(os.path.join(directory, name)).st_size if name.endswith(".log") else 0
    return size


def verdict(samples: list[dict[str, float]]) -> list[str]:
    """Return what has grown, in words; empty if all is as in the first sample.

    >>> verdict([{"files": 20, "threads": 9}, {"files": 21, "threads": 9}])
    []
    >>> verdict([{"files": 20}, {"files": 90}])
    ['files: 20 at first, 90 at the end']
    """
    first, last = samples[0], samples[-max(len(samples) // 4, 1) :]
    grown = []
    for name, value in first.items():
        if name.endswith("p99"):
            continue  # of one thread on a busy machine: shown, not judged
        factor, amount = BOUNDS.get(name, LATENCY_BOUND)
        now = median(sample[name] for sample in last if name in sample)
        if now > value * factor + amount:
            grown.append(f"{name}: {value:.6g} at first, {now:.6g} at the end")
    return grown


def soaked(
    seconds: float, sample_count: int = SAMPLE_COUNT, *, told: Callable[[str], object] = print
) -> list[dict[str, float]]:
    """Use a new store for so long, and return the samples; the first comes after a full share of the time.

    Raises:
        AssertionError: a thread failed, or a task of the store.
    """
    with tempfile.TemporaryDirectory() as directory, logstore.open(Path(directory) / "data", config=CONFIG) as store:
        store.directory.start()
        soak = Soak(store, Path(directory))
        samples = []
        try:
            for _ in range(sample_count):
                time.sleep(seconds / sample_count)
                samples.append(soak.sample())
                told(json.dumps({name: round(value, 6) for name, value in samples[-1].items()}))
                if soak.errors or store.failures:
                    raise AssertionError(f"{soak.errors} {dict(store.failures)}")
        finally:
            soak.stop()
        return samples


def main() -> int:
    """Write `soak.json` and `soak.svg` into the directory that is given; return 1 if something has grown."""
    out = Path(sys.argv[1])
    out.mkdir(exist_ok=True)
    seconds = float(os.environ.get("LOGSTORE_SOAK_SECONDS", "3600"))
    samples = soaked(seconds)
    (out / "soak.json").write_text(json.dumps(samples))
    (out / "soak.svg").write_text(drawn(samples, seconds / 60))
    grown = verdict(samples)
    print("\n".join(grown) or f"After {seconds / 60:.0f} minutes all is as after the first of {SAMPLE_COUNT} parts.")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
