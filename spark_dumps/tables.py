"""Tables of the data source: columns, planning of tasks, and reading of a task."""

from __future__ import annotations

import logging
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import DataType, StringType, StructType

from logstore.audit.cluster import Cluster
from logstore.disk.names import parent
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.layout.batch import NO_TIMESTAMP

from .directories import Unlisted, chosen_partitions, partitions_of_topic
from .listed_partition import ListedPartition, RootOffsets, list_again
from .options import Mode, Options
from .pyspark_parts import prepare_worker
from .schemas import MICROSECONDS_PER_MS, arrow_schema, check_schema, struct_of
from .seen import SeenFiles, packed

ROWS_A_BATCH = 4096
GROUP_COUNT = 16  # of groups, where the user does not say how many
MODULES = {  # of each table: a module of the same name has it as TABLE, another as its name in capitals
    **{name: name for name in ("records", "batches", "findings")},
    **dict.fromkeys(("topics", "producers", "aborted", "index_entries"), "partition_tables"),
    **dict.fromkeys(("transactions", "group_offsets", "transaction_state"), "followed_tables"),
}

_LOGGER = logging.getLogger("logstore")

Columns = dict[str, DataType]
Row = Any  # of `logstore.rows`


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        columns: all columns that a given schema may name, except the one for errors.
        shown: returns the columns without a given schema; None for all.
        plan: returns the tasks.
        read: yields the rows of a task, in the columns of a schema.
    """

    columns: Columns
    shown: Callable[[Options], list[str]] | None
    plan: Callable[[Options], list[InputPartition]]
    read: Callable[[InputPartition, Options, pa.Schema], Iterator[pa.RecordBatch]]


class CompressedTask(InputPartition):
    """A task that is pickled compressed, as names of files are alike."""

    def __reduce__(self) -> tuple[object, ...]:
        return _unpacked, (zlib.compress(pickle.dumps((type(self), self.__dict__)), 1),)


def _unpacked(state: bytes) -> InputPartition:
    kind, values = pickle.loads(zlib.decompress(state))
    task: InputPartition = kind(**values)
    return task


@dataclass
class PartitionsTask(CompressedTask):
    """A task over whole partitions, as the driver saw them."""

    partitions: tuple[SeenFiles, ...]


@dataclass
class UnlistedTask(InputPartition):
    """A task that gives the rows for partitions, and files of partitions, that cannot be listed."""

    unlisted: tuple[Unlisted, ...]

    def read(self, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield a row for each as the mode says."""
        for one in self.unlisted:
            yield from options.damage_rows(one.error, one.topic, one.partition, schema)

    def log_warnings(self) -> None:
        for one in self.unlisted:
            _LOGGER.warning("The query leaves out what cannot be read: %s", one.error)


def partition_table(
    columns: Columns, rows: Callable[[ListedPartition, Cluster], Iterable[Row]], *, topic: str | None = None
) -> Table:
    """Return a table whose rows are made one partition at a time.

    Args:
        rows: yields the rows of a partition, in the cluster around it, and errors of damage.
        topic: the topic to read, whatever the options choose.
    """

    def plan(options: Options) -> list[InputPartition]:
        found = chosen_partitions(options) if topic is None else partitions_of_topic(options, topic)
        return [*map(PartitionsTask, grouped(found.listed, options)), *tasks_of_unlisted(found.unlisted)]

    def read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        assert isinstance(task, PartitionsTask)
        # once a task: checkpoints and metadata log are as long as the directory has partitions
        offsets_of, cluster_of = cache(RootOffsets.of), cache(Cluster)
        for seen in task.partitions:
            seen.require()
            root = parent(seen.path)
            now = list_again(seen.path, seen.properties, offsets_of(root))
            yield from _batches(now, rows(now, cluster_of(root)), options, schema)

    return Table(columns, None, plan, read)


def tasks_of_unlisted(unlisted: Sequence[Unlisted]) -> list[InputPartition]:
    return [UnlistedTask(tuple(unlisted))] if unlisted else []


