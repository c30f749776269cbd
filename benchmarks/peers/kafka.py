"""The real Kafka as a peer: its log in one JVM that is kept warm, and a broker, both started when first asked.

What is not asked is stopped (SIGSTOP), so that its compiler, its collector and its flushes work in its own time.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.support.measure import PeerAbsentError, Side
from tests.support.broker import Broker
from tests.support.oracle import Oracle, OracleUnavailableError

# KAFKA_JVM_PERFORMANCE_OPTS of kafka-run-class.sh 4.3.1, in place of those that the tests start a JVM with
JVM_OPTIONS = (
    "-XX:-UseSerialGC",
    "-XX:TieredStopAtLevel=4",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
BROKER_JVM_OPTIONS = (*JVM_OPTIONS, "-Xmx1G", "-Xms1G")  # KAFKA_HEAP_OPTS of kafka-server-start.sh
# what a broker has if nothing is said, where the brokers of the tests have less, to start quickly
SETTINGS = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "background.threads": "10",
    "offsets.topic.num.partitions": "50",
    "transaction.state.log.num.partitions": "50",
    "log.segment.bytes": "1073741824",
    "log.index.size.max.bytes": "10485760",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "broker.session.timeout.ms": "600000",  # it stands still while others are measured
}
_LOADED = re.compile(r"Loaded (\d+) logs in (\d+)ms")


def oracle() -> Oracle:
    """Return the real Kafka.

    Raises:
        PeerAbsentError: they, Java or Maven are not there.
    """
    try:
        return Oracle()
    except OracleUnavailableError as unavailable:
        raise PeerAbsentError(str(unavailable)) from unavailable


class WarmKafka:
    """A JVM with Kafka's log in it: orders in, times out (`java/LogBench.java`)."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def measure(self, **order: Any) -> dict[str, int]:
        """Give one order and return {"ns", "count", "bytes"}.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
        """
        if self._process is None:
            command = oracle().command("LogBench", options=BROKER_JVM_OPTIONS)
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        self._process.send_signal(signal.SIGSTOP)
        if not answer:
            raise RuntimeError(f"the JVM ended on {order}")
        measured: dict[str, int] = json.loads(answer)
        return measured

    def seconds(self, *, call_count: int = 1, expected_count: int | None = None, **order: Any) -> float:
        """Return the seconds of one of `call_count` calls that the order is for.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
            RuntimeError: it did not come to `expected_count`, so it did something else than we.
        """
        answer = self.measure(**order)
        if expected_count is not None and answer["count"] != expected_count:
            raise RuntimeError(f"Kafka counted {answer['count']} instead of {expected_count} for {order}")
        return answer["ns"] / 1e9 / call_count

    @contextlib.contextmanager
    def holding(self, directory: Path) -> Iterator[None]:
        """Hold the log over a directory, recovered first, open meanwhile."""
        self.measure(op="hold", dir=str(directory), clean=False)
        yield
        self.measure(op="release")

    def close(self) -> None:
        """End the JVM."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


class HeldLog:
    """Kafka's log over a directory, held open in the JVM from the first order on."""

    def __init__(self, kafka: WarmKafka, directory: Path, producer_id: int) -> None:
        self.kafka, self.directory, self.producer_id = kafka, directory, producer_id
        self.sequence = 0  # of that producer, which goes on
        self._stack = contextlib.ExitStack()

    def seconds(self, op: str, count: int = 1, expected_count: int | None = None) -> float:
        """Return the seconds of one of `count` transactions or snapshots of that producer."""
        if self.sequence == 0:
            self._stack.enter_context(self.kafka.holding(self.directory))
        order = {"op": op, "count": count, "id": self.producer_id, "sequence": self.sequence}
        self.sequence += count
        return self.kafka.seconds(**order, call_count=count, expected_count=expected_count)

    def release(self) -> None:
        """Close it, if it was ever asked for."""
        self._stack.close()


def default_broker(directory: Path, *, is_formatted: bool = False) -> Broker:
    """Return a broker as its own scripts start it, with a broker's own defaults.

    Raises:
        PeerAbsentError: the real Kafka cannot run here.
    """
    return Broker(oracle(), directory, SETTINGS, [], is_formatted=is_formatted, jvm_options=BROKER_JVM_OPTIONS)


class LocalBroker:
    """One broker over a new directory."""

    def __init__(self, place: Path) -> None:
        self.directory = place / "data"
        self._stack = contextlib.ExitStack()
        self._bootstrap: str | None = None
        self._broker: Broker | None = None
        self._topics: set[str] = set()
        self._filled: set[str] = set()  # topics with the records that a benchmark reads

    @property
    def bootstrap(self) -> str:
        """The address of the broker, which is started.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
        """
        if self._bootstrap is None:
            self._broker = default_broker(self.directory)
            self._bootstrap = self._stack.enter_context(self._broker.running(signal.SIGTERM))
        return self._bootstrap

    def topic(self, name: str, partition_count: int = 1) -> str:
        """Create a topic unless it is there, and return its name."""
        if name not in self._topics:
            words = ["--create", "--topic", name, "--partitions", str(partition_count)]
            command = "org.apache.kafka.tools.TopicCommand"
            oracle().run(command, *words, "--bootstrap-server", self.bootstrap, cwd=self.directory.parent)
            self._topics.add(name)
        return name

    def fill(self, kafka: WarmKafka, name: str, record_count: int) -> None:
        """Write records of 100 bytes to a topic in one transaction, the first time."""
        if name not in self._filled:
            order = {"op": "transact", "bootstrap": self.bootstrap, "topic": self.topic(name)}
            kafka.measure(**order, records=record_count, count=1, size=100)
            self._filled.add(name)

    def asked(self, side: Side) -> Side:
        """Return the side, after which the broker stands still (SIGSTOP) until it is asked again, or `go_on`.

        So what it does in its own time takes nothing from those that are measured after it, as with `WarmKafka`.
        """

        def run() -> float:
            self.go_on()
            try:
                return side()
            finally:
                self._send(signal.SIGSTOP)

        return run

    def go_on(self) -> None:
        """Let it run."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        if self._broker is not None and self._broker.process is not None:
            self._broker.process.send_signal(number)

    def close(self) -> None:
        self.go_on()
        self._stack.close()


def broker_loading(directory: Path, log_count: int) -> Side:
    """Return a side: seconds for all logs of a copy of `directory`, which a store closed and each round closes again.

    Only what `LogManager` measures: not the start of the JVM, not the metadata, not the network.
    """
    copy = directory.with_name("of-the-broker")

    def side() -> float:
        if not copy.exists():
            shutil.copytree(directory, copy)
        broker = default_broker(copy, is_formatted=True)
        with broker.running(signal.SIGTERM):
            pass
        found = _LOADED.search(broker.log.read_text())
        if found is None or int(found[1]) != log_count:
            raise RuntimeError(f"the broker loaded {found and found[0]}, not {log_count} logs")
        return int(found[2]) / 1000

    return side
