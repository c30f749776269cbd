"""Records of a coordinator's topic as the coordinator itself takes them on load: a transaction's when it is committed.

Unlike a read_committed consumer it does not wait for the transactions before (`CoordinatorLoaderImpl`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from logstore.columns.batch_table import BatchTable, ByteArray
from logstore.columns.record_windows import BadBatch, record_windows
from logstore.errors import LogstoreError
from logstore.folds.transaction_marker import read_marker
from logstore.layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from logstore.model import ControlRecordType

from .directories import Partition
from .options import READ_UNCOMMITTED
from .planning import plan_tasks
from .ranges import find_bounds
from .reading import batch_tables, checked


class CoordinatorRecord(NamedTuple):
    """One record.

    Attributes:
        is_pending: of a transaction that is not decided.
    """

    offset: int
    key: bytes
    value: bytes | None
    is_pending: bool


def coordinator_records(partition: Partition) -> Iterator[CoordinatorRecord]:
    """Those that count, in the order in which they came to count; then those that are pending.

    Raises:
        LogstoreError: the log is damaged.
    """
    pending: dict[int, list[CoordinatorRecord]] = {}
    for data, table in _tables(partition):
        for row in range(len(table)):
            producer_id, attributes = int(table.producer_id[row]), int(table.attributes[row])
            if attributes & CONTROL_FLAG:
                if attributes & TRANSACTIONAL_FLAG:
                    decided = pending.pop(producer_id, [])
                    if read_marker(data, table, row).type is ControlRecordType.COMMIT:
                        yield from decided
            elif attributes & TRANSACTIONAL_FLAG:
                pending.setdefault(producer_id, []).extend(_records(data, table, row))
            else:
                yield from _records(data, table, row)
    for records in pending.values():
        yield from (record._replace(is_pending=True) for record in records)


def _tables(partition: Partition) -> Iterator[tuple[ByteArray, BatchTable]]:
    bounds = find_bounds(partition, READ_UNCOMMITTED)
    for task in plan_tasks([bounds.range(bounds.start_offset, bounds.log_end_offset)], None):
        for one in task.slices:
            for data, found in batch_tables(one):
                if isinstance(found, LogstoreError):
                    raise found
                checked(one, found)
                yield data, found


def _records(data: ByteArray, table: BatchTable, row: int) -> Iterator[CoordinatorRecord]:
    for window in record_windows(data, table, np.array([row])):
        if isinstance(window, BadBatch):
            raise window.error
        for number in range(len(window.records)):
            key = window.records.key(number)
            if key is not None:
                yield CoordinatorRecord(
                    int(window.records.offset[number]), key, window.records.value(number), is_pending=False
                )
