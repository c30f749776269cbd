"""The append of a job's rows to a store in one transaction; the only module here that opens a store.

This process has the lock of the directory from the beginning of the transaction to its end. So a job's transaction that
is open when a store is opened belongs to a dead driver, and is aborted.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import logstore
from logstore import clock
from logstore.client.producer.config import parse_producer_config
from logstore.client.producer.queues import partitions_for_keys
from logstore.client.store import Store
from logstore.columns.any_columns import timestamps_ms
from logstore.columns.arrow_columns import bytes_column
from logstore.columns.batch_table import Int64Array
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.config.broker import parse_broker_config
from logstore.coordinator.transactions.outcomes import ProducerIdentity
from logstore.coordinator.transactions.transitions import ONGOING
from logstore.disk.lock import is_lock_held
from logstore.errors import (
    DataDirectoryError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogstoreError,
    ProducerFencedError,
    UnknownTopicOrPartitionError,
)
from logstore.log.append.columns import COLUMNS_BATCH_SIZE

from .staging import staged_batches
from .write_options import ID_PREFIX, WriteOptions

CHUNK_SIZE = 32 << 20  # bytes of rows that are sorted by partition at once
RATE_MIN = 10_000  # bytes per ms; slower than any append, for the default timeout of the transaction
LOCK_INTERVAL_S = 0.2
_NOWHERE = -1
OVERTAKEN = (InvalidProducerEpochError, InvalidTxnStateError, ProducerFencedError)
_TIMEOUT_MS_MAX = 2**31 - 1
# no limit here: the topic limits the size of a row
_SIZES = dict.fromkeys(("max.request.size", "buffer.memory"), 2**31 - 1)
_TIMEOUT_MAX, _TIMEOUT = "transaction.max.timeout.ms", "transaction.timeout.ms"
_MAKE_TOPIC = "create it with Store.create_topic, or set option partitions, and the job creates it"


class StagedJob(NamedTuple):
    """The staged rows of a job.

    Attributes:
        files: path and number of rows of each, in the order of the tasks.
        size: bytes of all rows.
        topics: the topics of all rows.
        schema: the schema of the files.
    """

    files: list[tuple[str, int]]
    size: int
    topics: list[str]
    schema: pa.Schema


def check(options: WriteOptions) -> None:
    """Check what can be checked before anything is computed.

    Raises:
        UsageError: a wrong configuration of the producer.
        UnknownTopicOrPartitionError: the topic is missing, and option `partitions` too.
        DataDirectoryError: the data directory is missing, and option `partitions` too.
    """
    parse_producer_config(_producer_config(options, 0))
    if options.partition_count is not None:
        return
    if not os.path.isdir(options.path):
        raise DataDirectoryError("there is no data directory to write to", path=options.path, advice=_MAKE_TOPIC)
    with logstore.open(options.path, read_only=True) as store:
        if options.topic is not None and options.topic not in store.topics:
            raise _unknown(options.topic)


def produce(options: WriteOptions, job: StagedJob) -> None:
    """Append the rows of a job and commit them; after an error none is visible, unless a note on it says otherwise."""
    config = _producer_config(options, job.size)
    is_committed = False
    store = _opened(options, config)
    try:
        with store:
            _abort_left_over(store)
            _make_topics(store, job.topics, options.partition_count)
            _Transaction(store, config, options).run(job)
            is_committed = True
    except LogstoreError as error:
        if is_committed:
            error.add_note("The rows of the job were committed before this.")
        raise


def _producer_config(options: WriteOptions, size: int) -> dict[str, Any]:
    """Return the configurations of the job's producer; the default timeout fits a job of `size` bytes."""
    timeout_ms = min(max(parse_broker_config({})[_TIMEOUT_MAX], size // RATE_MIN), _TIMEOUT_MS_MAX)
    return {_TIMEOUT: timeout_ms, **_SIZES, **options.producer, "transactional.id": options.transactional_id}


def _opened(options: WriteOptions, producer_config: Mapping[str, Any]) -> Store:
    """Open the store when its lock is free; it allows the producer's transaction timeout."""
    parsed = parse_producer_config(producer_config)
    end_s = clock.monotonic_s() + parsed["max.block.ms"] / 1000
    timeout_ms_max = max(parse_broker_config({})[_TIMEOUT_MAX], parsed[_TIMEOUT])
    broker_config = {"logstore.durable.commits": True, _TIMEOUT_MAX: timeout_ms_max}
    while True:
        try:
            return logstore.open(options.path, config=broker_config)
        except DataDirectoryError as error:
            if not is_lock_held(error) or clock.monotonic_s() >= end_s:
                raise
        threading.Event().wait(LOCK_INTERVAL_S)


def _abort_left_over(store: Store) -> None:
    """Abort the open transactions of jobs, whose drivers are dead: this process has the lock.

    Other transactions are left to their timeouts: a client of a broker that is not running may still be alive.
    """
    for one in list(store.transactions):
        if one.state is ONGOING and one.transactional_id.startswith(ID_PREFIX):
            identity = ProducerIdentity(one.producer_id, one.producer_epoch)
            store.transactions.end_transaction(one.transactional_id, identity, is_commit=False)


def _make_topics(store: Store, topics: list[str], partition_count: int | None) -> None:
    missing = [topic for topic in topics if topic not in store.topics]
    if missing and partition_count is None:
        raise _unknown(missing[0])
    for topic in missing:
        store.create_topic(topic, partition_count)


def _unknown(topic: str) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(f"Topic {topic} not present in metadata", found=topic, advice=_MAKE_TOPIC)


class _Transaction:
    """The transaction of a job."""

    def __init__(self, store: Store, config: Mapping[str, Any], options: WriteOptions) -> None:
        self._store = store
        self._producer = store.producer(**config)
        self._topic = options.topic
        self._placings: dict[str, Placing] = {}

    def run(self, job: StagedJob) -> None:
        """Append all rows and commit; abort after an error."""
        producer = self._producer
        producer.init_transactions()
        producer.begin_transaction()
        try:
            for rows in _chunks(job):
                for topic, rows_of_topic in self._by_topic(rows):
                    self._send(topic, rows_of_topic)
        except BaseException as error:
            self._abort(error)
            raise
        try:
            producer.commit_transaction()
        except LogstoreError as error:
            _advise(error)
            if not isinstance(error, OVERTAKEN):
                error.add_note("The store decides whether the rows are committed when it is opened again.")
            raise

    def _abort(self, cause: BaseException) -> None:
        _advise(cause)
        try:
            self._producer.abort_transaction()
        except LogstoreError as error:
            cause.add_note(f"The transaction could not be aborted: {error}. It ends when it times out.")

    def _by_topic(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        if self._topic is not None:
            yield self._topic, rows
            return
        column = rows["topic"].combine_chunks().dictionary_encode()
        codes = column.indices.to_numpy()
        names = column.dictionary.to_pylist()
        for code, name in enumerate(names):
            yield name, rows if len(names) == 1 else rows.take(pa.array(np.flatnonzero(codes == code)))

    def _send(self, topic: str, rows: pa.Table) -> None:
        """Send the rows of one topic to their partitions, in their order."""
        columns = _record_columns(rows, self._store.now_ms())
        named = rows["partition"] if "partition" in rows.column_names else None
        placed = self._placing(topic).partitions(columns, named)
        order = np.argsort(placed, kind="stable")
        partitions, starts = np.unique(placed[order], return_index=True)
        for partition, of_partition in zip(partitions.tolist(), np.split(order, starts[1:]), strict=True):
            part = columns.take(of_partition)
            self._producer.send_columns(
                topic, part.values, part.keys, part.timestamps, part.headers, partition=partition
            )

    def _placing(self, topic: str) -> Placing:
        if topic not in self._placings:
            count = len(self._producer.partitions_for(topic))
            ignores_keys = self._producer.config["partitioner.ignore.keys"]
            self._placings[topic] = Placing(topic, count, ignores_keys=ignores_keys)
        return self._placings[topic]


class Placing:
    """Chooses partitions of a topic's rows like the Java producer (`KafkaProducer.partition`, `BuiltInPartitioner`).

    A row goes to the partition that it names, else to the one of its key, as in Java. Other rows go to a random
    partition together until they fill a batch.
    """

    def __init__(self, topic: str, partition_count: int, *, ignores_keys: bool) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._ignores_keys = ignores_keys
        self._partition = random.randrange(partition_count)
        self._placed_size = 0  # since the partition was drawn

    def partitions(self, columns: RecordColumns, named: pa.ChunkedArray | None) -> Int64Array:
        """Return int64[n]: the partition of each row; `named` has the partitions that rows name, or null.

        Raises UnknownTopicOrPartitionError for one that the topic does not have.
        """
        placed = np.full(len(columns), _NOWHERE, np.int64)
        if named is not None:
            placed[:] = named.fill_null(_NOWHERE).to_numpy()
            self._require_present(int(placed.max(initial=_NOWHERE)))
        if columns.keys is not None and not self._ignores_keys:
            placed = np.where(placed < 0, partitions_for_keys(columns.keys, self._partition_count), placed)
        is_free = placed < 0
        if is_free.any():
            parts = (part for part in (columns.keys, columns.values, columns.headers) if part is not None)
            sizes = sum((np.maximum(part.sizes, 0) for part in parts), np.zeros(len(columns), np.int64))
            placed[is_free] = self._sticky(sizes[is_free])
        return placed

    def _require_present(self, partition: int) -> None:
        if partition >= self._partition_count:
            raise UnknownTopicOrPartitionError(
                f"Partition {partition} of topic {self._topic} with partition count {self._partition_count} is not "
                "present",
                found=f"{self._topic}-{partition}",
            )

    def _sticky(self, sizes: Int64Array) -> Int64Array:
        """Return int64[n]: a random partition for each run of rows that fill a batch."""
        befores = np.cumsum(sizes) - sizes + self._placed_size
        turns, turn_of = np.unique(befores // COLUMNS_BATCH_SIZE, return_inverse=True)
        drawn = [random.randrange(self._partition_count) if turn else self._partition for turn in turns.tolist()]
        self._partition = drawn[-1]
        self._placed_size = int(befores[-1] + sizes[-1] - turns[-1] * COLUMNS_BATCH_SIZE)
        return np.array(drawn, np.int64)[turn_of]


def _advise(error: BaseException) -> None:
    if isinstance(error, OVERTAKEN):
        error.advice = error.given_advice or f"if the job took too long, give it a longer kafka.{_TIMEOUT}"


def _chunks(job: StagedJob) -> Iterator[pa.Table]:
    """Iterate over all rows, about `CHUNK_SIZE` bytes at a time."""
    held: list[pa.RecordBatch] = []
    size = 0
    for path, row_count in job.files:
        for batch in staged_batches(path, row_count):
            held.append(batch)
            size += batch.nbytes
            if size >= CHUNK_SIZE:
                yield pa.Table.from_batches(held, job.schema)
                held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, job.schema)


def _record_columns(rows: pa.Table, now_ms: int) -> RecordColumns:
    """Return staged rows as columns of records; a missing timestamp becomes `now_ms`."""
    bytes_columns: dict[str, BytesColumn | None] = {
        name: bytes_column(rows[name]) if name in rows.column_names else None for name in ("key", "value", "headers")
    }
    timestamps = None
    if "timestamp" in rows.column_names:
        timestamps = timestamps_ms(rows["timestamp"].fill_null(now_ms))
    return RecordColumns(
        rows.num_rows, bytes_columns["key"], bytes_columns["value"], timestamps, bytes_columns["headers"]
    )
