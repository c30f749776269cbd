"""A dump of only the batches and records that pass a filter."""

from __future__ import annotations

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.kernels import decode
from logstore.kernels import dump_text as kernel

from .batch_text import print_batch_line
from .filters import RecordFilter
from .log_buffers import LogBuffers
from .record_text import print_chunk


def print_filtered(buffers: LogBuffers, record_filter: RecordFilter, table: BatchTable, start: int, end: int) -> None:
    """Lines of rows start … end - 1: a batch line where a record of it passes, then those records.

    Without a deep dump and a key only batch headers are asked: a batch line where its range meets the filter's.
    """
    is_asking_records = buffers.options.is_deep or record_filter.key is not None
    rows = record_filter.candidates(table) if is_asking_records else record_filter.headers(table)
    for row in np.flatnonzero(rows[start:end]) + start:
        if is_asking_records:
            _print_batch(buffers, record_filter, table, int(row))
        else:
            print_batch_line(buffers, table, int(row))


def _print_batch(buffers: LogBuffers, record_filter: RecordFilter, table: BatchTable, row: int) -> None:
    batch = BatchRecords(buffers.file.data, table, row)
    is_line_printed = False
    for chunk in batch.chunks():
        rows = np.flatnonzero(record_filter.records(chunk))
        if rows.size == 0:
            continue
        if not is_line_printed:
            print_batch_line(buffers, table, row)
            is_line_printed = True
        if buffers.options.is_deep:
            _print_rows(buffers, batch, chunk, rows, int(table.attributes[row]))


def _print_rows(
    buffers: LogBuffers, batch: BatchRecords, chunk: RecordTable, rows: np.ndarray, attributes: int
) -> None:
    """Some records of a chunk; that offsets are left out is what was asked for, so it is no finding."""
    matrix = np.ascontiguousarray(chunk.matrix[:, : chunk.count][:, rows])
    buffers.state[decode.END_POSITION] = batch.state[decode.END_POSITION]
    print_chunk(buffers, RecordTable(chunk.data, matrix, rows.size), attributes)
    buffers.state[kernel.GAP_COUNT] = 0
