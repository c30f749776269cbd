"""Transaction markers that the kernel leaves to Python: compressed or odd ones, and control records that are none."""

from __future__ import annotations

from typing import NamedTuple

from ..columns.batch_table import BatchTable, ByteArray
from ..columns.record_table import BatchRecords
from ..errors import InvalidRecordError, LogstoreError
from ..model import ControlRecordType

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
    try:
        # a chunk without records comes before the error of the first record
        chunk = next(chunk for chunk in BatchRecords(data, table, row).chunks() if len(chunk))
        marker_type = _marker_type(chunk.key(0))
        return TransactionMarker(marker_type, _coordinator_epoch(chunk.value(0)), int(chunk.timestamp[0]))
    except LogstoreError as error:
        error.position, error.offset = int(table.position[row]), int(table.base_offset[row])
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
