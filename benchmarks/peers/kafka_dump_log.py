"""The real `kafka-dump-log`, with the options that Kafka's `kafka-run-class.sh` gives its JVM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measured import Side
from benchmarks.peers.processes import run
from benchmarks.peers.warm_kafka import oracle

DUMP_CLASS = "org.apache.kafka.tools.DumpLogSegments"

# KAFKA_HEAP_OPTS and KAFKA_JVM_PERFORMANCE_OPTS of bin/kafka-run-class.sh 4.3.1
JVM_OPTIONS = (
    "-XX:-UseSerialGC",
    "-XX:TieredStopAtLevel=4",
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


def kafka_dump_log(argv: Sequence[str], output: Path, cwd: Path) -> Side:
    """Seconds of the tool from start to exit, what it prints going to `output`."""

    def side() -> float:
        return run(oracle().command(DUMP_CLASS, *argv, options=JVM_OPTIONS), output, cwd).wall_s

    return side
