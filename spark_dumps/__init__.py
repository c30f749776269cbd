"""Kafka's data directories as tables of Apache Spark 4.0 and newer: no broker, no connector jar, no second copy.

    import spark_dumps
    spark = spark_dumps.session()                       or spark_dumps.register(spark), with a session of your own
    records = spark.read.format("kafka_segments").load("/var/lib/kafka/data")
    records.groupBy("topic", "partition").count().show()

The columns are those of Spark's own Kafka source, so queries need no change. `source` describes tables and options.
Executors import this package and open the same paths: install it on each machine, and share the paths (NFS, say).
"""

from __future__ import annotations

from .session import register, session

__all__ = ["register", "session"]
