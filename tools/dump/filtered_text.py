"""A dump of only the batches and records that pass a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import BatchRecords
from logstore.kernels import dump_text as kernel

from .record_text import print_chunk, selected

if TYPE_CHECKING:
    from .log_text import LogDump


def print_filtered(dump: LogDump, table: BatchTable, start: int, end: int) -> None:
    """Lines of rows start … end - 1: a batch line where a record of it passes, then those records.

    Without a deep dump and a key only batch headers are looked at: a batch line where its range meets the filter's.
    """
    record_filter = dump.options.filter
    if record_filter is None:
        return
    passes = record_filter.batches(table)
    for row in np.flatnonzero(passes[start:end]) + start:
        if dump.options.is_deep or record_filter.key is not None:
            _print_batch(dump, table, int(row))
        else:
            _print_line(dump, table, int(row))


def _print_line(dump: LogDump, table: BatchTable, row: int) -> None:
    flags = int(dump.state[kernel.FLAGS])
    dump.state[kernel.FLAGS] = flags & ~kernel.DEEP
    dump.print_batches(table, row, row + 1)
    dump.state[kernel.FLAGS] = flags


def _print_batch(dump: LogDump, table: BatchTable, row: int) -> None:
    record_filter = dump.options.filter
    is_line_printed = False
    for chunk in BatchRecords(dump.file.data, table, row).chunks():
        rows = np.empty(0, np.int64) if record_filter is None else np.flatnonzero(record_filter.records(chunk))
        if rows.size == 0:
            continue
        if not is_line_printed:
            _print_line(dump, table, row)
            is_line_printed = True
        if dump.options.is_deep:
            dump.state[kernel.PREVIOUS_OFFSET] = chunk.offset[rows[0]] - 1
            print_chunk(dump, selected(chunk, rows), int(table.attributes[row]))
            dump.state[kernel.GAP_COUNT] = 0
