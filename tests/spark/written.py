"""A write without a JVM: the options, tasks and the end of a job as Spark's driver and workers run them."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

import logstore
from logstore.columns.decoded_records import Record
from logstore.model import FetchIsolation
from spark_dumps.schemas import parse_columns, struct_of
from spark_dumps.sink import StagedRows, TransactionalSink
from spark_dumps.source import KafkaSegments
from tests.support.logs import records_of

Row = dict[str, Any]
_IN_UTC = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
)  # as Spark 4.0 does
ALL = "topic string, key binary, value binary, partition int, timestamp timestamp, headers headers"


class Job:
    """One job; each task is one call of `task`, through a pickled writer as on an executor."""

    def __init__(self, path: Path | str, schema: str = "key binary, value binary", **options: Any) -> None:
        texts = {name.replace("_", "."): str(value) for name, value in options.items()}
        self.schema = struct_of(parse_columns(schema))
        self.source = KafkaSegments({"path": str(path), **texts})
        writer = self.source.writer(self.schema, overwrite=False)
        assert isinstance(writer, TransactionalSink)
        self.writer = writer
        self.messages: list[StagedRows | None] = []

    @property
    def staging(self) -> Path:
        """The directory of the staged files, of which the job tells nobody."""
        return Path(self.writer._staging.path)

    def stage(self, *batches: Sequence[Row]) -> StagedRows:
        """What an attempt of a task answers that was given these rows, and maybe nobody asks for."""
        arrow = to_arrow_schema(self.schema, **_IN_UTC)
        rows = (pa.RecordBatch.from_pylist(list(batch), schema=arrow) for batch in batches)
        message: StagedRows = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(self.writer)).write(rows)))
        return message

    def task(self, *batches: Sequence[Row]) -> Job:
        self.messages.append(self.stage(*batches))
        return self

    def commit(self) -> None:
        """The end, of which Spark tells the writer's `abort` too if it fails."""
        try:
            pickle.loads(pickle.dumps(self.writer)).commit(self.messages)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """The end of a job of which a task has failed."""
        pickle.loads(pickle.dumps(self.writer)).abort([*self.messages, None])


def make_topics(path: Path, *, config: dict[str, Any] | None = None, **topics: int) -> Path:
    """A store with these topics of so many partitions."""
    with logstore.open(path) as store:
        for name, partition_count in topics.items():
            store.create_topic(name, partition_count, config)
    return path


def records(
    path: Path, topic: str = "orders", isolation: FetchIsolation = FetchIsolation.READ_COMMITTED
) -> dict[int, list[Record]]:
    """What a consumer gets of a topic, by partition."""
    with logstore.open(path, read_only=True) as store:
        return {
            partition: records_of(store.log(topic, partition), isolation=isolation)
            for partition in range(store.topics[topic].partition_count)
        }


def values(path: Path, topic: str = "orders", **how: Any) -> dict[int, list[bytes | None]]:
    return {partition: [record.value for record in of] for partition, of in records(path, topic, **how).items()}


def left_beside(path: Path) -> list[str]:
    """What is beside the data directory."""
    return sorted(one.name for one in path.parent.iterdir() if one != path)
