"""All of a coordinator's partition from the beginning, as it is replayed (`CoordinatorLoaderImpl`).

Records come with the producer of their batch, the markers of transactions between them, in the order of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import BatchTable
from ..columns.record_windows import BadBatch, RecordWindow, record_windows
from ..columns.window_scan import scan_windows
from ..errors import SchemaError
from ..folds.transaction_marker import read_marker
from ..layout.batch import CONTROL_FLAG
from ..log.partition_log import PartitionLog
from ..model import ControlRecordType, FetchIsolation
from ..view.batch_checks import bad_batch, first_bad_row, located
from ..view.read import INT_MAX, Fetched


class ReplayedRecord(NamedTuple):
    """A record; `producer_id` is -1 unless its batch is of a producer."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int


class ReplayedMarker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    is_commit: bool


def replayed(log: PartitionLog, first_offset: int = 0) -> Iterator[ReplayedRecord | ReplayedMarker]:
    """Everything from `first_offset`, or the log's start if that is later, to the log's end.

    Raises:
        LogstoreError: a batch that cannot be read, with its path, position and offset.
    """
    position = max(first_offset, log.log_start_offset)
    while position < log.log_end_offset:
        fetched = log.read(position, INT_MAX, FetchIsolation.LOG_END)
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


@contextmanager
def errors_of(log: PartitionLog, offset: int) -> Iterator[None]:
    """Let a SchemaError from the block say where the record is, and what can be done."""
    try:
        yield
    except SchemaError as error:
        error.path, error.offset = log.directory.path, offset
        error.advice = "open the directory read_only; or put back the partition from a copy of the directory"
        raise


def _of_rows(
    fetched: Fetched, table: BatchTable, row_end: int, first_offset: int
) -> Iterator[ReplayedRecord | ReplayedMarker]:
    """What the rows up to `row_end` have from `first_offset` on."""
    is_control = table.attributes[:row_end] & CONTROL_FLAG != 0
    row = 0
    for control_row in [*np.flatnonzero(is_control).tolist(), row_end]:
        yield from _records(fetched, table, np.arange(row, control_row), first_offset)
        if control_row < row_end and table.record_count[control_row] and table.base_offset[control_row] >= first_offset:
            marker = read_marker(fetched.data, table, control_row)
            yield ReplayedMarker(int(table.producer_id[control_row]), marker.type is ControlRecordType.COMMIT)
        row = control_row + 1


def _records(
    fetched: Fetched, table: BatchTable, rows: npt.NDArray[np.int64], first_offset: int
) -> Iterator[ReplayedRecord]:
    for window in record_windows(fetched.data, table, rows):
        if isinstance(window, BadBatch):
            position = int(table.position[window.row])
            raise located(window.error, fetched, position, int(table.base_offset[window.row]))
        yield from _of_window(window, table.producer_id[window.rows].tolist(), first_offset)


def _of_window(window: RecordWindow, producer_ids: list[int], first_offset: int) -> Iterator[ReplayedRecord]:
    records, data = window.records, window.records.data.data
    fields = (records.key_position, records.key_size, records.value_position, records.value_size)
    places = zip(*(field.tolist() for field in fields), strict=True)
    for offset, producer_id, place in zip(records.offset.tolist(), producer_ids, places, strict=True):
        if offset >= first_offset:
            key_position, key_size, value_position, value_size = place
            key = None if key_size < 0 else bytes(data[key_position : key_position + key_size])
            value = None if value_size < 0 else bytes(data[value_position : value_position + value_size])
            yield ReplayedRecord(offset, key, value, producer_id)
