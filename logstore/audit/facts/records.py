"""Records of users, decoded: a batch may have the right checksum of content that no consumer can read.

Streams must decode to their end, records must be as long as they say, their offsets must ascend within the batch, and
no timestamp may be above the `maxTimestamp` that retention and searches go by (`DefaultRecordBatch`, `DefaultRecord`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray
from ...columns.record_windows import BadBatch, RecordWindow, record_windows
from ...layout.batch import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from ...layout.file_names import METADATA_TOPIC
from ...model import Codec
from ...topics import consumer_offsets, transaction_state
from .batches import Ask, AuditedBatches, Breach, Follower

_INTERNAL_TOPICS = (METADATA_TOPIC, consumer_offsets.TOPIC, transaction_state.TOPIC)  # `internal-record`


class DecodedRecords(Follower):
    """Decodes all batches whose headers are right, once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._last: tuple[int, int] | None = None  # row and offset of the last record, whose batch may go on

    def step(self, batches: AuditedBatches) -> None:
        rows = np.flatnonzero(_is_asked(batches)) + batches.run.first_row
        told: set[int] = set()
        self._last = None
        for window in record_windows(batches.run.data, batches.run.table, rows) if rows.size else ():
            for row, expected, found in self._bad(batches, window):
                if row not in told:
                    told.add(row)
                    where = batches.where(row - batches.run.first_row)
                    self._ask(Breach("log-records", (where, expected, found)))

    def _bad(self, batches: AuditedBatches, window: RecordWindow | BadBatch) -> Iterator[tuple[int, str, str]]:
        """Yield rows of the whole table, with what was expected and found."""
        if isinstance(window, BadBatch):
            error = window.error
            yield window.row, "records that can be read", error.message or str(error.found or type(error).__name__)
        elif len(window.records):
            yield from self._bad_offsets(batches, window)
            yield from _bad_timestamps(batches, window)

    def _bad_offsets(self, batches: AuditedBatches, window: RecordWindow) -> Iterator[tuple[int, str, str]]:
        table, rows, offsets = batches.run.table, window.rows, window.records.offset
        before = np.concatenate([[-1], offsets[:-1]])
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        before[is_first] = table.base_offset[rows[is_first]] - 1
        if self._last is not None and self._last[0] == rows[0]:
            before[0] = self._last[1]
        self._last = int(rows[-1]), int(offsets[-1])
        is_wrong = (offsets <= before) | (offsets > table.last_offset[rows])
        for record in np.flatnonzero(is_wrong).tolist():
            expected = f"an offset from {int(before[record]) + 1} to {int(table.last_offset[rows[record]])}"
            yield int(rows[record]), expected, f"offset {int(offsets[record])} in a record"


def _is_asked(batches: AuditedBatches) -> BoolArray:
    """Which batches no other rule is told of by their header; markers are judged by `log-marker`."""
    table, count = batches.table, batches.table.record_count
    is_right = batches.is_v2 & (count >= 0) & (count <= batches.span) & (table.attributes & CODEC_MASK <= max(Codec))
    is_asked: BoolArray = is_right & (table.attributes & CONTROL_FLAG == 0)
    return is_asked & (batches.partition.files.topic not in _INTERNAL_TOPICS)


def _bad_timestamps(batches: AuditedBatches, window: RecordWindow) -> Iterator[tuple[int, str, str]]:
    table, rows = batches.run.table, window.rows
    timestamps, largest = window.records.timestamp, table.max_timestamp[rows]
    is_wrong = (timestamps > largest) & (table.attributes[rows] & LOG_APPEND_TIME_FLAG == 0)  # of the producer
    for record in np.flatnonzero(is_wrong).tolist():
        expected = f"timestamps up to {int(largest[record])}, the batch's largest"
        yield int(rows[record]), expected, f"timestamp {int(timestamps[record])} in a record"
