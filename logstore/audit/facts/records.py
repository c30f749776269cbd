"""Records of users, decoded: a batch may have the right checksum of content that no consumer can read.

Streams must decode to their end, records must be as long as they say, their offsets must ascend within the batch, and
the largest timestamp must be the `maxTimestamp` that retention and searches go by (`DefaultRecordBatch`,
`DefaultRecord`, `LogValidator`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...columns.batch_table import BatchTable, BoolArray, Int64Array
from ...columns.record_windows import BadBatch, RecordWindow, record_windows
from ...layout.batch import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE, LOG_APPEND_TIME_FLAG
from ...layout.file_names import METADATA_TOPIC
from ...model import Codec
from ...topics import consumer_offsets, transaction_state
from .batches import Ask, AuditedBatches, Breach, Follower

Bad = tuple[int, str, str]  # the row of the table of the whole file, what was expected there, and what was found
_NULL = 1  # the byte of the varint -1
_INTERNAL_TOPICS = (METADATA_TOPIC, consumer_offsets.TOPIC, transaction_state.TOPIC)  # of `internal-record`


class DecodedRecords(Follower):
    """Decodes all batches whose headers are right, once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._last = _Unfinished(-1)

    def step(self, batches: AuditedBatches) -> None:
        rows = np.flatnonzero(_is_asked(batches)) + batches.run.first_row
        told: set[int] = set()
        self._last = _Unfinished(-1)
        for row, expected, found in self._bad(batches, rows):
            if row not in told:
                told.add(row)
                where = batches.where(row - batches.run.first_row)
                self._ask(Breach("log-records", (where, expected, found)))

    def _bad(self, batches: AuditedBatches, rows: Int64Array) -> Iterator[Bad]:
        table = batches.run.table
        for row in rows[(table.record_count[rows] == 0) & (table.size[rows] > HEADER_SIZE)].tolist():
            yield row, "nothing behind the header of a batch without records", f"{table.size[row] - HEADER_SIZE} bytes"
        for window in record_windows(batches.run.data, table, rows) if rows.size else ():
            if isinstance(window, BadBatch):
                error = window.error
                yield window.row, "records that can be read", error.message or str(error.found or type(error).__name__)
            elif len(window.records):
                yield from self._bad_offsets(table, window)
                yield from _bad_timestamps(table, window)
                yield from _bad_nulls(window)
                yield from self._unreached_timestamps(table, window)

    def _bad_offsets(self, table: BatchTable, window: RecordWindow) -> Iterator[Bad]:
        rows, offsets = window.rows, window.records.offset
        before = np.concatenate([[-1], offsets[:-1]])
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        before[is_first] = table.base_offset[rows[is_first]] - 1
        if self._last.row == rows[0]:
            before[0] = self._last.offset
        is_wrong = (offsets <= before) | (offsets > table.last_offset[rows])
        for record in np.flatnonzero(is_wrong).tolist():
            expected = f"an offset from {int(before[record]) + 1} to {int(table.last_offset[rows[record]])}"
            yield int(rows[record]), expected, f"offset {int(offsets[record])} in a record"

    def _unreached_timestamps(self, table: BatchTable, window: RecordWindow) -> Iterator[Bad]:
        """One record has the largest timestamp, unless the broker set it; a batch may go on in the next window."""
        timestamps = window.records.timestamp
        counts = np.diff(window.batch_ends, prepend=0)
        rows, firsts = window.batch_rows[counts > 0], (window.batch_ends - counts)[counts > 0]
        largest, counts = np.maximum.reduceat(timestamps, firsts), counts[counts > 0]
        if self._last.row == rows[0]:
            largest[0], counts[0] = max(largest[0], self._last.largest), counts[0] + self._last.record_count
        self._last = _Unfinished(int(rows[-1]), int(window.records.offset[-1]), int(largest[-1]), int(counts[-1]))
        is_asked = (counts == table.record_count[rows]) & (table.attributes[rows] & LOG_APPEND_TIME_FLAG == 0)
        for index in np.flatnonzero(is_asked & (largest < table.max_timestamp[rows])).tolist():
            expected = f"a record with timestamp {int(table.max_timestamp[rows[index]])}, the batch's largest"
            yield int(rows[index]), expected, f"timestamps up to {int(largest[index])}"


class _Unfinished(NamedTuple):
    """The last batch of a window: its row, the offset of its last record, the largest timestamp and records so far."""

    row: int
    offset: int = -1
    largest: int = -1
    record_count: int = 0


def _is_asked(batches: AuditedBatches) -> BoolArray:
    """Which batches no other rule is told of by their header; markers are judged by `log-marker`."""
    table, count = batches.table, batches.table.record_count
    is_right = batches.is_v2 & (count >= 0) & (count <= batches.span) & (table.attributes & CODEC_MASK <= max(Codec))
    is_asked: BoolArray = is_right & (table.attributes & CONTROL_FLAG == 0)
    return is_asked & (batches.partition.files.topic not in _INTERNAL_TOPICS)


def _bad_nulls(window: RecordWindow) -> Iterator[Bad]:
    """Java takes any size below 0 for null, and writes -1, whose byte is 1 (`DefaultRecord.readFrom`)."""
    records = window.records
    for name, sizes, positions in (
        ("key", records.key_size, records.key_position),
        ("value", records.value_size, records.value_position),
    ):
        nulls = np.flatnonzero(sizes < 0)
        for record in nulls[records.data[positions[nulls] - 1] != _NULL].tolist():
            yield int(window.rows[record]), f"a {name} of -1 bytes or more", f"a smaller size, at a {name} that is null"


def _bad_timestamps(table: BatchTable, window: RecordWindow) -> Iterator[Bad]:
    rows = window.rows
    timestamps, largest = window.records.timestamp, table.max_timestamp[rows]
    is_wrong = (timestamps > largest) & (table.attributes[rows] & LOG_APPEND_TIME_FLAG == 0)  # of the producer
    for record in np.flatnonzero(is_wrong).tolist():
        expected = f"timestamps up to {int(largest[record])}, the batch's largest"
        yield int(rows[record]), expected, f"timestamp {int(timestamps[record])} in a record"
