"""The rows of a log that kernels do not print.

That is: v0/v1 entries, compressed batches (decompressed here, then the kernel prints their records), contents with a
decoder of their own, control records other than well-formed transaction markers, filtered dumps, and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from logstore.columns.record_table import (
    DECOMPRESSED_SIZE_MAX,
    BatchRecords,
    RecordTable,
    record_error,
    unknown_codec,
)
from logstore.errors import LogstoreError
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as dump_text
from logstore.kernels.dump import state as dump_state
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import CODEC_MASK, CONTROL_FLAG, MAGIC_V2

from .filters import RecordFilter
from .legacy_text import contents_text, legacy_batch_line, legacy_record_lines
from .options import DumpOptions

if TYPE_CHECKING:
    from .log_printer import LogPrinter, SmallTable


class SlowRows:
    """Prints rows for a `LogPrinter`, whose buffers it sees as arrays."""

    def __init__(self, printer: LogPrinter) -> None:
        self._printer = printer
        self._options = printer.options
        self._write = printer.out.write
        self._data = np.frombuffer(printer.data, np.uint8)
        self._records = np.frombuffer(printer.records, np.int64).reshape(decode.COLUMN_COUNT, -1)
        self._state = np.frombuffer(printer.state, np.int64)

    def go_on(self, status: int, table: SmallTable | BatchTable) -> None:
        """Print the row or record that `dump_batches` stopped for; raises what is wrong with it."""
        state = self._printer.state
        row = state[dump_state.ROW]
        table = _as_arrays(table)
        if status == dump_state.PYTHON_RECORD:
            self._end_record(RecordTable(self._data, self._records, state[decode.ROW_COUNT]))
            return
        if status == dump_state.LEGACY_ROW:
            self._print_entry(table, row)
        elif status == dump_state.PYTHON_BATCH:
            for chunk in BatchRecords(self._data, table, row, self._state).chunks(self._records):
                self._print_chunk(chunk, int(table.attributes[row]))
        elif status == dump_state.UNKNOWN_CODEC:
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))
        else:
            raise record_error(state[dump_state.DECODE_STATUS], self._state)
        state[dump_state.ROW], state[dump_state.IS_LINE_PRINTED] = row + 1, 0

    def print_filtered(self, table: SmallTable | BatchTable, record_filter: RecordFilter) -> None:
        """Print a batch line where a record of it passes, then those records.

        Without a deep dump and a key only the headers of v2 batches are asked: a batch line where its range meets the
        filter's.
        """
        table = _as_arrays(table)
        is_asking_records = self._options.is_deep or record_filter.key is not None
        for row in record_filter.rows(table, is_asking_records).tolist():
            if table.magic[row] < MAGIC_V2:
                self._print_entry(table, row, record_filter)
            elif is_asking_records:
                self._print_filtered_batch(table, row, record_filter)
            else:
                self._printer.print_rows(table, row, row + 1)

    def _print_filtered_batch(self, table: BatchTable, row: int, record_filter: RecordFilter) -> None:
        batch = BatchRecords(self._data, table, row)
        is_line_printed = False
        for chunk in batch.chunks():
            rows = np.flatnonzero(record_filter.records(chunk))
            if rows.size and not is_line_printed:
                self._print_batch_line(table, row)
                is_line_printed = True
            if rows.size and self._options.is_deep:
                matrix = np.ascontiguousarray(chunk.matrix[:, rows])
                self._state[decode.END_POSITION] = batch.state[decode.END_POSITION]
                self._print_chunk(RecordTable(chunk.data, matrix, rows.size), int(table.attributes[row]))

    def _print_batch_line(self, table: BatchTable, row: int) -> None:
        flags = int(self._state[dump_state.FLAGS])
        self._state[dump_state.FLAGS] = flags & ~dump_state.DEEP
        self._printer.print_rows(table, row, row + 1)
        self._state[dump_state.FLAGS] = flags

    def _print_chunk(self, chunk: RecordTable, attributes: int) -> None:
        """Print the lines of some records of one batch."""
        state = self._state
        state[dump_state.ATTRIBUTES] = attributes
        state[dump_state.CHUNK_ROW] = 0
        state[dump_state.RECORD_CAPACITY] = chunk.matrix.shape[1]
        state[decode.ROW_COUNT] = chunk.count
        while self._printer.run(dump_text.dump_records, chunk.data, chunk.matrix) != dump_state.DONE:
            self._end_record(chunk)
        state[dump_state.RECORD_CAPACITY] = self._records.shape[1]

    def _end_record(self, chunk: RecordTable) -> None:
        """Print what stands behind the metadata of a record."""
        index = self._printer.state[dump_state.CHUNK_ROW]
        key, value = chunk.key(index), chunk.value(index)
        if self._printer.state[dump_state.ATTRIBUTES] & CONTROL_FLAG:
            from .decoders import control_record_text

            self._write(control_record_text(key, value).encode())
        else:
            texts = record_texts(self._options, int(chunk.offset[index]), key, value)
            self._write(contents_text(texts, self._options).encode("utf-8", "replace"))
        self._write(b"\n")
        self._printer.state[dump_state.CHUNK_ROW] = index + 1

    def _print_entry(self, table: BatchTable, row: int, record_filter: RecordFilter | None = None) -> None:
        """Print the line of a v0/v1 entry if one of its records passes, then in a deep dump those records."""
        position, size = int(table.position[row]), int(table.size[row])
        entry = legacy_entry(self._data, position, size)
        passes = _pass_all if record_filter is None else record_filter.passes
        if record_filter is not None and not any(map(passes, read_legacy_records(entry, DECOMPRESSED_SIZE_MAX))):
            return
        for piece in legacy_batch_line(entry, position, size):
            self._write(piece)
        if self._options.is_deep:
            for offset, line in legacy_record_lines(entry, self._options, passes):
                self._printer.note_offset(offset)
                self._write(line)


def _pass_all(record: LegacyRecord) -> bool:
    return True


def record_texts(
    options: DumpOptions, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str | None, str | None]:
    """Key and payload as the chosen decoder shows them; None prints nothing."""
    if options.parser is not None:
        return options.parser(offset, key, value)
    key_text = None if key is None else options.key_decoder(key)
    return key_text, None if value is None else options.value_decoder(value)


def scan_error(table: SmallTable | BatchTable, path: str, end: int) -> LogstoreError:
    """Return what stopped the scan up to `end` that ended with this table."""
    error = _as_arrays(table).error(path, end)
    assert error is not None
    return error


def _as_arrays(table: SmallTable | BatchTable) -> BatchTable:
    if isinstance(table, BatchTable):
        return table
    matrix = np.frombuffer(table.matrix, np.int64).reshape(scan.COLUMN_COUNT, -1)
    return BatchTable(matrix, table.count, table.status, table.next_position, table.bad_length)
