"""The text of a `.log` or `.checkpoint` file (`DumpLogSegments.dumpLog`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import RecordTable, record_error, unknown_codec
from logstore.columns.window_scan import scan_windows
from logstore.disk.mapped import MappedFile
from logstore.disk.names import file_name
from logstore.kernels import decode
from logstore.kernels import dump_text as kernel
from logstore.kernels.primitives import add64
from logstore.layout.batch import CODEC_MASK

from .findings import Findings
from .log_header import log_header
from .options import MAX_BYTES_DEFAULT, DumpOptions
from .output import Output
from .record_text import print_batch_records, print_record

RECORD_CAPACITY = 2048
GAP_CAPACITY = 4096


class LogDump:
    """One log file on its way to text: the buffers that its kernels share, and what to do where they stop."""

    def __init__(self, file: MappedFile, options: DumpOptions, out: Output, findings: Findings) -> None:
        self.file = file
        self.options = options
        self.out = out
        self.findings = findings
        self.records = np.empty((decode.COLUMN_COUNT, RECORD_CAPACITY), np.int64)
        self.gaps = np.empty((2, GAP_CAPACITY), np.int64)
        self.state = np.zeros(kernel.STATE_COUNT, np.int64)
        self.state[kernel.FLAGS] = _flags(options)
        self.state[kernel.RECORD_CAPACITY] = RECORD_CAPACITY
        self.state[kernel.OUT_CAPACITY] = out.capacity
        self.state[kernel.GAP_CAPACITY] = GAP_CAPACITY
        self.state[kernel.PREVIOUS_OFFSET] = -1

    def run(self, advance: Callable[[int], None]) -> None:
        """Print the file's batches, then what is wrong at its end; `advance` is told the bytes done."""
        end = self.options.end_of(self.file.size, self.file.path)
        position = 0
        for table in scan_windows(self.file.data, 0, end):
            self._print_table(table)
            self.file.release(position, table.next_position)
            advance(table.next_position - position)
            position = table.next_position
        error = table.error(self.file.path, end)
        if error is not None:
            raise error
        if position < end and self.options.max_bytes == MAX_BYTES_DEFAULT:
            name = file_name(self.file.path)
            self.out.print(f"Found {end - position} invalid bytes at the end of {name}")

    def _print_table(self, table: BatchTable) -> None:
        """Rows in runs of one kind: v2 batches by the kernel, v0/v1 entries one by one."""
        is_legacy = table.magic < 2
        edges = [0, *(np.flatnonzero(np.diff(is_legacy)) + 1).tolist(), table.count]
        for start, end in pairwise(edges):
            if start < end and is_legacy[start]:
                from .legacy_rows import print_legacy

                print_legacy(self, table, start, end)
            elif self.options.filter is not None:
                from .filtered_text import print_filtered

                print_filtered(self, table, start, end)
            else:
                self.print_batches(table, start, end)

    def print_batches(self, table: BatchTable, start: int, end: int) -> None:
        """Batch lines of v2 rows, and their record lines in a deep dump."""
        state = self.state
        state[kernel.ROW] = start
        state[kernel.IS_LINE_PRINTED] = 0
        while True:
            state[kernel.OUT_SIZE] = self.out.size
            status = kernel.dump_batches(
                self.file.data,
                table.matrix,
                table.capacity,
                end,
                self.records,
                kernel.POOL,
                self.out.array,
                self.gaps,
                state,
            )
            self.out.size = int(state[kernel.OUT_SIZE])
            row = int(state[kernel.ROW])
            if status == kernel.DONE:
                return
            if status == kernel.PYTHON_BATCH:
                print_batch_records(self, table, row)
                state[kernel.ROW] = row + 1
                state[kernel.IS_LINE_PRINTED] = 0
            elif status == kernel.UNKNOWN_CODEC:
                raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))
            else:
                chunk = RecordTable(self.file.data, self.records, int(state[decode.ROW_COUNT]))
                self.go_on(status, chunk, int(table.attributes[row]))

    def go_on(self, status: int, chunk: RecordTable, attributes: int) -> None:
        """Do what a kernel stopped for in the middle of a chunk."""
        state = self.state
        if status == kernel.GAPS_FULL:
            self.flush_gaps()
        elif status == kernel.OUT_FULL and self.out.size > 0:
            self.out.flush()
        elif status in (kernel.OUT_FULL, kernel.PYTHON_RECORD):
            index = int(state[kernel.CHUNK_ROW])
            print_record(self, chunk, index, attributes)
            state[kernel.CHUNK_ROW] = index + 1
        else:
            raise record_error(int(state[kernel.DECODE_STATUS]), state)

    def note_offset(self, offset: int) -> None:
        """Compare a record that no kernel printed with the one before."""
        state = self.state
        if offset != add64(int(state[kernel.PREVIOUS_OFFSET]), 1):
            count = int(state[kernel.GAP_COUNT])
            self.gaps[:, count] = state[kernel.PREVIOUS_OFFSET], offset
            state[kernel.GAP_COUNT] = count + 1
            if count + 1 == GAP_CAPACITY:
                self.flush_gaps()
        state[kernel.PREVIOUS_OFFSET] = offset

    def flush_gaps(self) -> None:
        """Hand the offsets that do not follow each other to the findings."""
        count = int(self.state[kernel.GAP_COUNT])
        if count:
            previous, following = self.gaps[:, :count]
            self.findings.non_consecutive(self.file.path, previous, following)
            self.state[kernel.GAP_COUNT] = 0


def dump_log(path: str, options: DumpOptions, out: Output, findings: Findings, advance: Callable[[int], None]) -> None:
    """Print the log file at `path`; a dead end is raised after the output so far."""
    options.check_decoders()
    _ = options.max_bytes
    out.print(log_header(path))
    with MappedFile(path) as file:
        dump = LogDump(file, options, out, findings)
        dump.run(advance)
        dump.flush_gaps()


def _flags(options: DumpOptions) -> int:
    flags = 0
    if options.is_deep:
        flags |= kernel.DEEP
    if options.print_contents:
        flags |= kernel.CONTENTS
    if options.skip_record_metadata:
        flags |= kernel.SKIP_METADATA
    if options.needs_python:
        flags |= kernel.PYTHON_RECORDS
    return flags
