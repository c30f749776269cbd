"""Records of an internal topic out of its segments, without a broker; what does not parse is told, and passed over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..disk.mapped import MappedFile
from ..errors import LogstoreError
from ..view.replay import ReplayedRecord, replayed_records
from ..view.walk import Run, walk
from . import rules
from .markers import Marker, marker_rows, read_markers
from .partition import Partition, Report, unless_gone


def topic_records(partition: Partition, report: Report) -> Iterator[ReplayedRecord | Marker]:
    """Yield records and transaction markers by offset; batches that cannot be opened are findings in `report`."""
    for segment in partition.files.segments:
        yield from file_records(segment.log, segment.base_offset, report)


def file_records(path: str, base_offset: int, report: Report) -> Iterator[ReplayedRecord | Marker]:
    """Yield those of one file of batches, a segment or a snapshot of KRaft's; nothing if it is gone."""
    log = unless_gone(MappedFile, path)
    if log is None:
        return
    with log:
        for piece in walk(log, base_offset):
            if isinstance(piece, Run):
                yield from _run_records(piece, path, report)


def _run_records(run: Run, path: str, report: Report) -> Iterator[ReplayedRecord | Marker]:
    markers = read_markers(run, marker_rows(run))
    is_control = run.table.is_control
    for row in range(run.first_row, run.row_end):
        if row in markers:
            yield markers[row]
        elif not is_control[row]:
            try:
                yield from replayed_records(run.data, run.table, np.array([row]))
            except LogstoreError as error:
                report.add_error(rules.INTERNAL_RECORD, path, error, expected="records that can be read")
