"""v0/v1 entries on their way to text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.legacy import legacy_entry, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX

from .filters import RecordFilter
from .legacy_text import legacy_batch_line, legacy_record_lines
from .log_buffers import LogBuffers


def print_legacy(buffers: LogBuffers, table: BatchTable, start: int, end: int) -> None:
    """Lines of rows start … end - 1, which are v0/v1 entries."""
    record_filter = buffers.options.filter
    rows: Iterable[int] = range(start, end)
    if record_filter is not None:
        rows = start + np.flatnonzero(record_filter.candidates(table)[start:end])
    for row in rows:
        position, size = int(table.position[row]), int(table.size[row])
        if record_filter is None:
            _print_entry(buffers, position, size)
        else:
            _print_filtered(buffers, record_filter, position, size)


def _print_line(buffers: LogBuffers, position: int, size: int) -> None:
    for piece in legacy_batch_line(buffers.file.data, position, size):
        buffers.out.write(piece)


def _print_entry(buffers: LogBuffers, position: int, size: int) -> None:
    _print_line(buffers, position, size)
    if not buffers.options.is_deep:
        return
    for offset, line in legacy_record_lines(buffers.file.data, position, size, buffers.options, DECOMPRESSED_SIZE_MAX):
        buffers.note_offset(offset)
        buffers.out.write(line)


def _print_filtered(buffers: LogBuffers, record_filter: RecordFilter, position: int, size: int) -> None:
    """The entry's line if one of its records passes, then in a deep dump those records."""
    data, options = buffers.file.data, buffers.options
    records = filter(
        record_filter.passes, read_legacy_records(legacy_entry(data, position, size), DECOMPRESSED_SIZE_MAX)
    )
    if next(records, None) is None:
        return
    _print_line(buffers, position, size)
    if options.is_deep:
        lines = legacy_record_lines(data, position, size, options, DECOMPRESSED_SIZE_MAX, record_filter.passes)
        for _, line in lines:
            buffers.out.write(line)
