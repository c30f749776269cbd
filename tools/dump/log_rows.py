"""The batches and records of a log as rows: columns by the names that JSON has, for formats other than text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable, ByteArray, Int64Array
from logstore.columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX, RecordTable, unknown_codec
from logstore.columns.record_windows import BadBatch, record_windows
from logstore.errors import LogstoreError
from logstore.kernels.rules import increment_sequence
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    MAGIC_V2,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from logstore.model import Codec, TimestampType

from .findings import Findings
from .legacy_text import copied, legacy_batch, legacy_metadata, legacy_texts
from .options import DumpOptions
from .output import Output, Row
from .slow_rows import record_texts

ABSENT = object()  # in a column: the row has no such field


class Slices(NamedTuple):
    """Keys or values: uint8 data, and int64 positions in it and sizes, -1 for null."""

    data: ByteArray
    positions: Int64Array
    sizes: Int64Array

    def values(self) -> list[bytes | None]:
        """Return each as bytes of its own."""
        view = self.data.data
        return [
            None if size < 0 else bytes(view[position : position + size])
            for position, size in zip(self.positions.tolist(), self.sizes.tolist(), strict=True)
        ]


Column = npt.NDArray[Any] | Slices | list[Any]  # of int64, bool or words; or of numbers, text, bytes, None, ABSENT, …


@dataclass(frozen=True)
class Rows:
    """Rows of one kind: `batch`, `record` or `trailer`; columns of one length, in the order that JSON has."""

    kind: str
    count: int
    columns: dict[str, Column]

    @classmethod
    def of(cls, kind: str, rows: list[Row]) -> Rows:
        """Make columns of rows that have the same fields, at least one."""
        return cls(kind, len(rows), {name: [row[name] for row in rows] for name in rows[0]})


class RowWriter(Protocol):
    """What writes rows in some format."""

    def write(self, rows: Rows) -> None:
        """Write rows, in order."""

    def write_batches(self, batches: Rows, records: Rows, starts: list[int]) -> None:
        """Write batches with their records: those of batch i begin at starts[i]; those before are of an earlier one."""

    def write_entries(self, rows: list[dict[str, Any]]) -> None:
        """Write rows of an index or snapshot: `message` alone, or the fields of an entry, which may differ."""


def row_writer(path: str, options: DumpOptions, out: Output) -> RowWriter:
    """Return what writes the rows of the file at `path` in the format of the options."""
    if options.format == "json":
        from .json_lines import JsonWriter

        return JsonWriter(path, out)
    from .arrow_rows import ArrowWriter

    return ArrowWriter(path, options, out)


class LogRows:
    """One log file on its way to a `RowWriter`; see `LogPrinter`, which prints it as text."""

    def __init__(self, path: str, data: ByteArray, options: DumpOptions, writer: RowWriter, findings: Findings) -> None:
        self._path = path
        self._data = data
        self._options = options
        self._filter = None if options.filter is None else options.filter.of_file(path)
        self._writer = writer
        self._findings = findings
        self._previous_offset = np.array([-1], np.int64)

    def print_table(self, table: BatchTable) -> None:
        """Write the batches of a table that pass the filter, and in a deep dump the records."""
        options = self._options
        is_asking_records = options.is_deep or (self._filter is not None and self._filter.key is not None)
        rows = np.arange(table.count) if self._filter is None else self._filter.rows(table, is_asking_records)
        for run in np.split(rows, np.flatnonzero(np.diff(table.magic[rows] < MAGIC_V2)) + 1):
            if run.size and table.magic[run[0]] < MAGIC_V2:
                self._write_entries(table, run)
            elif run.size and is_asking_records and self._filter is not None:
                self._write_with_records(table, run)
            elif run.size:
                self._write_all(table, run)

    def print_trailer(self, size: int) -> None:
        """Write how many bytes at the end of the file are no batch."""
        self._writer.write(Rows("trailer", 1, {"invalidBytes": [size]}))

    def close(self) -> None:
        """Nothing is kept back."""

    def _write_all(self, table: BatchTable, rows: Int64Array) -> None:
        """Write all of some v2 batches, up to one with a codec that Kafka does not know."""
        unknown = rows[table.attributes[rows] & CODEC_MASK > max(Codec)]
        if unknown.size:
            rows = rows[rows < unknown[0]]
        if self._options.is_deep:
            self._write_with_records(table, rows)
        else:
            self._writer.write(batch_rows(table, rows))
        if unknown.size:
            row = int(unknown[0])
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))

    def _write_with_records(self, table: BatchTable, rows: Int64Array) -> None:
        """Write v2 batches with their records: all, or those that pass the filter."""
        record_filter = self._filter
        last_row = -1  # of the batches that are written; a window may go on with the records of one
        for window in record_windows(self._data, table, rows):
            if isinstance(window, BadBatch):
                if record_filter is None:
                    self._writer.write(batch_rows(table, rows[(rows > last_row) & (rows <= window.row)]))
                raise window.error
            records = window.records
            if record_filter is None:
                self._note_offsets(records.offset)
                passing, batches = np.arange(records.count), rows
            else:
                passing = np.flatnonzero(record_filter.records(records))
                batches = np.unique(window.rows[passing])
            attributes = table.attributes[window.rows]
            shown = self._shown(passing, attributes)
            found, error = record_rows(records, shown, attributes, self._options)
            row_end = window.batch_rows[-1] if error is None else window.rows[shown[found.count]]
            batches = batches[(batches > last_row) & (batches <= row_end)]
            starts = window.rows[shown[: found.count]].searchsorted(batches)
            self._writer.write_batches(batch_rows(table, batches), found, starts.tolist())
            last_row = int(batches[-1]) if batches.size else last_row
            if error is not None:
                raise error
        if record_filter is None:
            self._writer.write(batch_rows(table, rows[rows > last_row]))

    def _shown(self, passing: Int64Array, attributes: Int64Array) -> Int64Array:
        """Return which of the passing records have a row of their own."""
        if not self._options.is_deep:
            return passing[:0]
        if self._options.skips_metadata:  # nothing is left of a control record
            passing = passing[attributes[passing] & CONTROL_FLAG == 0]
        return passing

    def _write_entries(self, table: BatchTable, rows: Int64Array) -> None:
        """Write v0/v1 entries, and in a deep dump their records."""
        offsets: list[int] = []
        for row in rows.tolist():
            position, size = int(table.position[row]), int(table.size[row])
            self._write_entry(legacy_entry(self._data, position, size), position, size, offsets)
        self._note_offsets(np.array(offsets, np.int64))

    def _write_entry(self, entry: LegacyRecord, position: int, size: int, offsets: list[int]) -> None:
        options = self._options
        is_due = self._filter is None
        if is_due:
            self._writer.write(Rows.of("batch", [legacy_batch(entry, position, size)]))
            if not options.is_deep:
                return
        records: list[Row] = []
        try:
            for record in read_legacy_records(entry, DECOMPRESSED_SIZE_MAX):
                if self._filter is None:
                    offsets.append(record.offset)
                elif not self._filter.passes(record):
                    continue
                elif not is_due:
                    self._writer.write(Rows.of("batch", [legacy_batch(entry, position, size)]))
                    is_due = True
                if options.is_deep:
                    records.append(_legacy_row(record, entry.timestamp_type, options))
        finally:
            if records:
                self._writer.write(Rows.of("record", records))

    def _note_offsets(self, offsets: Int64Array) -> None:
        """Tell the findings which of the next offsets do not follow the one before; the first must be 0."""
        previous = np.concatenate([self._previous_offset, offsets[:-1]])[: offsets.size]
        rows = np.flatnonzero(offsets != previous + 1)
        if rows.size:
            self._findings.non_consecutive(self._path, previous[rows], offsets[rows])
        if offsets.size:
            self._previous_offset = offsets[-1:].copy()


def batch_rows(table: BatchTable, rows: Int64Array) -> Rows:
    """Return the headers of v2 batches, whose codecs Kafka knows."""
    attributes = table.attributes[rows]
    base_sequences = table.column(scan.BASE_SEQUENCE)[rows]
    base_timestamps = table.column(scan.BASE_TIMESTAMP)[rows]
    deltas = table.column(scan.LAST_OFFSET_DELTA)[rows].tolist()
    last_sequences = [
        NO_SEQUENCE if first == NO_SEQUENCE else increment_sequence(first, delta)
        for first, delta in zip(base_sequences.tolist(), deltas, strict=True)
    ]
    has_horizon = (attributes & DELETE_HORIZON_FLAG).tolist()
    columns: dict[str, Column] = {
        "baseOffset": table.base_offset[rows],
        "lastOffset": table.last_offset[rows],
        "count": table.record_count[rows],
        "baseSequence": base_sequences,
        "lastSequence": last_sequences,
        "producerId": table.producer_id[rows],
        "producerEpoch": table.producer_epoch[rows],
        "partitionLeaderEpoch": table.column(scan.PARTITION_LEADER_EPOCH)[rows],
        "isTransactional": attributes & TRANSACTIONAL_FLAG != 0,
        "isControl": attributes & CONTROL_FLAG != 0,
        "deleteHorizonMs": [
            timestamp if flag else None for timestamp, flag in zip(base_timestamps.tolist(), has_horizon, strict=True)
        ],
        "position": table.position[rows],
        "timestampType": _timestamp_types(attributes),
        "maxTimestamp": table.max_timestamp[rows],
        "size": table.size[rows],
        "magic": table.magic[rows],
        "codec": _CODEC_NAMES[attributes & CODEC_MASK],
        "crc": table.column(scan.CRC)[rows],
        "isValid": table.is_valid[rows] == 1,
    }
    return Rows("batch", rows.size, columns)


_CODEC_NAMES = np.array([codec.kafka_name for codec in Codec])
_TIMESTAMP_TYPES = np.array([TimestampType.CREATE_TIME.kafka_name, TimestampType.LOG_APPEND_TIME.kafka_name])


def _timestamp_types(attributes: Int64Array) -> npt.NDArray[np.str_]:
    names: npt.NDArray[np.str_] = _TIMESTAMP_TYPES[(attributes & LOG_APPEND_TIME_FLAG != 0).astype(np.int64)]
    return names


def record_rows(
    records: RecordTable, rows: Int64Array, attributes: Int64Array, options: DumpOptions
) -> tuple[Rows, LogstoreError | None]:
    """Return some records of v2 batches, up to one whose contents raise, and that error.

    Args:
        rows: int64, ascending: the records.
        attributes: int64[records.count]: of their batches.
    """
    contents, error = _contents(records, rows, attributes[rows] & CONTROL_FLAG != 0, options)
    if error is not None:
        rows = rows[: len(contents["control"])]
    columns: dict[str, Column] = {}
    if not options.skips_metadata:
        has_headers = records.header_count[rows].tolist()
        columns |= {
            "offset": records.offset[rows],
            "timestampType": _timestamp_types(attributes[rows]),
            "timestamp": records.timestamp[rows],
            "keySize": records.key_size[rows],
            "valueSize": records.value_size[rows],
            "sequence": records.sequence[rows],
            "headers": [
                records.headers(row) if has else [] for row, has in zip(rows.tolist(), has_headers, strict=True)
            ],
        }
    return Rows("record", rows.size, columns | contents), error


def _contents(
    records: RecordTable, rows: Int64Array, is_control: npt.NDArray[np.bool_], options: DumpOptions
) -> tuple[dict[str, Column], LogstoreError | None]:
    """Return the columns `control`, `key` and `value`, as far as there are any, up to a record that raises."""
    if not is_control.any() and not options.needs_python:
        columns: dict[str, Column] = {}
        if options.prints_contents:
            columns["key"] = Slices(records.data, records.key_position[rows], records.key_size[rows])
            columns["value"] = Slices(records.data, records.value_position[rows], records.value_size[rows])
        return columns, None
    from .decoders import read_control_record

    found: list[tuple[Any, Any, Any]] = []
    error = None
    offsets = records.offset
    try:
        for row, is_one in zip(rows.tolist(), is_control.tolist(), strict=True):
            key, value = records.key(row), records.value(row)
            if is_one:
                found.append((read_control_record(key, value), ABSENT, ABSENT))
            elif options.needs_python:
                found.append((ABSENT, *record_texts(options, int(offsets[row]), key, value)))
            else:
                found.append((ABSENT, key, value))
    except LogstoreError as raised:
        error = raised
    names = ("control", "key", "value") if options.prints_contents else ("control",)
    return {name: [row[index] for row in found] for index, name in enumerate(names)}, error


def _legacy_row(record: LegacyRecord, timestamp_type: TimestampType, options: DumpOptions) -> Row:
    row: dict[str, Any] = {} if options.skips_metadata else legacy_metadata(record, timestamp_type)
    if options.prints_contents and options.needs_python:
        row["key"], row["value"] = legacy_texts(record, options)
    elif options.prints_contents:
        row["key"], row["value"] = copied(record.key), copied(record.value)
    return row