def grouped(partitions: Sequence[ListedPartition], options: Options) -> list[tuple[SeenFiles, ...]]:
    """Return the partitions in groups of about equal cost, at least `minPartitions`, by default some for each core."""
    seen = [partition.seen for partition in partitions]
    return [*packed(seen, lambda one: one.cost, options.partition_count_min or GROUP_COUNT)]


def _batches(
    partition: ListedPartition, rows: Iterable[Row], options: Options, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield rows as Arrow batches, with the rows for damage between them."""
    for is_damage, group in groupby(_with_errors(partition, rows), lambda row: isinstance(row, LogstoreError)):
        if is_damage:
            for error in group:
                yield from options.damage_rows(error, *partition.key, schema)
        else:
            while part := list(islice(group, ROWS_A_BATCH)):
                yield batch_of(part, schema)


def _with_errors(partition: ListedPartition, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows, then the error that ends them; raise DataDirectoryError in every mode."""
    try:
        yield from rows
    except DataDirectoryError as error:
        raise DataDirectoryError(
            "a file of the partition cannot be read",
            path=partition.files.path,
            found=error,
            advice="if retention or compaction removed it meanwhile, run the query again",
        ) from error
    except LogstoreError as error:
        yield error


def batch_of(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of one type, with times in ms, as an Arrow batch; a column that they do not have is null."""
    columns, names = [], rows[0]._fields
    for field in schema:
        values = [getattr(row, field.name) if field.name in names else None for row in rows]
        if pa.types.is_timestamp(field.type):
            values = list(map(_microseconds, values))
        columns.append(pa.array(values, field.type))
    return pa.record_batch(columns, schema=schema)


def _microseconds(timestamp_ms: int | None) -> int | None:
    """Return a time in µs, as Spark's; None for no time, and for one outside Spark's range."""
    if timestamp_ms is None or timestamp_ms == NO_TIMESTAMP:
        return None
    micros = timestamp_ms * MICROSECONDS_PER_MS
    return micros if -(2**63) <= micros < 2**63 else None


def find_table(name: str) -> Table:
    """Return the table of that name; raise UsageError if there is none."""
    if name not in MODULES:
        raise UsageError("kafka_segments has no such table", expected="one of " + ", ".join(MODULES), found=name)
    module = MODULES[name]
    table: Table = getattr(import_module(f".{module}", __package__), "TABLE" if module == name else name.upper())
    return table


def schema_of(options: Options) -> StructType:
    """Return the columns of the options' table without a given schema; mode PERMISSIVE adds the one for errors."""
    table = find_table(options.table)
    names = [*table.columns] if table.shown is None else table.shown(options)
    if options.mode is Mode.PERMISSIVE:
        names.append(options.corrupt_column)
    return struct_of({**table.columns, options.corrupt_column: StringType()}, names)


class TableReader(DataSourceReader):
    """Reader of a table: plans tasks on the driver, and reads them on executors."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises UsageError for a column of `schema` that the table does not have."""
        check_columns(find_table(options.table), options, schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; Spark needs at least one, which may have no rows."""
        table = find_table(self._options.table)
        prepare_worker()
        self._options.open_stores()
        tasks = table.plan(self._options)
        if not self._options.shows_damage(self._schema.names):
            for task in tasks:
                if isinstance(task, UnlistedTask):
                    task.log_warnings()
        return tasks or [PartitionsTask(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition != PartitionsTask(()):
            schema = arrow_schema(self._schema)
            table = find_table(self._options.table)
            prepare_worker()
            self._options.open_stores()
            if isinstance(partition, UnlistedTask):
                yield from partition.read(self._options, schema)
            else:
                yield from table.read(partition, self._options, schema)


def check_columns(table: Table, options: Options, schema: StructType) -> None:
    """Raise UsageError for a column that the table does not have."""
    check_schema(schema, {**table.columns, options.corrupt_column: StringType()}, options.table)
