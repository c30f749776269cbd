"""Rows of v2 batches as text: the kernel prints, Python does what it stops for."""

from __future__ import annotations

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import RecordTable, unknown_codec
from logstore.kernels import decode
from logstore.kernels import dump_text as kernel
from logstore.layout.batch import CODEC_MASK

from .log_buffers import LogBuffers
from .record_text import go_on, print_batch_records


def print_batches(buffers: LogBuffers, table: BatchTable, start: int, end: int) -> None:
    """Batch lines of v2 rows start … end - 1, and their record lines in a deep dump."""
    state = buffers.state
    state[kernel.ROW] = start
    state[kernel.IS_LINE_PRINTED] = 0
    while True:
        status = _run_kernel(buffers, table, end)
        row = int(state[kernel.ROW])
        if status == kernel.DONE:
            return
        if status == kernel.PYTHON_BATCH:
            print_batch_records(buffers, table, row)
            state[kernel.ROW] = row + 1
            state[kernel.IS_LINE_PRINTED] = 0
        elif status == kernel.UNKNOWN_CODEC:
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))
        else:
            chunk = RecordTable(buffers.file.data, buffers.records, int(state[decode.ROW_COUNT]))
            go_on(buffers, status, chunk, int(table.attributes[row]))


def print_batch_line(buffers: LogBuffers, table: BatchTable, row: int) -> None:
    """One batch line alone, also in a deep dump."""
    flags = int(buffers.state[kernel.FLAGS])
    buffers.state[kernel.FLAGS] = flags & ~kernel.DEEP
    print_batches(buffers, table, row, row + 1)
    buffers.state[kernel.FLAGS] = flags


def _run_kernel(buffers: LogBuffers, table: BatchTable, row_end: int) -> int:
    buffers.state[kernel.OUT_SIZE] = buffers.out.size
    status = kernel.dump_batches(
        buffers.file.data,
        table.matrix,
        table.capacity,
        row_end,
        buffers.records,
        kernel.POOL,
        buffers.out.array,
        buffers.gaps,
        buffers.state,
    )
    buffers.out.size = int(buffers.state[kernel.OUT_SIZE])
    return status
