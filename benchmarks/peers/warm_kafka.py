"""The real log as the peer of many benchmarks: one JVM, started when it is first asked and kept warm."""

from __future__ import annotations

from typing import Any

from benchmarks.measured import PeerAbsentError
from benchmarks.peers.kafka_log import KafkaLog
from tests.kafka.oracle import Oracle, OracleUnavailableError


def oracle() -> Oracle:
    """The jars of the real Kafka.

    Raises:
        PeerAbsentError: they, Java or Maven are not there.
    """
    try:
        return Oracle()
    except OracleUnavailableError as unavailable:
        raise PeerAbsentError(str(unavailable)) from unavailable


class WarmKafka:
    """A JVM with Kafka's log in it."""

    def __init__(self) -> None:
        self._log: KafkaLog | None = None

    def measure(self, **order: Any) -> dict[str, int]:
        """{"ns", "count", "bytes"}, see `java/LogBench.java`.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
        """
        if self._log is None:
            self._log = KafkaLog(oracle())
        return self._log.measure(**order)

    def seconds(self, *, call_count: int = 1, expected_count: int | None = None, **order: Any) -> float:
        """Of one of `call_count` calls that the order is for.

        Raises:
            PeerAbsentError: the real Kafka cannot run here.
            RuntimeError: it did not come to `expected_count`, so it did something else than we.
        """
        answer = self.measure(**order)
        if expected_count is not None and answer["count"] != expected_count:
            raise RuntimeError(f"Kafka counted {answer['count']} instead of {expected_count} for {order}")
        return answer["ns"] / 1e9 / call_count

    def close(self) -> None:
        """End the JVM."""
        if self._log is not None:
            self._log.__exit__(None, None, None)
