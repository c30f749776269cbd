"""Which control batches are ABORT markers, by their first record (`CompletedFetch.containsAbortMarker`).

Markers as Kafka writes them are all alike, and are told by their bytes, many at once:

    20        length 16
    00 00 00  attributes, timestamp delta, offset delta
    08        key of 4: int16 version 0, int16 type
    0c        value of 6: int16 version 0, int32 coordinator epoch
    00        no headers
"""

from __future__ import annotations

import numpy as np

from ..columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ..columns.record_table import BatchRecords
from ..errors import LogstoreError
from ..layout.batch import CODEC_MASK, HEADER_SIZE
from ..model import ControlRecordType
from .transaction_marker import control_record_type

_MARKER_SIZE = 17
_FIXED = np.frombuffer(bytes.fromhex("20 000000 08 0000"), np.uint8)
_TYPE = slice(7, 9)
_VALUE_SIZE = 9
_HEADER_COUNT = 16


def is_abort_marker(data: ByteArray, table: BatchTable, rows: Int64Array) -> BoolArray:
    """Which of some rows are: bool, one for each; a control batch without records is none.

    Args:
        data: uint8, what `table` was scanned from.
        rows: int64, of control batches.

    Raises:
        InvalidRecordError: a first record that does not parse, or whose key is no type.
        DecompressionError, UnsupportedCompressionTypeError: a batch that cannot be opened.
    """
    is_abort = np.zeros(rows.size, np.bool_)
    has_size = table.size[rows] == HEADER_SIZE + _MARKER_SIZE
    usual = np.flatnonzero(has_size & (table.record_count[rows] == 1) & (table.attributes[rows] & CODEC_MASK == 0))
    starts = table.position[rows[usual]] + HEADER_SIZE
    markers = data[starts[:, np.newaxis] + np.arange(_MARKER_SIZE)]
    is_known = (markers[:, : _FIXED.size] == _FIXED).all(axis=1)
    is_known &= (markers[:, _VALUE_SIZE] == 0x0C) & (markers[:, _HEADER_COUNT] == 0)
    is_abort[usual] = is_known & (markers[:, _TYPE] == 0).all(axis=1)
    is_odd = table.record_count[rows] != 0
    is_odd[usual[is_known]] = False
    for number in np.flatnonzero(is_odd).tolist():
        is_abort[number] = _first_type(data, table, int(rows[number])) is ControlRecordType.ABORT
    return is_abort


def _first_type(data: ByteArray, table: BatchTable, row: int) -> ControlRecordType:
    try:
        first = next(chunk for chunk in BatchRecords(data, table, row).chunks() if len(chunk))
        return control_record_type(first.key(0))
    except LogstoreError as error:
        error.position, error.offset = int(table.position[row]), int(table.base_offset[row])
        raise
