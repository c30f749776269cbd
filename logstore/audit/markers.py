"""Transaction markers of a run, many at once: nearly all have the one shape that brokers write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..columns.batch_table import Int64Array
from ..errors import LogstoreError
from ..folds.transaction_marker import read_marker
from ..layout.batch import CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID, RECORDS, TRANSACTIONAL_FLAG
from ..model import ControlRecordType
from ..view.walk import Run

_SIZE = 78  # bytes of a marker batch
_RECORD = bytes.fromhex("20 00 00 00 08 0000 0000 0c 0000 00000000 00")
_TYPE, _COORDINATOR_EPOCH = 7, 12  # positions in the record
_FIXED = [index for index in range(len(_RECORD)) if index not in (7, 8, 12, 13, 14, 15)]


class Marker(NamedTuple):
    """The end of a transaction in one partition; timestamp in ms."""

    offset: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    timestamp: int

    @property
    def outcome(self) -> str:
        """In words."""
        return "committed" if self.is_commit else "aborted"


def marker_rows(run: Run) -> Int64Array:
    """Numbers of the rows in the table that hold a control batch of a producer, int64."""
    rows = slice(run.first_row, run.row_end)
    table = run.table
    flags = table.attributes[rows] & (CONTROL_FLAG | TRANSACTIONAL_FLAG)
    is_marker = (flags == CONTROL_FLAG | TRANSACTIONAL_FLAG) & (table.producer_id[rows] != NO_PRODUCER_ID)
    is_marker &= (table.magic[rows] >= MAGIC_V2) & (table.record_count[rows] != 0)
    found: Int64Array = np.flatnonzero(is_marker) + run.first_row
    return found


def read_markers(run: Run, rows: Int64Array) -> dict[int, Marker]:
    """From row to the marker in it; one that does not parse is left out, and a finding of `verify`."""
    table = run.table
    found: dict[int, Marker] = {}
    usual = rows[(table.size[rows] == _SIZE)] if rows.size else rows
    records = run.data[(table.position[usual] + RECORDS)[:, None] + np.arange(len(_RECORD))]
    is_usual = (records[:, _FIXED] == np.frombuffer(_RECORD, np.uint8)[_FIXED]).all(axis=1)
    is_usual &= records[:, _TYPE] == 0
    is_usual &= records[:, _TYPE + 1] <= ControlRecordType.COMMIT
    epochs = np.ascontiguousarray(records[:, _COORDINATOR_EPOCH : _COORDINATOR_EPOCH + 4]).view(">i4")[:, 0]
    for index in np.flatnonzero(is_usual).tolist():
        row = int(usual[index])
        is_commit = int(records[index, _TYPE + 1]) == ControlRecordType.COMMIT
        found[row] = _marker(run, row, is_commit, int(epochs[index]), int(table.max_timestamp[row]))
    for row in rows.tolist():
        if row not in found:
            try:
                marker = read_marker(run.data, table, row)
            except LogstoreError:
                continue
            is_commit = marker.type is ControlRecordType.COMMIT
            found[row] = _marker(run, row, is_commit, marker.coordinator_epoch, marker.timestamp)
    return found


def _marker(run: Run, row: int, is_commit: bool, coordinator_epoch: int, timestamp: int) -> Marker:
    table = run.table
    return Marker(
        int(table.base_offset[row]),
        int(table.producer_id[row]),
        int(table.producer_epoch[row]),
        coordinator_epoch,
        is_commit,
        timestamp,
    )
