"""Records of an internal topic out of its segments, without a broker; what does not parse is told, and passed over."""

from __future__ import annotations

from collections.abc import Iterator

from ..disk.mapped import MappedFile
from ..errors import LogstoreError
from ..view.replay import ControlBatch, ReplayedRecord, replayed_rows
from ..view.walk import Run, walk
from . import rules
from .partition import Partition, Report, unless_gone


def topic_records(partition: Partition, report: Report) -> Iterator[ReplayedRecord | ControlBatch]:
    """Yield records and control batches by offset; batches that cannot be opened are findings in `report`."""
    for segment in partition.files.segments:
        yield from file_records(segment.log, segment.base_offset, report)


def file_records(path: str, base_offset: int, report: Report) -> Iterator[ReplayedRecord | ControlBatch]:
    """Yield those of one file of batches, a segment or a snapshot of KRaft's; nothing if it is gone."""
    log = unless_gone(MappedFile, path)
    if log is None:
        return
    with log:
        for piece in walk(log, base_offset):
            if isinstance(piece, Run):
                for item in replayed_rows(piece.data, piece.table, piece.first_row, piece.row_end):
                    if isinstance(item, LogstoreError):
                        report.add_error(rules.INTERNAL_RECORD, path, item, expected="records that can be read")
                    else:
                        yield item
