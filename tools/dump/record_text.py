"""The records of one batch as text, where the kernel for plain batches does not reach.

That is: compressed batches (decompressed here, then the kernel prints them), records with a decoder of their own,
control records other than well-formed transaction markers, records larger than the output buffer, filtered dumps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.kernels import decode
from logstore.kernels import dump_text as kernel
from logstore.layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from logstore.layout.utf8 import java_utf8

if TYPE_CHECKING:
    from .log_text import LogDump


def print_batch_records(dump: LogDump, table: BatchTable, row: int) -> None:
    """All record lines of a v2 batch; raises what reading it dies of after the good lines."""
    for chunk in BatchRecords(dump.file.data, table, row, dump.state).chunks(dump.records):
        print_chunk(dump, chunk, int(table.attributes[row]))


def print_chunk(dump: LogDump, chunk: RecordTable, attributes: int) -> None:
    """The lines of some records of one batch."""
    state = dump.state
    state[kernel.ATTRIBUTES] = attributes
    state[kernel.CHUNK_ROW] = 0
    state[kernel.RECORD_CAPACITY] = chunk.matrix.shape[1]
    state[decode.ROW_COUNT] = chunk.count
    if dump.options.needs_python:
        for index in range(chunk.count):
            print_record(dump, chunk, index, attributes)
    else:
        _print_by_kernel(dump, chunk, attributes)
    state[kernel.RECORD_CAPACITY] = dump.records.shape[1]


def _print_by_kernel(dump: LogDump, chunk: RecordTable, attributes: int) -> None:
    state = dump.state
    while True:
        state[kernel.OUT_SIZE] = dump.out.size
        status = kernel.dump_records(chunk.data, chunk.matrix, kernel.POOL, dump.out.array, dump.gaps, state)
        dump.out.size = int(state[kernel.OUT_SIZE])
        if status == kernel.DONE:
            return
        dump.go_on(status, chunk, attributes)


def print_record(dump: LogDump, chunk: RecordTable, index: int, attributes: int) -> None:
    """One record line, by Python."""
    offset = int(chunk.offset[index])
    dump.note_offset(offset)
    options = dump.options
    is_control = bool(attributes & CONTROL_FLAG)
    if not options.skip_record_metadata:
        dump.out.write(_metadata(chunk, index, attributes).encode())
        if is_control:
            from .decoders import control_record_text

            dump.out.write(control_record_text(chunk.key(index), chunk.value(index)).encode())
    if options.print_contents and not is_control:
        key, value = record_texts(dump, offset, chunk.key(index), chunk.value(index))
        prefix = "| " if options.skip_record_metadata else " "
        if key is not None:
            dump.out.write(f"{prefix}key: {key}".encode("utf-8", "replace"))
            prefix = " "
        if value is not None:
            dump.out.write(f"{prefix}payload: {value}".encode("utf-8", "replace"))
    dump.out.write(b"\n")


def record_texts(dump: LogDump, offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Key and payload as the chosen decoder shows them; None prints nothing."""
    options = dump.options
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


def selected(chunk: RecordTable, rows: npt.NDArray[np.int64]) -> RecordTable:
    """The chunk with only some of its rows (an index array)."""
    matrix = np.ascontiguousarray(chunk.matrix[:, : chunk.count][:, rows])
    return RecordTable(chunk.data, matrix, matrix.shape[1])
