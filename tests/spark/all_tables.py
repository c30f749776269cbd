"""A program that reads all tables, writes, and follows a stream, and prints what came of it; to run it elsewhere.

    python all_tables.py MASTER DATA OUT SETTINGS [REGISTER]

`MASTER` is one of Spark's, or `-` for that of `spark-submit`. It knows the source by `REGISTER=session`
(`spark_dumps.session`), else as Spark finds it. `DATA` is a data directory, below `OUT` lies what it writes. `SETTINGS`
are of a new session, as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

TABLES = ["records", "batches", "transactions", "producers", "aborted", "index_entries", "group_offsets"]
TABLES += ["transaction_state", "topics", "findings"]
ATTEMPTS = 20


def session(master: str, settings: dict[str, str], register: str) -> Any:
    if register == "session":
        import spark_dumps

        return spark_dumps.session(None if master == "-" else master, settings)
    from pyspark.sql import SparkSession

    if master.startswith("sc:"):
        return SparkSession.builder.remote(master).getOrCreate()
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return (builder if master == "-" else builder.master(master)).getOrCreate()


def plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)  # Spark 4.0 has bytearrays


def digest(rows: list[Any]) -> list[Any]:
    text = sorted(json.dumps(row.asDict(recursive=True), default=plain) for row in rows)
    return [len(text), hashlib.sha256("\n".join(text).encode()).hexdigest()[:12]]


def answers(spark: Any, data: str, out: str) -> dict[str, Any]:
    def table(name: str, path: str = data, **options: Any) -> Any:
        return spark.read.format("kafka_segments").options(table=name, **options).load(path)

    found = {name: digest(table(name, now=1_900_000_000_000).collect()) for name in TABLES}
    committed = table("records", isolation_level="read_committed")
    found["committed"] = digest(committed.collect())
    copy = f"{out}/copy"
    writer = committed.select("key", "value").write.format("kafka_segments").mode("append")
    writer.option("topic", "copy").option("partitions", 2).option("stagingPath", out).save(copy)
    found["written"] = digest(table("records", copy).select("key", "value").collect())
    follow(spark, data, out)
    found["streamed"] = digest(spark.read.parquet(f"{out}/streamed").select("topic", "offset", "value").collect())
    return found


def follow(spark: Any, data: str, out: str) -> None:
    """Write what a stream follows to files; again, where Spark gave its Python worker up after 10 seconds."""
    for attempt in range(ATTEMPTS):
        stream = spark.readStream.format("kafka_segments").option("startingOffsets", "earliest").load(data)
        writing = stream.writeStream.trigger(availableNow=True).format("parquet")
        query = writing.option("checkpointLocation", f"{out}/checkpoint-{attempt}").start(f"{out}/streamed")
        try:
            query.awaitTermination()
            return
        except Exception as error:
            if "failed to connect back" not in str(error) or attempt == ATTEMPTS - 1:
                raise


if __name__ == "__main__":
    master, data, out, settings, *more = sys.argv[1:]
    spark = session(master, json.loads(settings), "".join(more))
    print(json.dumps({"version": spark.version, **answers(spark, data, out)}))
    spark.stop()
