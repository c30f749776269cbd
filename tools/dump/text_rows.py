"""Rows in the text of Kafka's tool (`DumpLogSegments`)."""

from __future__ import annotations

import numpy as np

from logstore.columns.batch_table import BatchTable, Int64Array
from logstore.columns.decoded_records import Records
from logstore.columns.record_table import RecordTable, record_error, unknown_codec
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as dump_text
from logstore.kernels.dump import state as dump_state
from logstore.layout.batch import CODEC_MASK, CONTROL_FLAG, MAGIC_V2
from logstore.model import Codec

from .log_printer import LogPrinter
from .output import Output, Row
from .slow_rows import SlowRows


class TextRows:
    """Printer of rows that are made one by one."""

    def __init__(self, out: Output) -> None:
        self.out = out

    def write_rows(self, rows: list[Row]) -> None:
        """Print a line for each row."""
        self.out.write(b"".join([f"{_text(row)}\n".encode("utf-8", "replace") for row in rows]))

    def write_part(self, row: Row) -> None:
        """Print the beginning of a line."""
        self.out.write(_text(row).encode())


class LogTextRows(TextRows):
    """Printer of the batches and records of a log, by the kernels of a `LogPrinter`.

    It also prints the rows that those kernels stop for.
    """

    def __init__(self, printer: LogPrinter) -> None:
        super().__init__(printer.out)
        self._printer = printer
        self._walk = SlowRows(np.frombuffer(printer.data, np.uint8), printer.options, None, self)

    @property
    def previous_offset(self) -> int:
        """See `LogPrinter`."""
        return self._printer.previous_offset

    @previous_offset.setter
    def previous_offset(self, offset: int) -> None:
        """Go on behind this offset."""
        self._printer.previous_offset = offset

    def write_batches(self, table: BatchTable, rows: Int64Array) -> None:
        """Print a line for each batch."""
        for row in rows.tolist():
            self._printer.headers.print_rows(table, row, row + 1)

    def write_records(self, table: BatchTable, batches: Int64Array, window: Records, records: Int64Array) -> None:
        """Print the lines of batches, each before the lines of its records."""
        chunk: RecordTable = window
        if records.size < chunk.count:
            chunk = RecordTable(chunk.data, np.ascontiguousarray(chunk.matrix[:, records]), records.size)
        batch_rows = window.rows[records]
        headed = set(batches.tolist())
        rows = sorted(headed.union(batch_rows.tolist()))
        start = 0
        for row, end in zip(rows, batch_rows.searchsorted(rows, "right").tolist(), strict=True):
            if row in headed:
                self.write_batches(table, np.array([row]))
            self._print_records(chunk, start, end, int(table.attributes[row]))
            start = end

    def note_offsets(self, offsets: Int64Array) -> None:
        """Compare the offset of each record that no kernel printed with the one before."""
        for offset in offsets.tolist():
            self._printer.note_offset(offset)

    def _print_records(self, chunk: RecordTable, start: int, end: int, attributes: int) -> None:
        """Print the lines of records start … end - 1, all of one batch."""
        state = self._printer.state
        state[dump_state.ATTRIBUTES] = attributes
        state[dump_state.CHUNK_ROW], state[decode.ROW_COUNT] = start, end
        state[decode.END_POSITION] = chunk.data.size
        arguments = dump_text.dump_records, chunk.matrix.shape[1], chunk.data, chunk.matrix
        while self._printer.run(*arguments) != dump_state.DONE:
            self._end_record(chunk)

    def _end_record(self, chunk: RecordTable) -> None:
        """Print the end of a line, behind the metadata of the record that a kernel stopped for."""
        from .decoders import control_record_text  # here, because the import takes longer than a dump

        state, options = self._printer.state, self._printer.options
        index = state[dump_state.CHUNK_ROW]
        key, value = chunk.key(index), chunk.value(index)
        if state[dump_state.ATTRIBUTES] & CONTROL_FLAG:
            text = control_record_text(key, value, options.kafka_version)
        else:
            key_text, value_text = options.record_texts(int(chunk.offset[index]), key, value)
            text = _joined("| " if options.skips_metadata else " ", {"key": key_text, "payload": value_text})
        self.out.write(text.encode("utf-8", "replace") + b"\n")
        state[dump_state.CHUNK_ROW] = index + 1

    def go_on(self, status: int, table: BatchTable, row_end: int) -> None:
        """Print the row that `dump_batches` stopped for on its way to `row_end`, or raise its error."""
        state = self._printer.state
        row = state[dump_state.ROW]
        if status == dump_state.PYTHON_RECORD:
            matrix = np.frombuffer(self._printer.records, np.int64).reshape(decode.COLUMN_COUNT, -1)
            self._end_record(RecordTable(self._walk.data, matrix, state[decode.ROW_COUNT]))
            return
        if status == dump_state.LEGACY_ROW:
            self._walk.print_entry(table, row)
            end = row + 1
        elif status == dump_state.PYTHON_BATCH:
            codecs = table.attributes[row:row_end] & CODEC_MASK
            is_other = (table.magic[row:row_end] < MAGIC_V2) | (codecs == Codec.NONE) | (codecs > max(Codec))
            end = row + max(1, int(is_other.argmax()) if is_other.any() else row_end - row)
            self._walk.print_records(table, np.arange(row, end), last_row=row)
        elif status == dump_state.UNKNOWN_CODEC:
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))
        else:
            raise record_error(state[dump_state.DECODE_STATUS], np.frombuffer(state, np.int64))
        state[dump_state.ROW], state[dump_state.IS_LINE_PRINTED] = end, 0


_FIELDS = {  # in the order of Kafka's lines
    "batch": ("lastOffset", "position", "maxTimestamp", "size", "magic", "codec", "crc", "isValid"),
    "record": ("offset", "timestamp", "keySize", "valueSize", "isValid", "crc", "key", "value"),
}
_LABELS = {
    "batch": {"lastOffset": "offset", "codec": "compresscodec", "isValid": "isvalid"},
    "record": {"value": "payload"},
}


def _text(row: Row) -> str:
    """Return the line of a row, or the beginning that its fields make."""
    of = row["type"]
    if of == "message":
        return str(row["message"])
    if of not in _FIELDS:  # an entry of an index or a snapshot
        fields = {name: "OptionalLong.empty" if value is None else value for name, value in row.items()}
        del fields["type"]
        return _joined("", fields)
    labels = _LABELS[of] | dict.fromkeys(("timestamp", "maxTimestamp"), str(row.get("timestampType")))
    fields = {labels.get(name, name): row[name] for name in _FIELDS[of] if name in row}
    return _joined("| " if of == "record" else "", fields)


def _joined(prefix: str, fields: Row) -> str:
    """Return the names and values of the fields that are not None."""
    texts = [
        f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in fields.items()
        if value is not None
    ]
    return prefix + " ".join(texts) if texts else ""
