"""The text of a `.log` or `.checkpoint` file (`DumpLogSegments.dumpLog`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.window_scan import scan_windows
from logstore.disk.mapped import MappedFile
from logstore.disk.names import file_name

from .batch_text import print_batches
from .findings import Findings
from .log_buffers import LogBuffers
from .log_header import log_header
from .options import MAX_BYTES_DEFAULT, DumpOptions
from .output import Output


def dump_log(path: str, options: DumpOptions, out: Output, findings: Findings, advance: Callable[[int], None]) -> None:
    """Print the log file at `path`; `advance` is told the bytes done; a dead end is raised after the output so far."""
    options.check_decoders()
    _ = options.max_bytes  # a wrong value is found here, as in Kafka's tool
    out.print(log_header(path))
    with MappedFile(path) as file:
        buffers = LogBuffers(file, options, out, findings)
        _print_file(buffers, advance)
        buffers.flush_gaps()


def _print_file(buffers: LogBuffers, advance: Callable[[int], None]) -> None:
    """The file's batches, then what is wrong at its end."""
    file, options = buffers.file, buffers.options
    end = options.end_of(file.size, file.path)
    position = 0
    for table in scan_windows(file.data, 0, end):
        _print_table(buffers, table)
        file.release(position, table.next_position)
        advance(table.next_position - position)
        position = table.next_position
    error = table.error(file.path, end)
    if error is not None:
        raise error
    if position < end and options.max_bytes == MAX_BYTES_DEFAULT:
        buffers.out.print(f"Found {end - position} invalid bytes at the end of {file_name(file.path)}")


def _print_table(buffers: LogBuffers, table: BatchTable) -> None:
    """Rows in runs of one kind: v2 batches by the kernel, v0/v1 entries one by one."""
    is_legacy = table.magic < 2
    edges = [0, *(np.flatnonzero(np.diff(is_legacy)) + 1).tolist(), table.count]
    for start, end in pairwise(edges):
        if start < end and is_legacy[start]:
            from .legacy_rows import print_legacy

            print_legacy(buffers, table, start, end)
        elif buffers.options.filter is not None:
            from .filtered_text import print_filtered

            print_filtered(buffers, buffers.options.filter, table, start, end)
        else:
            print_batches(buffers, table, start, end)
