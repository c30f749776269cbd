"""Replay of an internal topic's partition from the beginning (`CoordinatorLoaderImpl`).

Records come with the producer id of their batch, control batches between them, in log order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray, Int64Array, scan
from ..columns.decoded_records import Records
from ..columns.record_windows import record_windows
from ..errors import LogstoreError, SchemaError
from ..folds.transaction_marker import read_marker
from ..model import ControlRecordType, FetchIsolation
from ..view.batch_checks import bad_batch, first_bad_row, located
from ..view.log_view import ReadableLog
from ..view.parallel_scan import scan_windows
from ..view.read import INT_MAX


class ReplayedRecord(NamedTuple):
    """A record; timestamp in ms, `producer_id` -1 without a producer."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer_id: int


class ControlBatch(NamedTuple):
    """Batch of control records, row `row` of a table of `data`: a transaction marker, or records of KRaft."""

    data: ByteArray
    table: BatchTable
    row: int

    @property
    def producer_id(self) -> int:
        """The producer whose transaction a marker ends."""
        return int(self.table.producer_id[self.row])

    def is_commit(self) -> bool:
        """Return whether the marker commits; raises LogstoreError if it does not parse."""
        return read_marker(self.data, self.table, self.row).type is ControlRecordType.COMMIT

    def records(self) -> Iterator[ReplayedRecord]:
        """Yield the control records; raises LogstoreError."""
        for item in _records(self.data, self.table, np.array([self.row])):
            if isinstance(item, LogstoreError):
                raise item
            yield item


def replayed(log: ReadableLog, first_offset: int = 0) -> Iterator[ReplayedRecord | ControlBatch]:
    """Yield everything from `first_offset`, or the log start if that is higher, to the log's present end.

    Raises LogstoreError at a batch that cannot be read, with its path, position and offset.
    """
    view = log.view()
    position = max(first_offset, view.bounds.log_start_offset)
    while position < view.bounds.log_end_offset:
        fetched = view.read(position, INT_MAX, FetchIsolation.LOG_END)
        next_position = position
        with closing(scan_windows(fetched.data, 0, fetched.data.size)) as tables:
            for table in tables:
                bad_row = first_bad_row(fetched, table, position, check_crc=True)
                for item in replayed_rows(fetched.data, table, 0, bad_row, position):
                    if isinstance(item, LogstoreError):
                        raise located(item, fetched, item.position or 0, item.offset or 0)
                    yield item
                if bad_row:
                    next_position = int(table.last_offset[bad_row - 1]) + 1
                error = bad_batch(fetched, table, bad_row, next_position)
                if error is not None:
                    raise error
        if next_position <= position:
            return
        position = next_position


def replayed_rows(
    data: ByteArray, table: BatchTable, first_row: int, row_end: int, first_offset: int = 0
) -> Iterator[ReplayedRecord | ControlBatch | LogstoreError]:
    """Yield what some rows have from `first_offset` on, and an error in place of what cannot be read.

    An error has the position and offset of its batch.
    """
    row = first_row
    for control_row in [*(np.flatnonzero(table.is_control[first_row:row_end]) + first_row).tolist(), row_end]:
        yield from _records(data, table, np.arange(row, control_row), first_offset)
        if control_row < row_end and table.record_count[control_row] and table.base_offset[control_row] >= first_offset:
            yield ControlBatch(data, table, control_row)
        row = control_row + 1


def replayed_file(data: ByteArray, path: str) -> Iterator[ReplayedRecord | ControlBatch]:
    """Yield the content of a whole file of batches, up to a batch that is cut off; raises as `replayed`."""
    table = scan(data)
    for item in replayed_rows(data, table, 0, len(table)):
        if isinstance(item, LogstoreError):
            item.path = path
            raise item
        yield item


@contextmanager
def errors_of(path: str, offset: int) -> Iterator[None]:
    """Add path, offset and advice to a SchemaError from the block."""
    try:
        yield
    except SchemaError as error:
        error.path, error.offset = path, offset
        error.advice = "open the directory read_only; or put back the partition from a copy of the directory"
        raise


def _records(
    data: ByteArray, table: BatchTable, rows: Int64Array, first_offset: int = 0
) -> Iterator[ReplayedRecord | LogstoreError]:
    for window in record_windows(data, table, rows):
        if (error := window.error) is not None:
            row = window.batch_rows[-1]
            error.position, error.offset = int(table.position[row]), int(table.base_offset[row])
            yield error
        else:
            yield from _of_window(window, table.producer_id[window.rows].tolist(), first_offset)


def _of_window(records: Records, producer_ids: list[int], first_offset: int) -> Iterator[ReplayedRecord]:
    data = records.data.data
    fields = (records.key_position, records.key_size, records.value_position, records.value_size)
    places = zip(*(field.tolist() for field in fields), strict=True)
    ids = zip(records.offset.tolist(), records.timestamp.tolist(), producer_ids, strict=True)
    for (offset, timestamp, producer_id), place in zip(ids, places, strict=True):
        if offset >= first_offset:
            key_position, key_size, value_position, value_size = place
            key = None if key_size < 0 else bytes(data[key_position : key_position + key_size])
            value = None if value_size < 0 else bytes(data[value_position : value_position + value_size])
            yield ReplayedRecord(offset, timestamp, key, value, producer_id)
