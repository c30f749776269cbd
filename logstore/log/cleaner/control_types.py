"""The types of control batches: what their first record is (`ControlRecordType.parse`)."""

from __future__ import annotations

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray, Int64Array
from ...columns.record_table import BatchRecords
from ...errors import LogstoreError
from ...folds.transaction_marker import control_record_type
from ...kernels import decode
from ...kernels.decode_batches import decode_batches
from ...layout.batch import CODEC_MASK
from ...model import ControlRecordType

_KNOWN = {bytes((0, 0, 0, 0)): ControlRecordType.ABORT, bytes((0, 0, 0, 1)): ControlRecordType.COMMIT}


def control_types(data: ByteArray, table: BatchTable, rows: Int64Array) -> dict[int, ControlRecordType | None]:
    """The type of each row, None for a batch without records.

    Args:
        rows: int64, of control batches.

    Raises:
        InvalidRecordError: a first record that does not parse, or whose key is no type.
    """
    types: dict[int, ControlRecordType | None] = dict.fromkeys(rows.tolist())
    for row, key in _first_keys(data, table, rows[table.record_count[rows] != 0]).items():
        known = None if key is None else _KNOWN.get(key)
        types[row] = control_record_type(key) if known is None else known
    return types


def _first_keys(data: ByteArray, table: BatchTable, rows: Int64Array) -> dict[int, bytes | None]:
    """Markers are alike: all that are plain, and of one record, are decoded in a call."""
    keys: dict[int, bytes | None] = {}
    is_simple = (table.attributes[rows] & CODEC_MASK == 0) & (table.record_count[rows] == 1)
    simple = rows[is_simple]
    records = np.empty((decode.COLUMN_COUNT, max(simple.size, 1)), np.int64)
    record_rows = np.empty(simple.size + 1, np.int64)
    state = np.zeros(decode.STATE_COUNT, np.int64)
    matrix = np.ascontiguousarray(table.matrix[:, simple])
    if simple.size:
        decode_batches(data, matrix, simple.size, 0, simple.size, state, records, records.shape[1], record_rows)
    decoded_count = int(state[decode.ROW_COUNT])
    places = zip(
        simple[:decoded_count].tolist(),
        records[decode.KEY_POSITION, :decoded_count].tolist(),
        records[decode.KEY_SIZE, :decoded_count].tolist(),
        strict=True,
    )
    for row, position, size in places:
        keys[row] = data[position : position + size].tobytes() if size >= 0 else None
    for row in [*simple[decoded_count:].tolist(), *rows[~is_simple].tolist()]:
        keys[row] = _first_key(data, table, row)
    return keys


def _first_key(data: ByteArray, table: BatchTable, row: int) -> bytes | None:
    try:
        return next(chunk for chunk in BatchRecords(data, table, row).chunks() if len(chunk)).key(0)
    except LogstoreError as error:
        error.position, error.offset = int(table.position[row]), int(table.base_offset[row])
        raise
