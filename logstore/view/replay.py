"""All of a coordinator's partition from the beginning, as it is replayed (`CoordinatorLoaderImpl`).

Records come with the producer of their batch, the markers of transactions between them, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray, Int64Array
from ..columns.record_windows import BadBatch, RecordWindow, record_windows
from ..columns.window_scan import scan_windows
from ..errors import LogstoreError, SchemaError
from ..folds.transaction_marker import read_marker
from ..model import ControlRecordType, FetchIsolation
from .batch_checks import bad_batch, first_bad_row, located
from .log_view import ReadableLog
from .read import INT_MAX, Fetched


class ReplayedRecord(NamedTuple):
    """A record; timestamp in ms, `producer_id` -1 unless its batch is of a producer."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer_id: int


class ReplayedMarker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    is_commit: bool


def replayed(log: ReadableLog, first_offset: int = 0) -> Iterator[ReplayedRecord | ReplayedMarker]:
    """Yield everything from `first_offset`, or the log's start if that is later, to the log's end as it is now.

    Raises:
        LogstoreError: a batch that cannot be read, with its path, position and offset.
    """
    view = log.view()
    position = max(first_offset, view.bounds.log_start_offset)
    while position < view.bounds.log_end_offset:
        fetched = view.read(position, INT_MAX, FetchIsolation.LOG_END)
        next_position = position
        with closing(scan_windows(fetched.data, 0, fetched.data.size)) as tables:
            for table in tables:
                bad_row = first_bad_row(fetched, table, position, check_crc=True)
                yield from _of_rows(fetched, table, bad_row, position)
                if bad_row:
                    next_position = int(table.last_offset[bad_row - 1]) + 1
                error = bad_batch(fetched, table, bad_row, next_position)
                if error is not None:
                    raise error
        if next_position <= position:
            return
        position = next_position


def replayed_records(
    data: ByteArray, table: BatchTable, rows: Int64Array, first_offset: int = 0
) -> Iterator[ReplayedRecord]:
    """Yield the records of batches from `first_offset` on.

    Raises:
        LogstoreError: of a batch that cannot be read, with its position and offset; the ones before it were given.
    """
    for window in record_windows(data, table, rows):
        if isinstance(window, BadBatch):
            window.error.position = int(table.position[window.row])
            window.error.offset = int(table.base_offset[window.row])
            raise window.error
        yield from _of_window(window, table.producer_id[window.rows].tolist(), first_offset)


@contextmanager
def errors_of(path: str, offset: int) -> Iterator[None]:
    """Let a SchemaError from the block say where the record is, and what can be done."""
    try:
        yield
    except SchemaError as error:
        error.path, error.offset = path, offset
        error.advice = "open the directory read_only; or put back the partition from a copy of the directory"
        raise


def _of_rows(
    fetched: Fetched, table: BatchTable, row_end: int, first_offset: int
) -> Iterator[ReplayedRecord | ReplayedMarker]:
    """What the rows up to `row_end` have from `first_offset` on."""
    is_control = table.is_control[:row_end]
    row = 0
    for control_row in [*np.flatnonzero(is_control).tolist(), row_end]:
        try:
            yield from replayed_records(fetched.data, table, np.arange(row, control_row), first_offset)
        except LogstoreError as error:
            raise located(error, fetched, error.position or 0, error.offset or 0) from error.__cause__
        if control_row < row_end and table.record_count[control_row] and table.base_offset[control_row] >= first_offset:
            marker = read_marker(fetched.data, table, control_row)
            yield ReplayedMarker(int(table.producer_id[control_row]), marker.type is ControlRecordType.COMMIT)
        row = control_row + 1


def _of_window(window: RecordWindow, producer_ids: list[int], first_offset: int) -> Iterator[ReplayedRecord]:
    records, data = window.records, window.records.data.data
    fields = (records.key_position, records.key_size, records.value_position, records.value_size)
    places = zip(*(field.tolist() for field in fields), strict=True)
    ids = zip(records.offset.tolist(), records.timestamp.tolist(), producer_ids, strict=True)
    for (offset, timestamp, producer_id), place in zip(ids, places, strict=True):
        if offset >= first_offset:
            key_position, key_size, value_position, value_size = place
            key = None if key_size < 0 else bytes(data[key_position : key_position + key_size])
            value = None if value_size < 0 else bytes(data[value_position : value_position + value_size])
            yield ReplayedRecord(offset, timestamp, key, value, producer_id)
