"""The data source without a JVM: options, tasks and their rows as Spark's driver and workers ask for them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition

from spark_dumps import planning
from spark_dumps.schemas import parse_columns, struct_of
from spark_dumps.source import KafkaSegments

Row = dict[str, Any]


class Planned:
    """One query: planned when it is made, read when it is asked for."""

    def __init__(self, path: Path | str, schema: str | None = None, **options: Any) -> None:
        texts = {name: str(value) for name, value in options.items()}
        source = KafkaSegments({"path": str(path), **texts})
        chosen = source.schema() if schema is None else struct_of(parse_columns(schema))
        self.reader = source.reader(chosen)
        self.tasks: list[InputPartition] = pickle.loads(pickle.dumps(list(self.reader.partitions())))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What all tasks give, through a pickled reader as on an executor."""
        reader = pickle.loads(pickle.dumps(self.reader))
        for task in self.tasks:
            yield from reader.read(task)

    def rows(self) -> list[Row]:
        """The same as dicts."""
        return [row for batch in self.batches() for row in batch.to_pylist()]

    def offsets(self) -> list[int]:
        """The column `offset`, without rows for damage."""
        return [row["offset"] for row in self.rows() if row.get("_corrupt_record") is None]


def without_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a log go when the first task is put together."""
    real = planning.mark_of

    def take_away(log: str, size: int) -> int:
        path.unlink(missing_ok=True)
        return real(log, size)

    monkeypatch.setattr(planning, "mark_of", take_away)


class Executors:
    """A Spark context whose executors see the directory as `before` leaves it; `after` puts it back."""

    def __init__(self, before: Callable[[], Any] = lambda: None, after: Callable[[], Any] = lambda: None) -> None:
        self.before, self.after, self.job_count, self.defaultParallelism = before, after, 0, 2

    def parallelize(self, things: list[Any], count: int) -> Executors:
        self._things = pickle.loads(pickle.dumps(things))
        return self

    def map(self, function: Callable[[Any], Any]) -> Executors:
        self._function = pickle.loads(pickle.dumps(function))
        return self

    def collect(self) -> list[Any]:
        self.job_count += 1
        self.before()
        try:
            return [pickle.loads(pickle.dumps(self._function(thing))) for thing in self._things]
        finally:
            self.after()
