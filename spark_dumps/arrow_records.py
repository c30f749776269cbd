"""Records as Arrow: each key and value is copied once, out of the mapped file or the decompressed stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logstore.columns.arrow_batches import gathered
from logstore.columns.batch_table import FIELD_NAMES, BatchTable, ByteArray, Int64Array
from logstore.columns.header_columns import HeaderColumns
from logstore.columns.record_windows import RecordWindow
from logstore.layout.batch import LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG

MICROSECONDS_PER_MS = 1000
MS_MAX = (2**63 - 1) // MICROSECONDS_PER_MS


class ArrowRecords:
    """Columns of table `records` for some records of a window.

    Args:
        batches: what the rows of the window are of.
        kept: int64, numbers of records in the window, ascending; or a slice of them.
    """

    def __init__(
        self, window: RecordWindow, batches: BatchTable, kept: Int64Array | slice, topic: str, partition: int
    ) -> None:
        self._window = window
        self._records = window.records
        self._batches = batches
        self._kept = kept
        self._count = window.records.offset[kept].size
        self._topic = topic
        self._partition = partition

    def batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """The columns of `schema`; what is not in `MAKERS` is null."""
        made = [MAKERS.get(field.name, ArrowRecords.nothing)(self) for field in schema]
        # a cast, even to what it is, imports `pyarrow.compute`, for which a worker's first task waits
        columns = [one if one.type == kind else one.cast(kind) for one, kind in zip(made, schema.types, strict=True)]
        return pa.record_batch(columns, schema=schema)

    def key(self) -> pa.Array:
        """binary"""
        records = self._records
        return binary(records.data, records.key_position[self._kept], records.key_size[self._kept])

    def value(self) -> pa.Array:
        """binary"""
        records = self._records
        return binary(records.data, records.value_position[self._kept], records.value_size[self._kept])

    def topic(self) -> pa.Array:
        """string"""
        return pa.repeat(pa.scalar(self._topic, pa.string()), self._count)

    def partition(self) -> pa.Array:
        """int32"""
        return pa.repeat(pa.scalar(self._partition, pa.int32()), self._count)

    def offset(self) -> pa.Array:
        """int64"""
        return pa.array(self._records.offset[self._kept])

    def timestamp(self) -> pa.Array:
        """timestamp; null where Spark has no such time."""
        return timestamps(self._records.timestamp[self._kept])

    def timestamp_type(self) -> pa.Array:
        """int32: 0 CreateTime, 1 LogAppendTime, -1 none, in magic 0."""
        is_append_time = (self._batches.attributes & LOG_APPEND_TIME_FLAG != 0).astype(np.int32)
        return pa.array(np.where(self._batches.magic == 0, np.int32(-1), is_append_time)[self._rows])

    def headers(self) -> pa.Array:
        """list of structs; null for a record without headers, as in Spark's Kafka source."""
        counts = self._records.header_count[self._kept]
        if not counts.any():
            return pa.nulls(counts.size)
        columns = HeaderColumns.of_records(self._records, self._kept)
        keys = binary(columns.keys.data, columns.keys.starts, columns.keys.sizes).view(pa.string())
        values = binary(columns.values.data, columns.values.starts, columns.values.sizes)
        bounds = np.concatenate([columns.starts[:1], columns.ends]).astype(np.int32)
        structs = pa.StructArray.from_arrays([keys, values], ["key", "value"])
        return pa.ListArray.from_arrays(pa.array(bounds), structs, mask=pa.array(counts == 0))

    def field(self, name: str) -> pa.Array:
        """int64: a field of the batch header."""
        return pa.array(self._batches.column(FIELD_NAMES[name])[self._rows])

    def sequence(self) -> pa.Array:
        """int64"""
        return pa.array(self._records.sequence[self._kept])

    def is_transactional(self) -> pa.Array:
        """bool"""
        return self._flag(TRANSACTIONAL_FLAG)

    def nothing(self) -> pa.Array:
        """null"""
        return pa.nulls(self._count)

    @cached_property
    def _rows(self) -> Int64Array:
        """The row of the batch table that each record is of."""
        return self._window.rows[self._kept]

    def _flag(self, flag: int) -> pa.Array:
        return pa.array((self._batches.attributes & flag != 0)[self._rows])


MAKERS: dict[str, Callable[[ArrowRecords], pa.Array]] = {
    "key": ArrowRecords.key,
    "value": ArrowRecords.value,
    "topic": ArrowRecords.topic,
    "partition": ArrowRecords.partition,
    "offset": ArrowRecords.offset,
    "timestamp": ArrowRecords.timestamp,
    "timestampType": ArrowRecords.timestamp_type,
    "headers": ArrowRecords.headers,
    "producer_id": lambda columns: columns.field("producer_id"),
    "producer_epoch": lambda columns: columns.field("producer_epoch"),
    "sequence": ArrowRecords.sequence,
    "partition_leader_epoch": lambda columns: columns.field("partition_leader_epoch"),
    "is_transactional": ArrowRecords.is_transactional,
}


def timestamps(times_ms: Int64Array, is_null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Times in ms as Spark's; null where Spark has no such, and where `is_null` says so."""
    has_none = (times_ms > MS_MAX) | (times_ms < -MS_MAX)
    if is_null is not None:
        has_none |= is_null
    micros = np.where(has_none, 0, times_ms) * MICROSECONDS_PER_MS
    return pa.array(micros, mask=has_none).view(pa.timestamp("us", "UTC"))


def binary(data: ByteArray, positions: Int64Array, sizes: Int64Array) -> pa.Array:
    """The fields at some positions as an array of their own; size -1 is null."""
    offsets, content = gathered(data, positions, sizes)
    is_valid = sizes >= 0
    validity = None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), sizes.size, buffers)
