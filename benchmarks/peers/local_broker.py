"""A real broker on this machine for the benchmarks of clients: started when it is first asked for."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

from benchmarks.measured import Side
from benchmarks.peers.kafka_log import BROKER_JVM_OPTIONS
from benchmarks.peers.warm_kafka import oracle
from tests.kafka.broker import Broker

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


def default_broker(directory: Path, *, is_formatted: bool = False) -> Broker:
    """A broker as its own scripts start it, with a broker's own defaults.

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
        self.filled: set[str] = set()  # topics that a benchmark has written what it reads to

    @property
    def bootstrap(self) -> str:
        """Its address.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
        """
        if self._bootstrap is None:
            self._broker = default_broker(self.directory)
            self._bootstrap = self._stack.enter_context(self._broker.running(signal.SIGTERM))
        return self._bootstrap

    def topic(self, name: str, partition_count: int = 1) -> str:
        """The name of a topic that is there now."""
        if name not in self._topics:
            words = ["--create", "--topic", name, "--partitions", str(partition_count)]
            command = "org.apache.kafka.tools.TopicCommand"
            oracle().run(command, *words, "--bootstrap-server", self.bootstrap, cwd=self.directory.parent)
            self._topics.add(name)
        return name

    def asked(self, side: Side) -> Side:
        """The side, after which the broker stands still (SIGSTOP) until it is asked again, or `go_on`.

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
        """Stop it."""
        self.go_on()
        self._stack.close()
