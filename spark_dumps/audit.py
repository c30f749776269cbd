"""`logstore audit --spark`: the audit of a data directory as a Spark job."""

from __future__ import annotations

import os

from logstore.audit.finding import Finding, Severity, Where

from .session import session

SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def audit_with_spark(master: str, path: str, now_ms: int) -> list[Finding]:
    """All findings of the data directory at `path`, whose paths are absolute then.

    Args:
        master: as for `SparkSession.builder.master`; its executors see the same path.
        now_ms: the time that ages of transactions are counted to.

    Raises:
        UsageError: PySpark or Java is missing.
    """
    spark = session(master, SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    reader = spark.read.format("kafka_segments").option("table", "findings").option("now", now_ms)
    rows = reader.load(os.path.abspath(path)).collect()
    spark.stop()
    return [
        Finding(
            row.rule,
            Severity(row.severity),
            Where(row.path, row.topic, row.partition, row.position, row.offset),
            row.expected,
            row.found,
            row.advice,
        )
        for row in rows
    ]
