"""Record windows as Arrow batches; each key and value is copied once, out of the mapped file or decompressed stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from logstore.columns.arrow_batches import binary_array, headers_array
from logstore.columns.batch_table import FIELD_NAMES, BatchTable, BoolArray, Int64Array
from logstore.columns.decoded_records import Records, timestamp_types
from logstore.layout.batch import TRANSACTIONAL_FLAG

from .schemas import HEADERS, MICROSECONDS_PER_MS, arrow_type

_HEADERS = arrow_type(HEADERS)
MS_MAX = (2**63 - 1) // MICROSECONDS_PER_MS


@dataclass(frozen=True)
class KeptRecords:
    """The records of a window that are read: their positions `kept` in it, int64[n], ascending, or a slice.

    `batches` is the table that the rows of the window belong to.
    """

    window: Records
    batches: BatchTable
    kept: Int64Array | slice
    topic: str
    partition: int

    @property
    def count(self) -> int:
        return self.column(self.window.offset).size

    @cached_property
    def rows(self) -> Int64Array:
        """int64[count]: the row of each record's batch in the batch table."""
        return self.window.rows[self.kept]

    def column(self, column: Int64Array) -> Int64Array:
        """Return the kept values of a column of the record table."""
        return column[self.kept]

    def batch_field(self, name: str) -> pa.Array:
        """Return a field of the batch header for each record."""
        return pa.array(self.batches.column(FIELD_NAMES[name])[self.rows])


def record_batch(kept: KeptRecords, schema: pa.Schema) -> pa.RecordBatch:
    """Return records with the columns of `schema`; a column that table `records` does not have is null."""
    made = [MAKERS[name](kept) if name in MAKERS else pa.nulls(kept.count) for name in schema.names]
    # a cast, even to the same type, imports `pyarrow.compute`, which delays a worker's first task
    columns = [one if one.type == kind else one.cast(kind) for one, kind in zip(made, schema.types, strict=True)]
    return pa.record_batch(columns, schema=schema)


def timestamps(times_ms: Int64Array, is_null: BoolArray | None = None) -> pa.Array:
    """Return times in ms as Spark's, in µs; null where they do not fit Spark's range, and where `is_null`."""
    has_none = (times_ms > MS_MAX) | (times_ms < -MS_MAX)
    if is_null is not None:
        has_none |= is_null
    micros = np.where(has_none, 0, times_ms) * MICROSECONDS_PER_MS
    return pa.array(micros, mask=has_none).view(pa.timestamp("us", "UTC"))


def _key(kept: KeptRecords) -> pa.Array:
    records = kept.window
    return binary_array(records.data, kept.column(records.key_position), kept.column(records.key_size))


def _value(kept: KeptRecords) -> pa.Array:
    records = kept.window
    return binary_array(records.data, kept.column(records.value_position), kept.column(records.value_size))


def _headers(kept: KeptRecords) -> pa.Array:
    """Return lists of structs; null for a record without headers, as in Spark's Kafka source."""
    records = kept.window
    counts = kept.column(records.header_count)
    if not counts.any():
        return pa.nulls(counts.size)
    return headers_array(records, kept.kept, _HEADERS, pa.array(counts == 0))


MAKERS: dict[str, Callable[[KeptRecords], pa.Array]] = {
    "key": _key,
    "value": _value,
    "topic": lambda kept: pa.repeat(pa.scalar(kept.topic, pa.string()), kept.count),
    "partition": lambda kept: pa.repeat(pa.scalar(kept.partition, pa.int32()), kept.count),
    "offset": lambda kept: pa.array(kept.column(kept.window.offset)),
    "timestamp": lambda kept: timestamps(kept.column(kept.window.timestamp)),
    "timestampType": lambda kept: pa.array(timestamp_types(kept.batches).astype(np.int32)[kept.rows]),
    "headers": _headers,
    "producer_id": lambda kept: kept.batch_field("producer_id"),
    "producer_epoch": lambda kept: kept.batch_field("producer_epoch"),
    "sequence": lambda kept: pa.array(kept.column(kept.window.sequence)),
    "partition_leader_epoch": lambda kept: kept.batch_field("partition_leader_epoch"),
    "is_transactional": lambda kept: pa.array((kept.batches.attributes & TRANSACTIONAL_FLAG != 0)[kept.rows]),
}
