"""Records of an internal topic out of its segments, without a broker; what does not parse is told, and passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..columns.record_table import BatchRecords
from ..disk.mapped import MappedFile
from ..errors import LogstoreError
from ..layout.batch import CONTROL_FLAG, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ..view.walk import MAGIC_V2, Run, walk
from . import rules
from .markers import Marker, marker_rows, read_markers
from .partition import Partition, Report, unless_gone


class TopicRecord(NamedTuple):
    """One record; `producer_id` is that of the transaction it belongs to, None outside of one. Timestamp in ms."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer_id: int | None


def topic_records(partition: Partition, report: Report) -> Iterator[TopicRecord | Marker]:
    """Records and transaction markers by offset; batches that cannot be opened are findings in `report`."""
    for segment in partition.files.segments:
        log = unless_gone(MappedFile, segment.log)
        if log is None:
            continue
        with log:
            for piece in walk(log, segment.base_offset):
                if isinstance(piece, Run):
                    yield from _run_records(piece, segment.log, report)


def _run_records(run: Run, path: str, report: Report) -> Iterator[TopicRecord | Marker]:
    markers = read_markers(run, marker_rows(run))
    rows = np.arange(run.first_row, run.row_end)
    is_data = (run.table.attributes[rows] & CONTROL_FLAG == 0) & (run.table.magic[rows] >= MAGIC_V2)
    for row in rows.tolist():
        if row in markers:
            yield markers[row]
        elif is_data[row - run.first_row]:
            try:
                yield from _batch_records(run, row)
            except LogstoreError as error:
                report.add_error(rules.INTERNAL_RECORD, path, error, expected="records that can be read")


def _batch_records(run: Run, row: int) -> Iterator[TopicRecord]:
    is_transactional = bool(run.table.attributes[row] & TRANSACTIONAL_FLAG)
    producer_id = int(run.table.producer_id[row])
    owner = producer_id if is_transactional and producer_id != NO_PRODUCER_ID else None
    try:
        for chunk in BatchRecords(run.data, run.table, row).chunks():
            offsets, timestamps = chunk.offset.tolist(), chunk.timestamp.tolist()
            for index in range(len(chunk)):
                yield TopicRecord(offsets[index], timestamps[index], chunk.key(index), chunk.value(index), owner)
    except LogstoreError as error:
        error.position, error.offset = int(run.table.position[row]), int(run.table.base_offset[row])
        raise
