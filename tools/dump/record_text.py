"""The records of one batch as text, where the kernel for plain batches does not reach.

That is: compressed batches (decompressed here, then the kernel prints them), records with a decoder of their own,
control records other than well-formed transaction markers, records larger than the output buffer, filtered dumps.
"""

from __future__ import annotations

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import BatchRecords, RecordTable, record_error
from logstore.kernels import decode
from logstore.kernels import dump_text as kernel
from logstore.layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from logstore.layout.utf8 import java_utf8

from .log_buffers import LogBuffers


def print_batch_records(buffers: LogBuffers, table: BatchTable, row: int) -> None:
    """All record lines of a v2 batch; raises what reading it dies of after the good lines."""
    for chunk in BatchRecords(buffers.file.data, table, row, buffers.state).chunks(buffers.records):
        print_chunk(buffers, chunk, int(table.attributes[row]))


def print_chunk(buffers: LogBuffers, chunk: RecordTable, attributes: int) -> None:
    """The lines of some records of one batch."""
    state = buffers.state
    state[kernel.ATTRIBUTES] = attributes
    state[kernel.CHUNK_ROW] = 0
    state[kernel.RECORD_CAPACITY] = chunk.matrix.shape[1]
    state[decode.ROW_COUNT] = chunk.count
    if buffers.options.needs_python:
        for index in range(chunk.count):
            print_record(buffers, chunk, index, attributes)
    else:
        _print_by_kernel(buffers, chunk, attributes)
    state[kernel.RECORD_CAPACITY] = buffers.records.shape[1]


def _print_by_kernel(buffers: LogBuffers, chunk: RecordTable, attributes: int) -> None:
    state = buffers.state
    while True:
        state[kernel.OUT_SIZE] = buffers.out.size
        status = kernel.dump_records(chunk.data, chunk.matrix, kernel.POOL, buffers.out.array, buffers.gaps, state)
        buffers.out.size = int(state[kernel.OUT_SIZE])
        if status == kernel.DONE:
            return
        go_on(buffers, status, chunk, attributes)


def go_on(buffers: LogBuffers, status: int, chunk: RecordTable, attributes: int) -> None:
    """Do what a kernel stopped for in the middle of a chunk; raises what is wrong with the batch."""
    state = buffers.state
    if status == kernel.GAPS_FULL:
        buffers.flush_gaps()
    elif status == kernel.OUT_FULL and buffers.out.size > 0:
        buffers.out.flush()
    elif status in (kernel.OUT_FULL, kernel.PYTHON_RECORD):
        index = int(state[kernel.CHUNK_ROW])
        print_record(buffers, chunk, index, attributes)
        state[kernel.CHUNK_ROW] = index + 1
    else:
        raise record_error(int(state[kernel.DECODE_STATUS]), state)


def print_record(buffers: LogBuffers, chunk: RecordTable, index: int, attributes: int) -> None:
    """One record line, by Python."""
    offset = int(chunk.offset[index])
    buffers.note_offset(offset)
    options = buffers.options
    is_control = bool(attributes & CONTROL_FLAG)
    if not options.skip_record_metadata:
        buffers.out.write(_metadata(chunk, index, attributes).encode())
        if is_control:
            from .decoders import control_record_text

            buffers.out.write(control_record_text(chunk.key(index), chunk.value(index)).encode())
    if options.print_contents and not is_control:
        key, value = record_texts(buffers, offset, chunk.key(index), chunk.value(index))
        prefix = "| " if options.skip_record_metadata else " "
        if key is not None:
            buffers.out.write(f"{prefix}key: {key}".encode("utf-8", "replace"))
            prefix = " "
        if value is not None:
            buffers.out.write(f"{prefix}payload: {value}".encode("utf-8", "replace"))
    buffers.out.write(b"\n")


def record_texts(
    buffers: LogBuffers, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str | None, str | None]:
    """Key and payload as the chosen decoder shows them; None prints nothing."""
    options = buffers.options
    if options.parser is not None:
        return options.parser(offset, key, value)
    key_text = None if key is None else options.key_decoder(key)
    return key_text, None if value is None else options.value_decoder(value)


def _metadata(chunk: RecordTable, index: int, attributes: int) -> str:
    timestamp_type = "LogAppendTime" if attributes & LOG_APPEND_TIME_FLAG else "CreateTime"
    header_keys = ",".join(java_utf8(key) for key, _ in chunk.headers(index))
    return (
        f"| offset: {chunk.offset[index]} {timestamp_type}: {chunk.timestamp[index]} "
        f"keySize: {chunk.key_size[index]} valueSize: {chunk.value_size[index]} "
        f"sequence: {chunk.sequence[index]} headerKeys: [{header_keys}]"
    )
