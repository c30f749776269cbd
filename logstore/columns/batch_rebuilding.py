"""Rebuilding batches with some of their records, as the cleaner leaves them (`MemoryRecords.filterTo`).

Offsets do not move: base offset, last offset and every record's delta stay. Producer fields, leader epoch, timestamp
type and codec (at its default level) stay too; count, max timestamp and timestamp deltas follow the records.
"""

from __future__ import annotations

import numpy as np

from ..errors import UsageError
from ..kernels.scan import batches as scan
from ..layout.batch import (
    ALL_FLAGS,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from .batch_fields import BatchFields, has_producer_problem
from .batch_table import Batches, BatchTable, BoolArray, ByteArray, Int64Array
from .header_columns import columns_of_table
from .record_building import encode_measured, with_headers
from .record_encoding import RecordEncoder
from .record_table import RecordTable

AS_IT_WAS = -1  # keep the delete horizon of the batch


def rebuild_batches(
    records: RecordTable,
    table: BatchTable,
    rows: Int64Array,
    record_ends: Int64Array,
    is_kept: BoolArray,
    delete_horizons_ms: Int64Array,
) -> Batches:
    """Build several v2 batches with some of their records, one behind the other.

    Args:
        records: all records of the batches, in batch order.
        table, rows: the batches, int64[n].
        record_ends: int64[n], the record behind each batch's last one.
        is_kept: bool[len(records)], at least one in each batch.
        delete_horizons_ms: int64[n], the horizon to set; AS_IT_WAS keeps the batch's own, if any.

    Raises:
        UsageError: a batch with no record to keep (see `empty_batch`), or one that `MemoryRecordsBuilder` refuses, in
            its words.
        InvalidTimestampError: a record with a negative timestamp other than -1.
    """
    kept = np.flatnonzero(is_kept)
    row_ends = np.searchsorted(kept, record_ends)
    counts = np.diff(row_ends, prepend=0)
    if row_ends[-1] != kept.size:
        raise UsageError("The records are not those of the batches", expected=int(record_ends[-1]), found=len(records))
    if not counts.all():
        raise UsageError("A batch is built of its records, and none is kept", found=f"row {rows[counts.argmin()]}")
    matrix = _headers(table, rows, delete_horizons_ms)
    last_offset_deltas = matrix[scan.LAST_OFFSET_DELTA].copy()
    offset_deltas = records.offset[kept] - np.repeat(matrix[scan.BASE_OFFSET], counts)
    encoder = RecordEncoder(columns_of_table(records, kept), offset_deltas)
    encoder.measure(matrix, row_ends, 0)
    # measuring derives it from the kept records, but a cleaned batch keeps its own
    matrix[scan.LAST_OFFSET_DELTA] = last_offset_deltas
    return encode_measured(encoder, matrix, row_ends, None)


def empty_batch(table: BatchTable, row: int) -> ByteArray:
    """Return uint8[61], the header of a v2 batch that lost all its records (`DefaultRecordBatch.writeEmptyHeader`).

    It tells the producer's last sequence and the last offset; codec and delete horizon are dropped.
    """
    matrix = table.matrix[:, row : row + 1].copy()
    matrix[scan.ATTRIBUTES] &= LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
    matrix[scan.BASE_TIMESTAMP] = NO_TIMESTAMP
    matrix[scan.RECORD_COUNT] = 0
    matrix[scan.SIZE] = HEADER_SIZE
    return with_headers(bytearray(HEADER_SIZE), matrix)


def _headers(table: BatchTable, rows: Int64Array, delete_horizons_ms: Int64Array) -> Int64Array:
    """Return the headers of the new batches, still without what follows from the records."""
    matrix = np.ascontiguousarray(table.matrix[:, rows])
    is_set = delete_horizons_ms != AS_IT_WAS
    matrix[scan.BASE_TIMESTAMP] = np.where(is_set, delete_horizons_ms, matrix[scan.BASE_TIMESTAMP])
    attributes = matrix[scan.ATTRIBUTES] & ALL_FLAGS | np.where(is_set, DELETE_HORIZON_FLAG, 0)
    # as in Kafka, a horizon before 1970 is none
    attributes &= np.where(matrix[scan.BASE_TIMESTAMP] < 0, ~DELETE_HORIZON_FLAG, -1)
    matrix[scan.ATTRIBUTES] = attributes
    _require_builder_takes(matrix)
    return matrix


def _require_builder_takes(matrix: Int64Array) -> None:
    """Raise UsageError for a batch with producer fields that `MemoryRecordsBuilder.validateProducerState` refuses."""
    for column in np.flatnonzero(has_producer_problem(matrix))[:1].tolist():
        BatchFields(
            producer_id=int(matrix[scan.PRODUCER_ID, column]),
            producer_epoch=int(matrix[scan.PRODUCER_EPOCH, column]),
            base_sequence=int(matrix[scan.BASE_SEQUENCE, column]),
            is_transactional=bool(matrix[scan.ATTRIBUTES, column] & TRANSACTIONAL_FLAG),
            is_control=bool(matrix[scan.ATTRIBUTES, column] & CONTROL_FLAG),
        )
