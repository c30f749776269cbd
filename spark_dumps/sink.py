"""A write as Spark runs it: tasks stage their rows, the driver commits them all in one transaction, or none.

Staged rows are checked, and have the columns that need no store:

| column | is |
|---|---|
| `topic` | string, not null; missing if one topic takes all rows |
| `partition` | int32, not negative; null: the partitioner chooses |
| `key`, `value` | large binary |
| `timestamp` | int64, ms since 1970, not negative; null: the time of the write |
| `headers` | large binary, encoded as in a record |

Only `value` is always there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from logstore import clock
from logstore.columns.arrow_columns import headers_columns
from logstore.columns.record_columns import BytesColumn
from logstore.disk.names import child, parent
from logstore.errors import ProducerFencedError, UsageError

from .schemas import MICROSECONDS_PER_MS
from .staging import StagedFile, StagingDirectory
from .write_options import WriteOptions, find_columns, parse_write_options, require_no_internal_topic

PIECE_SIZE = 8 << 20  # bytes of rows that the driver reads at once, unless one row has more
_ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_TYPES = {"topic": pa.string(), "partition": pa.int32(), "key": pa.large_binary()}
_TYPES |= {"value": pa.large_binary(), "timestamp": pa.int64(), "headers": pa.large_binary()}


@dataclass
class StagedRows(WriterCommitMessage):
    """The message of a task to the driver about its staged rows.

    Attributes:
        name: name of the file; None without rows.
        size: bytes of the rows.
        topics: the topics in column `topic`.
    """

    name: str | None
    row_count: int
    size: int
    topics: frozenset[str]


class TransactionalSink(DataSourceArrowWriter):
    """The writer of a job: made on the driver, sent to the tasks, and used by the driver to commit or abort."""

    def __init__(self, options: WriteOptions, columns: Mapping[str, int], staging: StagingDirectory) -> None:
        """`columns`: see `find_columns`."""
        self._options = options
        self._columns = dict(columns)
        self._staging = staging

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        """Stage the rows of one attempt of a task.

        Raises:
            UsageError, InvalidTopicError: a row that cannot be written.
            DataDirectoryError: the staging directory cannot be written.
        """
        batches = (batch for batch in iterator if batch.num_rows)
        first = next(batches, None)
        if first is None:
            return StagedRows(None, 0, 0, frozenset())
        topics: set[str] = set()
        with StagedFile(self._staging, staged_schema(self._columns)) as file:
            for batch in chain([first], batches):
                for piece in staged_pieces(batch, self._columns):
                    topics.update(_topics(piece))
                    file.append(piece)
        return StagedRows(file.name, file.row_count, file.size, frozenset(topics))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append all staged rows in one transaction.

        Raises:
            ProducerFencedError: a newer job with the same transactional id has begun.
            LogstoreError: no row is visible, unless a note on the error says otherwise.
        """
        staged = [message for message in messages if isinstance(message, StagedRows) and message.name is not None]
        try:
            if staged:
                self._produce(staged)
        finally:
            self._staging.discard()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._staging.discard()

    def _produce(self, staged: list[StagedRows]) -> None:
        from .writing import StagedJob, produce

        if not self._staging.is_there():
            raise ProducerFencedError(
                None,
                path=self._staging.path,
                found="no staged rows: they were removed by a newer job with the same transactionalId, or after a day "
                "without a write",
                advice="run the job again, unless the newer one replaces it",
            )
        topics = {self._options.topic} if self._options.topic is not None else set()
        topics.update(*(message.topics for message in staged))
        files = [(child(self._staging.path, message.name), message.row_count) for message in staged if message.name]
        size = sum(message.size for message in staged)
        produce(self._options, StagedJob(files, size, sorted(topics), staged_schema(self._columns)))


def make_sink(given: Mapping[str, str], schema: StructType, *, is_overwrite: bool) -> TransactionalSink:
    """Make the writer of a job, and its staging directory.

    Raises:
        UsageError: a wrong option, column or save mode.
        UnknownTopicOrPartitionError: the topic is missing, and option `partitions` too.
        DataDirectoryError: the staging directory cannot be made; the data directory is missing, and `partitions` too.
    """
    from .writing import check

    if is_overwrite:
        raise UsageError(
            "Save mode Overwrite not allowed for Kafka.", expected="append", advice='write with .mode("append")'
        )
    options = parse_write_options(given)
    columns = find_columns(schema, options.topic)
    check(options)
    place = parent(options.path) if options.staging_path is None else options.staging_path
    staging = StagingDirectory.make(place, options.path, options.transactional_id, clock.now_ms())
    return TransactionalSink(options, columns, staging)


def _topics(piece: pa.RecordBatch) -> list[str]:
    """Return the topics in the rows; raises InvalidTopicError for an internal one."""
    if "topic" not in piece.schema.names:
        return []
    topics: list[str] = pc.unique(piece["topic"]).to_pylist()
    for topic in topics:
        require_no_internal_topic(topic)
    return topics


def staged_schema(columns: Mapping[str, int]) -> pa.Schema:
    """Return the schema of staged rows with these columns; see `write_options.find_columns`."""
    return pa.schema([(name, kind) for name, kind in _TYPES.items() if name in columns])


def staged_pieces(batch: pa.RecordBatch, columns: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """Yield a batch of Spark in pieces of about `PIECE_SIZE` bytes with `staged_schema`.

    Args:
        columns: index in the batch by name.

    Raises:
        UsageError: a row that Kafka's producer refuses, with its message: no topic, a negative partition or timestamp,
            a header without a key.
    """
    schema = staged_schema(columns)
    found = {name: batch.column(index) for name, index in columns.items()}
    rows = pa.record_batch([_column(name, found) for name in schema.names], schema=schema)
    count = max(1, rows.num_rows * PIECE_SIZE // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, count):
        yield rows.slice(start, count)


def _column(name: str, found: Mapping[str, pa.Array]) -> pa.Array:
    column = found[name]
    if name == "topic" and column.null_count:
        raise UsageError(
            "The Kafka message data sent to the producer contains a null topic. Use the `topic` option for setting a "
            "default topic."
        )
    if name == "partition":
        _require_not_negative(column, "Invalid partition: {}. Partition number should always be non-negative or null.")
    if name == "timestamp":
        column = _milliseconds(column)
        _require_not_negative(column, "Invalid timestamp: {}. Timestamp should always be non-negative or null.")
    if name == "headers":
        return _as_arrow(headers_columns(column).encoded())
    return column.cast(_TYPES[name])


def _milliseconds(column: pa.Array) -> pa.Array:
    """Return timestamps in µs as ms, rounded down like Spark's cast to milliseconds."""
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    micros = pc.fill_null(column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64()), 0).to_numpy()
    return pa.array(np.floor_divide(micros, MICROSECONDS_PER_MS), mask=is_null)


def _require_not_negative(column: pa.Array, text: str) -> None:
    least = pc.min(column).as_py()
    if least is not None and least < 0:
        raise UsageError(text.format(least), java_class=_ILLEGAL_ARGUMENT)


def _as_arrow(column: BytesColumn) -> pa.Array:
    """Return a column, whose strings are contiguous, as Arrow's large binary."""
    offsets = np.append(column.starts[:1], column.ends)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
