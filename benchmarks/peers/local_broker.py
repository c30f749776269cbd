"""A real broker on this machine for the benchmarks of clients: started when it is first asked for."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

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
        self._topics: set[str] = set()
        self.filled: set[str] = set()  # topics that a benchmark has written what it reads to

    @property
    def bootstrap(self) -> str:
        """Its address.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
        """
        if self._bootstrap is None:
            broker = default_broker(self.directory)
            self._bootstrap = self._stack.enter_context(broker.running(signal.SIGTERM))
        return self._bootstrap

    def topic(self, name: str, partition_count: int = 1) -> str:
        """The name of a topic that is there now."""
        if name not in self._topics:
            words = ["--create", "--topic", name, "--partitions", str(partition_count)]
            command = "org.apache.kafka.tools.TopicCommand"
            oracle().run(command, *words, "--bootstrap-server", self.bootstrap, cwd=self.directory.parent)
            self._topics.add(name)
        return name

    def close(self) -> None:
        """Stop it."""
        self._stack.close()
