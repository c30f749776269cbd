"""The slow path of a dump, for the batches that kernels do not print (`DumpLogSegments.dumpLog`).

In a text dump without a filter it prints v0/v1 entries, compressed batches, contents that need a decoder, control
records other than well-formed transaction markers, and errors. In any other dump it prints all batches. It decompresses
many batches at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logstore.columns.batch_table import BatchTable, ByteArray, Int64Array
from logstore.columns.decoded_records import Records
from logstore.columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from logstore.columns.record_windows import record_windows
from logstore.errors import CorruptRecordError, InvalidRecordError, LogstoreError
from logstore.layout.batch import CODEC_MASK, MAGIC_V2
from logstore.layout.legacy import MAGIC
from logstore.model import Codec, TimestampType

from .options import DumpOptions
from .output import Output, Row

if TYPE_CHECKING:
    from .decoders import MessageParser
    from .filters import RecordFilter

_LEGACY = -1  # kind of a v0/v1 entry; that of a v2 batch is whether its codec is unknown, 0 or 1


class LogWriter(Protocol):
    """Writes batches and records of a log: as text by `LogTextRows`, else by `ColumnRows`, which say how."""

    out: Output
    previous_offset: int

    def write_rows(self, rows: list[Row]) -> None: ...

    def write_part(self, row: Row) -> None: ...

    def write_batches(self, table: BatchTable, rows: Int64Array) -> None: ...

    def write_records(self, table: BatchTable, batches: Int64Array, window: Records, records: Int64Array) -> None: ...

    def note_offsets(self, offsets: Int64Array) -> None: ...


class SlowRows:
    """The dump of one log file to a writer of text or of columns."""

    def __init__(
        self,
        data: ByteArray,
        options: DumpOptions,
        record_filter: RecordFilter | None,
        writer: LogWriter,
    ) -> None:
        self.data = data
        self._options = options
        self._is_deep = options.is_deep  # also where records are filtered, so that headers alone decide nothing
        self._filter = record_filter
        self._has_batches = options.shows_batches
        self._writer = writer
        self.out = writer.out

    @property
    def previous_offset(self) -> int:
        """See `LogPrinter`."""
        return self._writer.previous_offset

    @previous_offset.setter
    def previous_offset(self, offset: int) -> None:
        """Go on behind this offset."""
        self._writer.previous_offset = offset

    def print_table(self, table: Any) -> None:
        """Write the batches of a table that pass the filter, and in a deep dump the records that pass.

        A shallow dump looks only at the headers of v2 batches.
        """
        rows = np.arange(table.count)
        if self._filter is not None:
            rows = self._filter.rows(table, self._is_deep)
        is_unknown = table.attributes[rows] & CODEC_MASK > max(Codec)
        kinds = np.where(table.magic[rows] < MAGIC_V2, _LEGACY, is_unknown)
        for run in np.split(np.arange(rows.size), np.flatnonzero(np.diff(kinds)) + 1) if rows.size else ():
            if kinds[run[0]] == _LEGACY:
                for row in rows[run].tolist():
                    self.print_entry(table, row)
            elif self._is_deep and not (is_unknown[run[0]] and self._has_batches and self._filter is None):
                self.print_records(table, rows[run])
            else:
                self._note_match()
                self._writer.write_batches(table, rows[run])

    def _note_match(self) -> None:
        if self._filter is not None:
            self._filter.matches.is_any = True

    def print_records(self, table: BatchTable, rows: Int64Array, last_row: int = -1) -> None:
        """Write v2 batches with their records, or with those that pass the filter.

        Args:
            last_row: the last row whose header is written already.
        """
        for window in record_windows(self.data, table, rows):
            if window.error is not None:
                if self._filter is None and self._has_batches:
                    self._writer.write_batches(table, rows[(rows > last_row) & (rows <= window.batch_rows[-1])])
                raise window.error
            if self._filter is None:
                records, batches = np.arange(window.count), rows[rows <= window.batch_rows[-1]]
            else:
                records = np.flatnonzero(self._filter.records(window))
                batches = np.unique(window.rows[records])
            if batches.size:
                self._note_match()
            batches = batches[batches > last_row] if self._has_batches else batches[:0]
            self._writer.write_records(table, batches, window, records)
            last_row = int(batches[-1]) if batches.size else last_row
        if self._filter is None and self._has_batches:
            self._writer.write_batches(table, rows[rows > last_row])

    def print_entry(self, table: BatchTable, row: int) -> None:
        """Write a v0/v1 entry if one of its records passes, and in a deep dump the records that pass."""
        position, size = int(table.position[row]), int(table.size[row])
        entry = legacy_entry(self.data, table, row)
        is_due = self._filter is not None and self._has_batches  # the header waits for a record that passes
        if self._filter is None and self._has_batches:
            self._print_header(entry, position, size)
            if not self._is_deep:
                return
        rows: list[Row] = []
        part: Row = {}
        try:
            for record in read_legacy_records(entry):
                if self._filter is not None and not self._filter.passes(record):
                    continue
                self._note_match()
                if is_due:
                    self._print_header(entry, position, size)
                    is_due = False
                if not self._is_deep:
                    return
                self._writer.note_offsets(np.array([record.offset]))
                part = {"type": "record"}
                _legacy_record(part, record, entry.timestamp_type, self._options)
                rows.append(part)
        finally:
            self._writer.write_rows(rows)
            if part and part is not (rows[-1] if rows else None):
                self._writer.write_part(part)

    def _print_header(self, entry: LegacyRecord, position: int, size: int) -> None:
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
    if options.has("records") and options.format != "text":
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
    if options.has("records") and options.format != "text":
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
