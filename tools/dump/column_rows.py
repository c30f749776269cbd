"""The batches and records of a log as rows: columns by the names that JSON has, for formats other than text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable, ByteArray, Int64Array
from logstore.columns.decoded_records import Records
from logstore.columns.record_table import RecordTable, unknown_codec
from logstore.disk.names import absolute_path, file_name, parent
from logstore.errors import LogstoreError
from logstore.kernels.rules import increment_sequence
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
)
from logstore.layout.file_names import parse_partition_directory
from logstore.model import Codec, TimestampType

from .decoders import read_control_record
from .findings import Findings
from .options import DumpOptions
from .output import Output, Row

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


class Words(NamedTuple):
    """One of a few texts in each row."""

    texts: Sequence[str]
    indices: Int64Array


Column = npt.NDArray[Any] | Slices | Words | list[Any]  # of int64 or bool; or of numbers, text, bytes, None, ABSENT, …


class RowsOfType(NamedTuple):
    """RowsOfType of one type, `batch` or `record`: columns of one length, in the order that JSON has."""

    type: str
    size: int
    columns: dict[str, Column]


class ColumnRows:
    """Writes the rows of a log by columns; subclasses know how they are written.

    Args:
        findings: collects offsets that do not follow each other; None skips the check.

    Attributes:
        previous_offset: see `LogPrinter`.
    """

    def __init__(self, path: str, options: DumpOptions, out: Output, findings: Findings | None = None) -> None:
        self._path = path
        self._options = options
        self._place: Row = _partition_of(path) if options.has("records") else {"path": path}
        self.out = out
        self._findings = findings
        self.previous_offset = -1

    @abstractmethod
    def write_rows(self, rows: list[Row]) -> None:
        """Write rows that are made one by one."""

    @abstractmethod
    def write_interleaved(self, batches: RowsOfType, records: RowsOfType, starts: list[int]) -> None:
        """Write batches with their records: those of batch i begin at starts[i]; those before are of an earlier one."""

    def write_part(self, row: Row) -> None:
        """Leave out a row that is not whole."""

    def write_batches(self, table: BatchTable, rows: Int64Array) -> None:
        """Write the headers of v2 batches; raises for a codec that Kafka does not know."""
        for row in rows[table.attributes[rows] & CODEC_MASK > max(Codec)].tolist():
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))
        if rows.size:
            self.write_interleaved(_batch_rows(table, rows), RowsOfType("record", 0, {}), [0] * rows.size)

    def write_records(self, table: BatchTable, batches: Int64Array, window: Records, records: Int64Array) -> None:
        """Write headers of v2 batches, each before those of the window's records that are its, and these records."""
        self.note_offsets(window.offset)
        attributes = table.attributes[window.rows]
        if self._options.skips_metadata:  # nothing is left of a control record
            records = records[attributes[records] & CONTROL_FLAG == 0]
        found, error = _record_rows(window, records, attributes, self._options)
        batch_rows = window.rows[records]
        if error is not None:
            batches = batches[batches <= batch_rows[found.size]]
        starts = batch_rows[: found.size].searchsorted(batches)
        self.write_interleaved(_batch_rows(table, batches), found, starts.tolist())
        if error is not None:
            raise error

    def note_offsets(self, offsets: Int64Array) -> None:
        """Tell the findings which of the next offsets do not follow the one before; the first must be 0."""
        previous = np.concatenate([np.array([self.previous_offset], np.int64), offsets[:-1]])[: offsets.size]
        rows = np.flatnonzero(offsets != previous + 1)
        if rows.size and self._findings is not None:
            self._findings.non_consecutive(self._path, previous[rows], offsets[rows])
        if offsets.size:
            self.previous_offset = int(offsets[-1])


def _partition_of(path: str) -> Row:
    """Return the topic and the number of the partition that a file is of; None for a file in another directory."""
    partition = parse_partition_directory(file_name(parent(absolute_path(path))))
    if partition is None:
        return {"topic": None, "partition": None}
    return {"topic": partition.topic, "partition": partition.partition}


def _batch_rows(table: BatchTable, rows: Int64Array) -> RowsOfType:
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
        "recordCount": table.record_count[rows],
        "baseSequence": base_sequences,
        "lastSequence": last_sequences,
        "producerId": table.producer_id[rows],
        "producerEpoch": table.producer_epoch[rows],
        "partitionLeaderEpoch": table.column(scan.PARTITION_LEADER_EPOCH)[rows],
        "isTransactional": attributes & TRANSACTIONAL_FLAG != 0,
        "isControl": attributes & CONTROL_FLAG != 0,
        "deleteHorizon": [
            timestamp if flag else None for timestamp, flag in zip(base_timestamps.tolist(), has_horizon, strict=True)
        ],
        "position": table.position[rows],
        "timestampType": _timestamp_types(attributes),
        "maxTimestamp": table.max_timestamp[rows],
        "size": table.size[rows],
        "magic": table.magic[rows],
        "codec": Words([codec.kafka_name for codec in Codec], attributes & CODEC_MASK),
        "crc": table.column(scan.CRC)[rows],
        "isValid": table.is_valid[rows] == 1,
    }
    return RowsOfType("batch", rows.size, columns)


def _timestamp_types(attributes: Int64Array) -> Words:
    names = [TimestampType.CREATE_TIME.kafka_name, TimestampType.LOG_APPEND_TIME.kafka_name]
    return Words(names, (attributes & LOG_APPEND_TIME_FLAG != 0).astype(np.int64))


def _record_rows(
    records: RecordTable, rows: Int64Array, attributes: Int64Array, options: DumpOptions
) -> tuple[RowsOfType, LogstoreError | None]:
    """Return some records of v2 batches, up to one whose contents raise, and that error.

    Args:
        rows: int64, ascending: the records.
        attributes: int64[records.count]: of their batches.
    """
    is_control = attributes[rows] & CONTROL_FLAG != 0
    contents, error = _contents(records, rows, is_control, options)
    if error is not None:
        rows = rows[: len(contents["control"])]
    columns: dict[str, Column] = {}
    has_headers = not options.skips_metadata and records.header_count[rows].any()
    headers: Column = [records.headers(row) for row in rows.tolist()] if has_headers else [[]] * rows.size
    if options.has("records"):
        contents.pop("control", None)
        columns |= {
            "offset": records.offset[rows],
            "timestamp": records.timestamp[rows],
            "timestampType": _timestamp_types(attributes[rows]),
            "isControl": is_control[: rows.size],
        }
        contents["headers"] = headers
    elif not options.skips_metadata:
        columns |= {
            "offset": records.offset[rows],
            "timestampType": _timestamp_types(attributes[rows]),
            "timestamp": records.timestamp[rows],
            "keySize": records.key_size[rows],
            "valueSize": records.value_size[rows],
            "sequence": records.sequence[rows],
            "headers": headers,
        }
    return RowsOfType("record", rows.size, columns | contents), error


def _contents(
    records: RecordTable, rows: Int64Array, is_control: npt.NDArray[np.bool_], options: DumpOptions
) -> tuple[dict[str, Column], LogstoreError | None]:
    """Return the columns `control`, `key` and `value`, as far as there are any, up to a record that raises."""
    has_control = bool(is_control.any()) and not options.has("records")
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
