"""The real UnifiedLog in a warm JVM of its own: orders in, times out (`java/LogBench.java`).

The JVM is stopped while it has no order, so that its compiler and its collector work in its own time and not in ours.
"""

from __future__ import annotations

import json
import signal
import subprocess
from types import TracebackType
from typing import Any

from tests.kafka.oracle import Oracle

# KAFKA_HEAP_OPTS of kafka-server-start.sh and KAFKA_JVM_PERFORMANCE_OPTS of kafka-run-class.sh 4.3.1
BROKER_JVM_OPTIONS = (
    "-XX:-UseSerialGC",
    "-XX:TieredStopAtLevel=4",
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


class KafkaLog:
    """A JVM that measures on order; use it in a `with` block."""

    def __init__(self, oracle: Oracle) -> None:
        """Start it; raises OracleUnavailableError through `oracle` where it cannot run."""
        self._process = subprocess.Popen(
            oracle.command("LogBench", options=BROKER_JVM_OPTIONS),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def measure(self, **order: Any) -> dict[str, int]:
        """{"ns", "count", "bytes"} of one order; see `LogBench.java`."""
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

    def __enter__(self) -> KafkaLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
