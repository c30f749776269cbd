"""Control batches: the types of their first records, and markers that the producer kernel leaves to Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ..columns.record_table import BatchRecords, RecordTable
from ..errors import InvalidRecordError, LogstoreError
from ..layout import marker
from ..layout.batch import CODEC_MASK
from ..model import ControlRecordType

NO_RECORD = -2  # type of a control batch that has lost its record
_NOT_READ = -3
_KNOWN_TYPES = frozenset(ControlRecordType)
_KEY_SIZE = 4
_VERSION_SIZE = 2
_VALUE_SIZE = 6
# the record of a marker: all but the type and the coordinator epoch is the same in each
_FORM = np.frombuffer(marker.marker_record(0, 0), np.uint8)
_TYPE_PLACE = slice(marker.CONTROL_TYPE - marker.RECORD_LENGTH, marker.VALUE_SIZE - marker.RECORD_LENGTH)
_EPOCH_PLACE = slice(marker.COORDINATOR_EPOCH - marker.RECORD_LENGTH, marker.HEADER_COUNT - marker.RECORD_LENGTH)
_IS_SAME = np.ones(_FORM.size, np.bool_)
_IS_SAME[_TYPE_PLACE] = _IS_SAME[_EPOCH_PLACE] = False


class TransactionMarker(NamedTuple):
    """Content of a transaction marker; timestamp in ms."""

    type: ControlRecordType
    coordinator_epoch: int
    timestamp: int


def read_marker(data: ByteArray, table: BatchTable, row: int) -> TransactionMarker:
    """Read the first record of a control batch, which must have one (`EndTransactionMarker.deserialize`).

    Raises:
        InvalidRecordError: the record does not parse or is no marker; `java_class` names Kafka's exception.
        DecompressionError, UnsupportedCompressionTypeError: the batch cannot be opened.
    """
    chunk = _first_record(data, table, row)
    try:
        marker_type = _marker_type(chunk.key(0))
        return TransactionMarker(marker_type, coordinator_epoch(chunk.value(0)), int(chunk.timestamp[0]))
    except LogstoreError as error:
        _locate(error, table, row)
        raise


def control_record_type(key: bytes | None) -> ControlRecordType:
    """Return the type in a control record's key (`ControlRecordType.parse`); raise InvalidRecordError without one."""
    if key is None:
        raise InvalidRecordError(None, java_class="java.lang.NullPointerException")
    type_id = control_record_type_id(key)
    return ControlRecordType(type_id) if type_id in _KNOWN_TYPES else ControlRecordType.UNKNOWN


def control_record_type_id(key: bytes) -> int:
    """Return the type id in a control record's key, perhaps unknown to Kafka; raise InvalidRecordError.

    >>> control_record_type_id(bytes.fromhex("0000 0001")), coordinator_epoch(bytes.fromhex("0000 00000007"))
    (1, 7)
    """
    if len(key) < _KEY_SIZE:
        raise InvalidRecordError(
            "Invalid value size found for control record key. "
            f"Must have at least {_KEY_SIZE} bytes, but found only {len(key)}"
        )
    _check_version(key, "control record")
    return int.from_bytes(key[_VERSION_SIZE:_KEY_SIZE], "big", signed=True)


def _marker_type(key: bytes | None) -> ControlRecordType:
    known = control_record_type(key)
    if known not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise InvalidRecordError(
            f"Invalid control record type for end transaction marker {known.name}",
            java_class="java.lang.IllegalArgumentException",
        )
    return known


def coordinator_epoch(value: bytes | None) -> int:
    """Return the coordinator epoch in the value of a marker; raise InvalidRecordError."""
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


def control_types(data: ByteArray, table: BatchTable, rows: Int64Array) -> Int64Array:
    """Return the types of control batches by their first records: int64, a `ControlRecordType` or NO_RECORD each.

    Args:
        data: uint8, what `table` was scanned from.
        rows: int64, of control batches.

    Raises:
        InvalidRecordError: the first row whose first record does not parse, or whose key has no type.
        DecompressionError, UnsupportedCompressionTypeError: the first row that cannot be decompressed.
    """
    is_usual, kinds, _ = usual_markers(data, table, rows)
    types = np.where(is_usual, kinds, np.where(table.record_count[rows] != 0, _NOT_READ, NO_RECORD))
    for number in np.flatnonzero(types == _NOT_READ).tolist():
        types[number] = _read_type(data, table, int(rows[number]))
    return types


def usual_markers(data: ByteArray, table: BatchTable, rows: Int64Array) -> tuple[BoolArray, Int64Array, Int64Array]:
    """Return which control batches are markers as Kafka writes them, bool, with their types and coordinator epochs.

    Any other form, of which both numbers mean nothing, is read like any batch.
    """
    is_usual: BoolArray = (table.attributes[rows] & CODEC_MASK == 0) & (table.record_count[rows] == 1)
    is_usual &= table.size[rows] == marker.MARKER_SIZE
    positions = np.where(is_usual, table.position[rows] + marker.RECORD_LENGTH, 0)
    records = data[positions[:, np.newaxis] + np.arange(_FORM.size)]
    kinds, epochs = records[:, _TYPE_PLACE].view(">u2").ravel(), records[:, _EPOCH_PLACE].view(">i4").ravel()
    is_usual &= (records == _FORM)[:, _IS_SAME].all(axis=1) & (kinds <= ControlRecordType.COMMIT)
    return is_usual, kinds.astype(np.int64), epochs.astype(np.int64)


def _read_type(data: ByteArray, table: BatchTable, row: int) -> ControlRecordType:
    chunk = _first_record(data, table, row)
    try:
        return control_record_type(chunk.key(0))
    except LogstoreError as error:
        _locate(error, table, row)
        raise


def _first_record(data: ByteArray, table: BatchTable, row: int) -> RecordTable:
    """Return a table that begins with the first record of a control batch."""
    try:
        # a chunk without records comes before the error of the first record
        return next(chunk for chunk in BatchRecords(data, table, row).chunks() if len(chunk))
    except LogstoreError as error:
        _locate(error, table, row)
        raise


def _locate(error: LogstoreError, table: BatchTable, row: int) -> None:
    error.position, error.offset = int(table.position[row]), int(table.base_offset[row])
