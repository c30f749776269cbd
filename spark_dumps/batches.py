"""Table `batches`: the header of each record batch, control batches and those with a wrong checksum included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logstore.audit.batch_headers import field_column
from logstore.columns.batch_table import BatchTable, ByteArray
from logstore.rows.batches import BatchRow

from .arrow_records import timestamps
from .options import Options
from .planning import Slice
from .records import plan, read_slices
from .schemas import columns_of
from .tables import Table

COLUMNS = columns_of(BatchRow)


def _read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return read_slices(task, options, schema, _batches)


def _batches(
    one: Slice, data: ByteArray, table: BatchTable, options: Options, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    is_wanted = (table.last_offset >= one.run.first_offset) & (table.base_offset < one.end_offset)
    is_wanted &= table.position < one.end
    if options.producer_ids is not None:
        is_wanted &= np.isin(table.producer_id, list(options.producer_ids))
    rows = np.flatnonzero(is_wanted)
    if rows.size:
        columns = [_column(field.name, one, table).take(pa.array(rows)).cast(field.type) for field in schema]
        yield pa.record_batch(columns, schema=schema)


def _column(name: str, one: Slice, table: BatchTable) -> pa.Array:
    place = {"topic": one.run.topic, "partition": one.run.partition, "segment": one.base_offset}
    if name in place:
        return pa.repeat(place[name], len(table))
    if name not in COLUMNS:
        return pa.nulls(len(table))
    column = field_column(table, name)
    if column.texts is not None:
        return pa.array(column.texts, pa.string()).take(pa.array(column.values))
    if column.is_null is not None:
        return timestamps(column.values, column.is_null)
    return pa.array(column.values)


TABLE = Table(COLUMNS, None, plan, _read)
