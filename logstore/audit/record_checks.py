"""Records of users, decoded: a batch may have the right checksum of content that no consumer can read.

Streams must decode to their end, records must be as long as they say, their offsets must ascend within the batch, and
no timestamp may be above the `maxTimestamp` that retention and searches go by (`DefaultRecordBatch`, `DefaultRecord`).
"""

from __future__ import annotations

import numpy as np

from ..columns.batch_table import Int64Array
from ..columns.record_windows import BadBatch, RecordWindow, record_windows
from ..disk.directory import SegmentFiles
from ..kernels.scan import batches as fields
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, MAGIC_V2
from ..layout.file_names import METADATA_TOPIC
from ..model import Codec
from ..topics import consumer_offsets, transaction_state
from ..view.walk import Damage, Run, Tail
from . import rules
from .evidence import Evidence
from .log_pass import SegmentEnd
from .partition import Report

_INTERNAL_TOPICS = (METADATA_TOPIC, consumer_offsets.TOPIC, transaction_state.TOPIC)  # `internal-record`


class RecordChecks:
    """Decodes all batches whose headers are right, once; each bad one is told once, by its first bad record."""

    def __init__(self, evidence: Evidence, report: Report) -> None:
        self._report = report
        self._is_asked = evidence.partition.files.topic not in _INTERNAL_TOPICS
        self._path: str | None = None
        self._last: tuple[int, int] | None = None  # row and offset of the last record, whose batch may go on

    def begin(self, segment: SegmentFiles) -> None:
        self._path = segment.log

    def step(self, run: Run) -> None:
        rows = self._rows(run)
        told: set[int] = set()
        self._last = None
        for window in record_windows(run.data, run.table, rows) if rows.size else ():
            if isinstance(window, BadBatch):
                error = window.error
                found = error.message or str(error.found or type(error).__name__)
                self._tell(run, window.row, told, "records that can be read", found)
            elif len(window.records):
                self._check(run, window, told)

    def skip(self, piece: Damage | Tail) -> None:
        """There is nothing to decode."""

    def end(self, end: SegmentEnd) -> None:
        """Batches do not go on in the next segment."""

    def finish(self) -> None:
        """Nothing is left to say."""

    def _rows(self, run: Run) -> Int64Array:
        """Batches that no other rule is told of by their header; markers are judged by `log-marker`."""
        if not self._is_asked:
            return np.empty(0, np.int64)
        table, rows = run.table, np.arange(run.first_row, run.row_end)
        count, delta = table.record_count[rows], table.column(fields.LAST_OFFSET_DELTA)[rows]
        is_new = table.magic[rows] == MAGIC_V2
        is_right = (count >= 0) & (count <= delta + 1) & (table.attributes[rows] & CODEC_MASK <= max(Codec))
        is_right &= table.attributes[rows] & CONTROL_FLAG == 0
        found: Int64Array = rows[is_right & is_new]
        return found

    def _check(self, run: Run, window: RecordWindow, told: set[int]) -> None:
        """Check offsets and timestamps against the batches that the records are of."""
        table, rows, offsets = run.table, window.rows, window.records.offset
        before = np.concatenate([[-1], offsets[:-1]])
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        before[is_first] = table.base_offset[rows[is_first]] - 1
        if self._last is not None and self._last[0] == rows[0]:
            before[0] = self._last[1]
        self._last = int(rows[-1]), int(offsets[-1])
        is_wrong = (offsets <= before) | (offsets > table.last_offset[rows])
        for record in np.flatnonzero(is_wrong).tolist():
            expected = f"an offset from {int(before[record]) + 1} to {int(table.last_offset[rows[record]])}"
            self._tell(run, int(rows[record]), told, expected, f"offset {int(offsets[record])} in a record")
        timestamps, largest = window.records.timestamp, table.max_timestamp[rows]
        is_wrong = (timestamps > largest) & (table.attributes[rows] & LOG_APPEND_TIME_FLAG == 0)  # of the producer
        for record in np.flatnonzero(is_wrong).tolist():
            expected = f"timestamps up to {int(largest[record])}, the batch's largest"
            self._tell(run, int(rows[record]), told, expected, f"timestamp {int(timestamps[record])} in a record")

    def _tell(self, run: Run, row: int, told: set[int], expected: str, found: str) -> None:
        if row in told:
            return
        told.add(row)
        self._report.add(
            rules.LOG_RECORDS,
            self._path,
            expected=expected,
            found=found,
            position=int(run.table.position[row]),
            offset=int(run.table.base_offset[row]),
        )
