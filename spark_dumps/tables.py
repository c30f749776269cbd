"""What a table is to Spark: its columns, its tasks, and what a task gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import DataType, StringType, StructType

from logstore.errors import DataDirectoryError, LogstoreError, UsageError

from .directories import ListedPartition, chosen_partitions, relist
from .options import Options, TopicChoice
from .pyspark_parts import freeze_imports
from .schemas import arrow_schema, check_schema, struct_of

ROWS_A_BATCH = 4096
PARTITIONS_A_TASK = 16
MODULES = {  # where each table is, by its name in capitals; one that has a module of its own is called TABLE
    **{name: name for name in ("records", "batches", "transactions", "findings")},
    **dict.fromkeys(("topics", "producers", "aborted", "index_entries"), "partition_tables"),
    **dict.fromkeys(("group_offsets", "transaction_state"), "coordinator_tables"),
}
MICROSECONDS_PER_MS = 1000
NO_TIMESTAMP = -1

Columns = dict[str, DataType]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        columns: all that a given schema may ask for, but the one for what is damaged.
        shown: of these the ones that are there where no schema is given; None for all.
        plan: the tasks.
        read: what one task gives, in the columns of a schema.
    """

    columns: Columns
    shown: Callable[[Options], list[str]] | None
    plan: Callable[[Options], list[InputPartition]]
    read: Callable[[InputPartition, Options, pa.Schema], Iterator[pa.RecordBatch]]


@dataclass
class PartitionsTask(InputPartition):
    """A task over whole partitions."""

    partitions: tuple[ListedPartition, ...]


def partition_table(
    columns: Columns,
    rows: Callable[[ListedPartition, Options], Iterable[Row | LogstoreError]],
    *,
    topic: str | None = None,
) -> Table:
    """A table whose rows are made one partition at a time.

    Args:
        rows: of one partition, and what is broken of it; what a row does not name is null.
        topic: the one that is looked at, whatever the options choose.
    """
    only = None if topic is None else TopicChoice(topics=frozenset({topic}))

    def plan(options: Options) -> list[InputPartition]:
        return [*grouped(chosen_partitions(options, only))]

    def read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        assert isinstance(task, PartitionsTask)
        for partition in task.partitions:
            now = relist(partition)
            yield from _batches(now, rows(now, options), options, schema)

    return Table(columns, None, plan, read)


def grouped(partitions: Iterable[ListedPartition]) -> Iterator[PartitionsTask]:
    """Tasks of some partitions each."""
    remaining = iter(partitions)
    while group := tuple(islice(remaining, PARTITIONS_A_TASK)):
        yield PartitionsTask(group)


def _batches(
    partition: ListedPartition, rows: Iterable[Row | LogstoreError], options: Options, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow, some thousands at a time, and what is broken between them."""
    topic, number = partition.topic, partition.partition
    for _, group in groupby(_told(partition, rows), lambda row: isinstance(row, LogstoreError)):
        while part := list(islice(group, ROWS_A_BATCH)):
            for error in part:
                if isinstance(error, LogstoreError):
                    yield from options.damage_rows(error, topic, number, schema)
            held: list[Row] = [
                {"topic": topic, "partition": number, **row} for row in part if not isinstance(row, LogstoreError)
            ]
            if held:
                yield batch_of(held, schema)


def _told(partition: ListedPartition, rows: Iterable[Row | LogstoreError]) -> Iterator[Row | LogstoreError]:
    """Rows, and the error that ends them as the last; a file that is gone is raised whatever the mode."""
    try:
        yield from rows
    except DataDirectoryError as error:
        raise DataDirectoryError(
            "a file of the partition cannot be read",
            path=partition.files.path,
            found=error,
            advice="if retention or compaction took it away meanwhile, run the query again",
        ) from error
    except LogstoreError as error:
        yield error


def row_of(columns: Columns, *things: object, **values: Any) -> Row:
    """A row of the values, and of the attributes of the things that are called as other columns of the table."""
    names = columns.keys() - values.keys()
    found = {name: getattr(one, name) for one in things for name in names if hasattr(one, name)}
    return {**found, **values}


def batch_of(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows, with times in ms, as Arrow; what a row does not name is null."""
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        if pa.types.is_timestamp(field.type):
            values = list(map(_microseconds, values))
        columns.append(pa.array(values, field.type))
    return pa.record_batch(columns, schema=schema)


def _microseconds(timestamp_ms: int | None) -> int | None:
    """A time as a column of Spark's timestamps takes it; None for none, and for one that Spark has not."""
    if timestamp_ms is None or timestamp_ms == NO_TIMESTAMP:
        return None
    micros = timestamp_ms * MICROSECONDS_PER_MS
    return micros if -(2**63) <= micros < 2**63 else None


def find_table(name: str) -> Table:
    """The table of that name.

    Raises:
        UsageError: there is none.
    """
    if name not in MODULES:
        raise UsageError("kafka_segments has no such table", expected="one of " + ", ".join(MODULES), found=name)
    module = MODULES[name]
    table: Table = getattr(import_module(f".{module}", __package__), "TABLE" if module == name else name.upper())
    return table


def schema_of(options: Options) -> StructType:
    """The columns of the options' table where no schema is given."""
    table = find_table(options.table)
    return struct_of(table.columns, None if table.shown is None else table.shown(options))


class TableReader(DataSourceReader):
    """Plans on the driver, reads in tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """For the columns of `schema`; raises UsageError for one that the table has not."""
        check_columns(find_table(options.table), options, schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """The tasks; one that gives nothing where there is nothing to read."""
        table = find_table(self._options.table)
        freeze_imports()
        return table.plan(self._options) or [PartitionsTask(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if partition != PartitionsTask(()):
            schema = arrow_schema(self._schema)
            table = find_table(self._options.table)
            freeze_imports()
            yield from table.read(partition, self._options, schema)


def check_columns(table: Table, options: Options, schema: StructType) -> None:
    """Raise UsageError for a column that the table has not."""
    check_schema(schema, {**table.columns, options.corrupt_column: StringType()}, options.table)
