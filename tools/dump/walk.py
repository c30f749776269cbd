"""The walk through a log: its batches and records that pass a filter, to a writer of any format.

Of a text dump without a filter and decoders it has only what kernels leave out: v0/v1 entries, compressed batches,
control records other than well-formed transaction markers, and errors. It decompresses many batches at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from logstore.columns.batch_table import BatchTable, ByteArray, Int64Array
from logstore.columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from logstore.columns.record_windows import record_windows
from logstore.errors import CorruptRecordError, InvalidRecordError, LogstoreError
from logstore.layout.batch import CODEC_MASK, MAGIC_V2
from logstore.layout.legacy import MAGIC
from logstore.model import Codec, TimestampType

from .findings import Findings, Gaps
from .options import DumpOptions
from .output import Row, Writer

if TYPE_CHECKING:
    from .decoders import MessageParser
    from .filters import RecordFilter

_LEGACY = -1  # kind of a v0/v1 entry; that of a v2 batch is whether its codec is unknown, 0 or 1


class LogWalk:
    """The walk through one log.

    Where no line of a batch says that its checksum is wrong, its records are left out, and a finding tells so.

    Args:
        data: the whole file.
        record_filter: None for everything.
    """

    def __init__(
        self,
        path: str,
        data: ByteArray,
        options: DumpOptions,
        record_filter: RecordFilter | None,
        writer: Writer,
        gaps: Gaps,
        findings: Findings,
    ) -> None:
        self._path = path
        self._data = data
        self._options = options
        self._is_deep = options.is_deep
        self._filter = record_filter
        self._writer = writer
        self._gaps = gaps
        self._findings = findings
        # a consumer gets no batch with a wrong checksum, with or without its line
        is_of_consumer = record_filter is not None and record_filter.consumed is not None
        self._leaves_out_corrupt = is_of_consumer or not options.shows_batches
        self._is_whole = record_filter is None and options.shows_batches  # each batch is written, whatever is in it

    def write(self, table: BatchTable) -> None:
        """Write the batches that pass the filter, and in a deep dump the records that pass.

        A shallow dump looks only at the headers of v2 batches.
        """
        every = np.arange(table.count)
        self._write_rows(table, every if self._filter is None else self._filter.rows(table, self._is_deep))

    def write_other(self, table: BatchTable, row: int) -> int:
        """Write the batches from `row` on, up to one that is not compressed; return its row."""
        is_plain = (table.magic[row + 1 :] >= MAGIC_V2) & (table.attributes[row + 1 :] & CODEC_MASK == Codec.NONE)
        end = row + 1 + (int(is_plain.argmax()) if is_plain.any() else is_plain.size)
        self._write_rows(table, np.arange(row, end))
        return end

    def _write_rows(self, table: BatchTable, rows: Int64Array) -> None:
        """Write the batches of rows that pass by their headers."""
        if self._leaves_out_corrupt:
            is_corrupt = table.is_valid[rows] == 0  # of v2 batches alone
            for row in rows[is_corrupt].tolist():
                self._findings.left_out(self._path, table, row)
            rows = rows[~is_corrupt]
        is_unknown = table.attributes[rows] & CODEC_MASK > max(Codec)
        kinds = np.where(table.magic[rows] < MAGIC_V2, _LEGACY, is_unknown)
        for run in np.split(np.arange(rows.size), np.flatnonzero(np.diff(kinds)) + 1) if rows.size else ():
            if kinds[run[0]] == _LEGACY:
                for row in rows[run].tolist():
                    self.write_entry(table, row)
            elif self._is_deep and not (is_unknown[run[0]] and self._is_whole):
                self._write_records(table, rows[run])
            else:
                self._note_match()
                self._writer.write_batches(table, rows[run])

    def _note_match(self) -> None:
        if self._filter is not None:
            self._filter.matches.is_any = True

    def _write_records(self, table: BatchTable, rows: Int64Array) -> None:
        """Write v2 batches with their records, or with those that pass the filter."""
        last_row = -1  # whose header is written
        for window in record_windows(self._data, table, rows):
            if window.error is not None:
                if self._is_whole:
                    self._writer.write_batches(table, rows[(rows > last_row) & (rows <= window.batch_rows[-1])])
                raise window.error
            if self._filter is None:
                records, batches = np.arange(window.count), rows[rows <= window.batch_rows[-1]]
            else:
                records = np.flatnonzero(self._filter.records(window))
                batches = np.unique(window.rows[records])
            if batches.size:
                self._note_match()
            batches = batches[batches > last_row] if self._options.shows_batches else batches[:0]
            self._gaps.note(window.offset)
            if batches.size or records.size:
                self._writer.write_records(table, batches, window, records)
            last_row = int(batches[-1]) if batches.size else last_row
        if self._is_whole:
            self._writer.write_batches(table, rows[rows > last_row])

    def write_entry(self, table: BatchTable, row: int) -> None:
        """Write a v0/v1 entry if one of its records passes, and in a deep dump the records that pass."""
        position, size = int(table.position[row]), int(table.size[row])
        entry = legacy_entry(self._data, table, row)
        is_due = self._options.shows_batches and not self._is_whole  # the header waits for a record that passes
        if self._is_whole:
            self._write_header(entry, position, size)
            if not self._is_deep:
                return
        rows: list[Row] = []
        part: Row = {}
        try:
            for record in read_legacy_records(entry):
                if self._filter is not None and not self._filter.passes(record):
                    continue
                if self._leaves_out_corrupt and not entry.is_valid:
                    self._findings.left_out(self._path, table, row)
                    return
                self._note_match()
                if is_due:
                    self._write_header(entry, position, size)
                    is_due = False
                if not self._is_deep:
                    return
                self._gaps.note(np.array([record.offset]))
                part = {"type": "record"}
                _legacy_record(part, record, entry.timestamp_type, self._options)
                rows.append(part)
        finally:
            self._writer.write_rows(rows)
            if part and part is not (rows[-1] if rows else None):
                self._writer.write_part(part)

    def _write_header(self, entry: LegacyRecord, position: int, size: int) -> None:
        """Write the line of the entry of `size` bytes at `position`; of a damaged entry only the offset."""
        row: Row = {"type": "batch", "lastOffset": entry.offset}
        try:
            if entry.magic < 0:
                raise CorruptRecordError(
                    f"Invalid magic used in LegacyRecord: {entry.magic}",
                    position=position + MAGIC,
                    java_class="java.lang.IllegalArgumentException",
                )
            codec = entry.codec
        except LogstoreError:
            self._writer.write_part(row)
            raise
        row |= {
            "position": position,
            "timestampType": entry.timestamp_type.kafka_name,
            "maxTimestamp": entry.timestamp,
            "size": size,
            "magic": entry.magic,
            "codec": codec.kafka_name,
            "crc": entry.crc,
            "isValid": entry.is_valid,
        }
        self._writer.write_rows([row])


def _legacy_record(row: Row, record: LegacyRecord, timestamp_type: TimestampType, options: DumpOptions) -> None:
    """Put the fields of a record into `row`, up to the first that raises.

    Args:
        timestamp_type: that of the entry.

    Raises:
        InvalidRecordError: the record is too short for its sizes, its key or its value.
        LogstoreError: a decoder fails.
    """
    if options.is_record_table:
        row |= {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": timestamp_type.kafka_name,
            "isControl": False,
        }
    elif not options.skips_metadata:
        row |= {
            "offset": record.offset,
            "timestampType": timestamp_type.kafka_name,
            "timestamp": record.timestamp,
            "keySize": record.key_size,
            "valueSize": record.value_size,
            "crc": record.crc,
            "isValid": record.is_valid,
        }
    if options.prints_contents:
        is_decoded = options.needs_python or options.format == "text"
        row["key"], row["value"] = (
            _texts(record, options) if is_decoded else (_copied(record.key), _copied(record.value))
        )
    if options.is_record_table:
        row["headers"] = []


def _texts(record: LegacyRecord, options: DumpOptions) -> tuple[str | None, str | None]:
    """Return the texts that the decoders of the options make of key and value; None prints nothing."""
    if options.parser is None:
        # not `record_texts`: a key that does not decode is an error before a value whose size is wrong
        key_text = None if record.key is None else options.key_decoder(bytes(record.key))
        return key_text, None if record.value is None else options.value_decoder(bytes(record.value))
    try:
        key, value = _copied(record.key), _copied(record.value)
    except InvalidRecordError as error:
        return _parsed_despite(record, options.parser, error)
    return options.parser(record.offset, key, value)


def _parsed_despite(
    record: LegacyRecord, parser: MessageParser, error: InvalidRecordError
) -> tuple[str | None, str | None]:
    """Return the texts of a record whose key or value reaches beyond its end: Kafka's parsers print that error."""
    from .decoders import ValueParser

    text = f"{record.offset}, skipping. {error.message or 'null'}"
    if isinstance(parser, ValueParser):
        try:
            value = _copied(record.value)
        except InvalidRecordError:
            return None, f"Error at {parser.noun}{text}"
        return parser(record.offset, None, value)
    if record.key_size < 0:
        return parser(record.offset, None, None)
    return f"Error at offset {text}", None


def _copied(field: memoryview | None) -> bytes | None:
    """Return a copy of a key or a value."""
    return None if field is None else bytes(field)
