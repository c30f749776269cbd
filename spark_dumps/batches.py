"""Table `batches`: the header of each record batch, control batches and those with a wrong checksum included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logstore.columns.batch_table import FIELD_NAMES, BatchTable, ByteArray
from logstore.columns.decoded_records import timestamp_types
from logstore.layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    MAGIC_V2,
    TRANSACTIONAL_FLAG,
)
from logstore.model import Codec, TimestampType

from .arrow_records import timestamps
from .options import Options
from .planning import Slice
from .records import plan, read_slices
from .schemas import columns_of
from .tables import Table

COLUMNS = columns_of(
    "topic string, partition int, segment long, position long, size int, base_offset long, last_offset long, "
    "partition_leader_epoch int, magic int, crc long, is_valid bool, codec string, timestamp_type string, "
    "is_transactional bool, is_control bool, base_timestamp timestamp, max_timestamp timestamp, "
    "delete_horizon timestamp, producer_id long, producer_epoch int, base_sequence int, record_count int"
)
_CODEC_NAMES = [Codec(number).kafka_name if number in set(Codec) else None for number in range(CODEC_MASK + 1)]


def _read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return read_slices(task, options, schema, _batches)


def _batches(
    one: Slice, data: ByteArray, table: BatchTable, options: Options, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    is_wanted = (table.last_offset >= one.first_offset) & (table.base_offset < one.end_offset)
    if options.producer_ids is not None:
        is_wanted &= np.isin(table.producer_id, list(options.producer_ids))
    rows = np.flatnonzero(is_wanted)
    if rows.size:
        columns = [_column(field.name, one, table).take(pa.array(rows)).cast(field.type) for field in schema]
        yield pa.record_batch(columns, schema=schema)


def _column(name: str, one: Slice, table: BatchTable) -> pa.Array:
    count, attributes = len(table), table.attributes
    is_v2 = table.magic >= MAGIC_V2
    if name in ("topic", "partition", "segment"):
        return pa.repeat({"topic": one.topic, "partition": one.partition, "segment": one.base_offset}[name], count)
    if name == "last_offset":
        return pa.array(table.last_offset)
    if name == "is_valid":
        return pa.array(table.is_valid == 1)
    if name == "codec":
        return pa.array(_CODEC_NAMES, pa.string()).take(pa.array(attributes & CODEC_MASK))
    if name == "timestamp_type":
        numbers = timestamp_types(table) - TimestampType.NO_TIMESTAMP_TYPE
        return pa.array([kind.kafka_name for kind in TimestampType]).take(pa.array(numbers))
    if name in _FLAGS:
        return pa.array(is_v2 & (attributes & _FLAGS[name] != 0))
    if name in ("base_timestamp", "max_timestamp", "delete_horizon"):
        times = table.column(FIELD_NAMES["max_timestamp" if name == "max_timestamp" else "base_timestamp"])
        has_horizon = is_v2 & (attributes & DELETE_HORIZON_FLAG != 0)
        is_there = {"base_timestamp": is_v2 & ~has_horizon, "max_timestamp": table.magic > 0}
        return timestamps(times, ~is_there.get(name, has_horizon))
    if name not in FIELD_NAMES:
        return pa.nulls(count)
    return pa.array(table.column(FIELD_NAMES[name]))


_FLAGS = {"is_transactional": TRANSACTIONAL_FLAG, "is_control": CONTROL_FLAG}

TABLE = Table(COLUMNS, None, plan, _read)
