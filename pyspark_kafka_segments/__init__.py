"""The data source `kafka_segments`, where Spark looks for sources that nobody registers: in modules `pyspark_*`.

Spark imports them in a Python process beside the driver, so the package has to be in the environment of the driver or,
with Spark Connect, of the server. Clients of Spark Connect, `spark-sql` and other sessions need nothing of it.
"""

from __future__ import annotations

from spark_dumps.pyspark_parts import prepare_worker
from spark_dumps.source import KafkaSegments as DefaultSource

__all__ = ["DefaultSource"]

prepare_worker()  # Spark keeps the process for a minute, and PySpark would print a trace of its end
