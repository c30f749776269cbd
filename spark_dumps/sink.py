"""A write as Spark runs it: tasks stage their rows, the driver commits them all in one transaction, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from logstore import clock
from logstore.disk.names import child, parent
from logstore.errors import ProducerFencedError, UsageError

from .staged_rows import staged_pieces, staged_schema
from .staging import StagedFile, StagingDirectory
from .write_options import WriteOptions, find_columns, parse_write_options, require_no_internal_topic


@dataclass
class StagedRows(WriterCommitMessage):
    """What one task has staged.

    Attributes:
        name: of its file; None if it had no rows.
        size: bytes of the rows.
        topics: that the rows name.
    """

    name: str | None
    row_count: int
    size: int
    topics: frozenset[str]


class TransactionalSink(DataSourceArrowWriter):
    """One job; made on the driver, sent to the tasks, and brought back to the driver to end it."""

    def __init__(self, options: WriteOptions, columns: Mapping[str, int], staging: StagingDirectory) -> None:
        """`columns`: of `find_columns`."""
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
            for batch in _chained(first, batches):
                for piece in staged_pieces(batch, self._columns):
                    topics.update(_topics(piece))
                    file.append(piece)
        return StagedRows(file.name, file.row_count, file.size, frozenset(topics))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Append what was staged, and let it be seen.

        Raises:
            ProducerFencedError: a newer job with the same transactional id has begun.
            LogstoreError: nothing of the job is to be seen, unless the error says otherwise.
        """
        staged = [message for message in messages if isinstance(message, StagedRows) and message.name is not None]
        try:
            if staged:
                self._produce(staged)
        finally:
            self._staging.discard()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what was staged."""
        self._staging.discard()

    def _produce(self, staged: list[StagedRows]) -> None:
        from .writing import StagedJob, produce

        if not self._staging.is_there():
            raise ProducerFencedError(
                None,
                path=self._staging.path,
                found="a job whose rows are gone: they were removed by a newer job with the same transactionalId, or "
                "nobody wrote any for a day",
                advice="run the job again, if it is not the newer one that counts",
            )
        topics = {self._options.topic} if self._options.topic is not None else set()
        topics.update(*(message.topics for message in staged))
        files = [(child(self._staging.path, message.name), message.row_count) for message in staged if message.name]
        size = sum(message.size for message in staged)
        produce(self._options, StagedJob(files, size, sorted(topics), staged_schema(self._columns)))


def make_sink(given: Mapping[str, str], schema: StructType, *, is_overwrite: bool) -> TransactionalSink:
    """The writer of a job, and its staging directory.

    Raises:
        UsageError: an option, a column or a save mode that cannot be.
        UnknownTopicOrPartitionError: there is no such topic, and none is to be made.
        DataDirectoryError: the staging directory cannot be made; there is no data directory, and none is to be made.
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


def _chained(first: pa.RecordBatch, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from others


def _topics(piece: pa.RecordBatch) -> list[str]:
    """The topics that rows name."""
    if "topic" not in piece.schema.names:
        return []
    topics: list[str] = pc.unique(piece["topic"]).to_pylist()
    for topic in topics:
        require_no_internal_topic(topic)
    return topics
