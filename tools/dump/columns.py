"""The batches and records of a log as rows: columns by the names that JSON has, for formats other than text."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from logstore.audit.batch_headers import FieldColumn, field_column
from logstore.columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from logstore.columns.decoded_records import Records
from logstore.columns.record_table import RecordTable, unknown_codec
from logstore.disk.names import absolute_path, file_name, parent
from logstore.errors import LogstoreError
from logstore.kernels.rules import increment_sequence
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_SEQUENCE, NO_TIMESTAMP
from logstore.layout.file_names import parse_partition_directory
from logstore.model import Codec, TimestampType
from logstore.rows.batches import RecordRow
from logstore.rows.dumped import DumpedBatch, DumpedRecord
from logstore.rows.schema import fields_of, json_name

from .decoders import read_control_record
from .options import DumpOptions
from .output import Output, Row

ABSENT = object()  # in a column: the row has no such field
_BATCH_FIELDS = [field.name for field in fields_of(DumpedBatch) if field.name != "path"]
_RECORD_FIELDS = [json_name(field.name) for field in fields_of(DumpedRecord)]
_RECORD_TABLE_FIELDS = [json_name(field.name) for field in fields_of(RecordRow)]


_TIMESTAMP_TYPES: list[str | None] = [
    TimestampType.CREATE_TIME.kafka_name,
    TimestampType.LOG_APPEND_TIME.kafka_name,
]


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


Column = FieldColumn | Slices | list[Any]  # a list of text, bytes, None, ABSENT, headers, …


class RowsOfType(NamedTuple):
    """Rows of one type, `batch` or `record`: columns of one length, in the order that JSON has."""

    type: str
    size: int
    columns: dict[str, Column]


class ColumnWriter:
    """Writes the rows of a file by columns; see `output.Writer`. Subclasses know how rows are written."""

    def __init__(self, path: str, options: DumpOptions, out: Output) -> None:
        self._options = options
        self._place: Row = _partition_of(path) if options.is_record_table else {"path": path}
        self._out = out

    @abstractmethod
    def write_rows(self, rows: list[Row]) -> None:
        """Write rows that are made one by one."""

    @abstractmethod
    def write_interleaved(self, batches: RowsOfType, records: RowsOfType, starts: list[int]) -> None:
        """Write batches with their records: those of batch i begin at starts[i]; those before are of an earlier one."""

    def write_part(self, row: Row) -> None:
        """Leave out a row that is not whole."""

    def write_batches(self, table: BatchTable, rows: Int64Array) -> None:
        for row in rows[table.attributes[rows] & CODEC_MASK > max(Codec)].tolist():
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))
        if rows.size:
            self.write_interleaved(_batch_rows(table.taken(rows)), RowsOfType("record", 0, {}), [0] * rows.size)

    def write_records(self, table: BatchTable, batches: Int64Array, window: Records, records: Int64Array) -> None:
        attributes = table.attributes[window.rows]
        if self._options.skips_metadata:  # nothing is left of a control record
            records = records[attributes[records] & CONTROL_FLAG == 0]
        found, error = _record_rows(window, records, attributes[records], self._options)
        rows = window.rows[records]
        if error is not None:
            batches = batches[batches <= rows[found.size]]
        starts = rows[: found.size].searchsorted(batches)
        self.write_interleaved(_batch_rows(table.taken(batches)), found, starts.tolist())
        if error is not None:
            raise error


def _partition_of(path: str) -> Row:
    """Return the topic and the number of the partition that a file is of; None for a file in another directory."""
    partition = parse_partition_directory(file_name(parent(absolute_path(path))))
    if partition is None:
        return {"topic": None, "partition": None}
    return {"topic": partition.topic, "partition": partition.partition}


def _batch_rows(table: BatchTable) -> RowsOfType:
    """Return the headers of v2 batches, whose codecs Kafka knows."""
    return RowsOfType("batch", len(table), {json_name(name): _header_field(table, name) for name in _BATCH_FIELDS})


def _header_field(table: BatchTable, name: str) -> FieldColumn:
    if name != "last_sequence":
        return field_column(table, name)
    first, deltas = table.column(scan.BASE_SEQUENCE), table.column(scan.LAST_OFFSET_DELTA)
    last = [
        NO_SEQUENCE if sequence == NO_SEQUENCE else increment_sequence(sequence, delta)
        for sequence, delta in zip(first.tolist(), deltas.tolist(), strict=True)
    ]
    return FieldColumn(np.array(last, np.int64))


def _record_rows(
    records: RecordTable, rows: Int64Array, attributes: Int64Array, options: DumpOptions
) -> tuple[RowsOfType, LogstoreError | None]:
    """Return the records of `rows`, int64, ascending, up to one whose contents raise, and that error.

    `attributes` are those of their batches, int64[rows.size].
    """
    is_control = attributes & CONTROL_FLAG != 0
    contents, error = _contents(records, rows, is_control, options)
    if error is not None:
        rows = rows[: len(contents["control"])]
    if options.skips_metadata:
        return RowsOfType("record", rows.size, contents), error
    timestamps = records.timestamp[rows]
    kinds = (attributes[: rows.size] & LOG_APPEND_TIME_FLAG != 0).astype(np.int64)
    has_headers = records.header_count[rows].any()
    columns: dict[str, Column] = {
        "offset": FieldColumn(records.offset[rows]),
        "timestamp": FieldColumn(timestamps, timestamps == NO_TIMESTAMP),
        "timestampType": FieldColumn(kinds, texts=_TIMESTAMP_TYPES),
        "isControl": FieldColumn(is_control[: rows.size]),
        "keySize": FieldColumn(records.key_size[rows]),
        "valueSize": FieldColumn(records.value_size[rows]),
        "sequence": FieldColumn(records.sequence[rows]),
        "headers": [records.headers(row) for row in rows.tolist()] if has_headers else [[]] * rows.size,
        **contents,
    }
    names = _RECORD_TABLE_FIELDS if options.is_record_table else _RECORD_FIELDS
    return RowsOfType("record", rows.size, {name: columns[name] for name in names if name in columns}), error


def _contents(
    records: RecordTable, rows: Int64Array, is_control: BoolArray, options: DumpOptions
) -> tuple[dict[str, Column], LogstoreError | None]:
    """Return the columns `control`, `key` and `value`, as far as there are any, up to a record that raises."""
    has_control = bool(is_control.any()) and not options.is_record_table
    if not has_control and not options.needs_python:
        columns: dict[str, Column] = {}
        if options.prints_contents:
            columns["key"] = Slices(records.data, records.key_position[rows], records.key_size[rows])
            columns["value"] = Slices(records.data, records.value_position[rows], records.value_size[rows])
        return columns, None
    found: list[tuple[Any, Any, Any]] = []
    error = None
    offsets = records.offset
    try:
        for row, is_one in zip(rows.tolist(), is_control.tolist(), strict=True):
            key, value = records.key(row), records.value(row)
            if is_one and options.needs_python and not has_control:  # a column of texts
                found.append((ABSENT, None, read_control_record(key, value, options.kafka_version).json))
            elif is_one and has_control:
                found.append((read_control_record(key, value, options.kafka_version).json, ABSENT, ABSENT))
            elif options.needs_python:
                found.append((ABSENT, *options.record_texts(int(offsets[row]), key, value)))
            else:
                found.append((ABSENT, key, value))
    except LogstoreError as raised:
        error = raised
    names = ("control", "key", "value") if options.prints_contents else ("control",)
    return {name: [row[index] for row in found] for index, name in enumerate(names)}, error
