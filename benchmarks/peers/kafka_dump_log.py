"""The real `kafka-dump-log`, with the options that Kafka's `kafka-run-class.sh` gives its JVM."""

from __future__ import annotations

from tests.kafka.oracle import Oracle

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


def kafka_dump_log(oracle: Oracle, *argv: str) -> list[str]:
    """The command line of the real tool; raises OracleUnavailableError through `oracle` where it cannot run."""
    return oracle.command(DUMP_CLASS, *argv, options=JVM_OPTIONS)
