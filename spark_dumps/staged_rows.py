"""Rows of a job as they are staged: checked, and with all that can be worked out without the store.

| column | is |
|---|---|
| `topic` | string, not null; not there if one topic takes all rows |
| `partition` | int32, not negative; null: the partitioner says |
| `key`, `value` | large binary |
| `key_hash` | int64: murmur2 of the key, 0 for null |
| `timestamp` | int64, ms since 1970, not negative; null: the time of the write |
| `headers` | large binary, as they stand in a record |

`value` is there always, the others if the job has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logstore.columns.arrow_columns import bytes_column, headers_columns
from logstore.columns.record_columns import BytesColumn
from logstore.errors import UsageError

PIECE_SIZE = 8 << 20  # bytes of rows that the driver reads at once, unless one row has more
_ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_MICROSECONDS_PER_MS = 1000
_TYPES = {"topic": pa.string(), "partition": pa.int32(), "key": pa.large_binary(), "key_hash": pa.int64()}
_TYPES |= {"value": pa.large_binary(), "timestamp": pa.int64(), "headers": pa.large_binary()}


def staged_schema(columns: Mapping[str, int]) -> pa.Schema:
    """Of rows that have these columns, see `write_options.find_columns`."""
    names = {*columns, "key_hash"} if "key" in columns else columns.keys()
    return pa.schema([(name, kind) for name, kind in _TYPES.items() if name in names])


def staged_pieces(batch: pa.RecordBatch, columns: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
    """A batch of Spark's in pieces of about `PIECE_SIZE`, as `staged_schema` has them.

    Args:
        columns: from name to where it is in the batch.

    Raises:
        UsageError: a row that Kafka's producer refuses: without a topic, a negative partition or timestamp, a header
            without a key; in its words.
    """
    schema = staged_schema(columns)
    found = {name: batch.column(index) for name, index in columns.items()}
    rows = pa.record_batch([_column(name, found) for name in schema.names], schema=schema)
    count = max(1, rows.num_rows * PIECE_SIZE // max(1, rows.nbytes))
    for start in range(0, rows.num_rows, count):
        yield rows.slice(start, count)


def _column(name: str, found: Mapping[str, pa.Array]) -> pa.Array:
    if name == "key_hash":
        return pa.array(bytes_column(found["key"]).murmur2_hashes())
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
    """Of timestamps in microseconds, rounded down, as Spark's own cast to milliseconds does."""
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    micros = pc.fill_null(column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64()), 0).to_numpy()
    return pa.array(np.floor_divide(micros, _MICROSECONDS_PER_MS), mask=is_null)


def _require_not_negative(column: pa.Array, text: str) -> None:
    least = pc.min(column).as_py()
    if least is not None and least < 0:
        raise UsageError(text.format(least), java_class=_ILLEGAL_ARGUMENT)


def _as_arrow(column: BytesColumn) -> pa.Array:
    """A column whose strings lie behind one another."""
    offsets = np.append(column.starts[:1], column.ends)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
