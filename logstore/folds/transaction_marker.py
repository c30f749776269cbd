"""Control batches: what their first records are, and markers that the kernel of the producer state leaves to Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray, Int64Array
from ..columns.record_table import BatchRecords, RecordTable
from ..errors import InvalidRecordError, LogstoreError
from ..kernels import decode
from ..kernels.decode_batches import decode_batches
from ..layout.batch import CODEC_MASK, HEADER_SIZE
from ..model import ControlRecordType

_KNOWN = {bytes((0, 0, 0, 0)): ControlRecordType.ABORT, bytes((0, 0, 0, 1)): ControlRecordType.COMMIT}
_KEY_SIZE = 4
_VERSION_SIZE = 2
_VALUE_SIZE = 6


class TransactionMarker(NamedTuple):
    """What a marker says of the transaction that it ends; timestamp in ms."""

    type: ControlRecordType
    coordinator_epoch: int
    timestamp: int


def read_marker(data: ByteArray, table: BatchTable, row: int) -> TransactionMarker:
    """The first record of a control batch that has one (`EndTransactionMarker.deserialize`).

    Raises:
        InvalidRecordError: the record does not parse or is no marker; `java_class` tells what Kafka dies of.
        DecompressionError, UnsupportedCompressionTypeError: the batch cannot be opened.
    """
    chunk = _first_record(data, table, row)
    try:
        marker_type = _marker_type(chunk.key(0))
        return TransactionMarker(marker_type, _coordinator_epoch(chunk.value(0)), int(chunk.timestamp[0]))
    except LogstoreError as error:
        _locate(error, table, row)
        raise


def control_record_type(key: bytes | None) -> ControlRecordType:
    """What the key of a control record says (`ControlRecordType.parse`).

    Raises:
        InvalidRecordError: it says nothing; `java_class` tells what Kafka dies of.
    """
    if key is None:
        raise InvalidRecordError(None, java_class="java.lang.NullPointerException")
    if len(key) < _KEY_SIZE:
        raise InvalidRecordError(
            "Invalid value size found for control record key. "
            f"Must have at least {_KEY_SIZE} bytes, but found only {len(key)}"
        )
    _check_version(key, "control record")
    type_id = int.from_bytes(key[_VERSION_SIZE:_KEY_SIZE], "big", signed=True)
    return ControlRecordType(type_id) if type_id in set(ControlRecordType) else ControlRecordType.UNKNOWN


def _marker_type(key: bytes | None) -> ControlRecordType:
    known = control_record_type(key)
    if known not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise InvalidRecordError(
            f"Invalid control record type for end transaction marker {known.name}",
            java_class="java.lang.IllegalArgumentException",
        )
    return known


def _coordinator_epoch(value: bytes | None) -> int:
    if value is None:
        raise InvalidRecordError(None, java_class="java.lang.NullPointerException")
    if len(value) < _VERSION_SIZE:
        raise InvalidRecordError(None, java_class="java.nio.BufferUnderflowException")
    _check_version(value, "end transaction marker")
    if len(value) < _VALUE_SIZE:
        raise InvalidRecordError(None, java_class="java.nio.BufferUnderflowException")
    return int.from_bytes(value[_VERSION_SIZE:_VALUE_SIZE], "big", signed=True)


def _check_version(data: bytes, name: str) -> None:
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    if version < 0:
        raise InvalidRecordError(
            f"Invalid version found for {name}: {version}. May indicate data corruption", found=version
        )


def control_types(data: ByteArray, table: BatchTable, rows: Int64Array) -> dict[int, ControlRecordType | None]:
    """The type of each row, None for a batch without records.

    Args:
        rows: int64, of control batches.

    Raises:
        InvalidRecordError: the first row whose first record does not parse, or has a key that is no type.
        DecompressionError, UnsupportedCompressionTypeError: the first row that cannot be opened.
    """
    keys = _plain_keys(data, table, rows)
    types: dict[int, ControlRecordType | None] = {}
    for row, record_count in zip(rows.tolist(), table.record_count[rows].tolist(), strict=True):
        types[row] = _KNOWN.get(keys.get(row, b"")) if record_count else None
        if record_count and types[row] is None:
            types[row] = _read_type(data, table, row)
    return types


def _plain_keys(data: ByteArray, table: BatchTable, rows: Int64Array) -> dict[int, bytes]:
    """Keys of plain batches of one record, as markers are: all up to one that is damaged are decoded in a call."""
    plain = rows[(table.attributes[rows] & CODEC_MASK == 0) & (table.record_count[rows] == 1)]
    if not plain.size:
        return {}
    records = np.empty((decode.COLUMN_COUNT, plain.size), np.int64)
    state = np.zeros(decode.STATE_COUNT, np.int64)
    starts = table.position[plain]
    decode_batches(
        *(data, starts + HEADER_SIZE, starts + table.size[plain], decode.PLAIN),
        *(np.ascontiguousarray(table.matrix[:, plain]), plain.size, 0, plain.size),
        *(state, records, plain.size, np.empty(plain.size + 1, np.int64)),
    )
    count = int(state[decode.ROW_COUNT])
    places = zip(
        plain[:count].tolist(),
        records[decode.KEY_POSITION, :count].tolist(),
        records[decode.KEY_SIZE, :count].tolist(),
        strict=True,
    )
    view = data.data
    return {row: bytes(view[position : position + size]) for row, position, size in places if size >= 0}


def _read_type(data: ByteArray, table: BatchTable, row: int) -> ControlRecordType:
    chunk = _first_record(data, table, row)
    try:
        return control_record_type(chunk.key(0))
    except LogstoreError as error:
        _locate(error, table, row)
        raise


def _first_record(data: ByteArray, table: BatchTable, row: int) -> RecordTable:
    """A table that begins with the first record of a control batch, which has one."""
    try:
        # a chunk without records comes before the error of the first record
        return next(chunk for chunk in BatchRecords(data, table, row).chunks() if len(chunk))
    except LogstoreError as error:
        _locate(error, table, row)
        raise


def _locate(error: LogstoreError, table: BatchTable, row: int) -> None:
    error.position, error.offset = int(table.position[row]), int(table.base_offset[row])
