"""Checks of records in batches whose checksum is right: it may be that of content that no consumer can read.

Streams must decode to their end, records must be as long as they say, their offsets must ascend within the batch, and
the largest timestamp must be the `maxTimestamp` that retention and searches go by (`DefaultRecordBatch`,
`DefaultRecord`, `LogValidator`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ...columns.decoded_records import Records
from ...columns.record_windows import record_windows
from ...kernels.scan import batches as fields
from ...layout.batch import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE, LOG_APPEND_TIME_FLAG, MAGIC_V2
from ...layout.file_names import METADATA_TOPIC
from ...model import Codec
from ...topics import consumer_offsets, transaction_state
from ..evidence import AuditedBatches, Follower
from ..finding import Broken, Rule
from .batches import ERROR

log_records = Rule(
    "log-records",
    ERROR,
    "A batch with the right checksum has records that are not what they say.",
    "consumers stop at it: seek behind its last offset, and find out which producer wrote it",
)
_INTERNAL_TOPICS = (METADATA_TOPIC, consumer_offsets.TOPIC, transaction_state.TOPIC)  # of `internal-record`
_NULL = 1  # the byte of the varint -1


class DecodedRecords(Follower):
    """Decodes all batches whose headers are right, once, but for markers of transactions, which `log-marker` judges.

    What does not decode at all in an internal topic is told by `internal-record`, by the replay of its state.
    """

    def step(self, batches: AuditedBatches) -> Iterator[Broken]:
        run, topic = batches.run, batches.partition.files.topic
        is_readable = has_readable_header if topic == METADATA_TOPIC else has_data
        rows = np.flatnonzero(is_readable(batches.table)) + run.first_row
        for bad in bad_records(run.data, run.table, rows):
            if not (bad.is_unreadable and topic in _INTERNAL_TOPICS):
                yield log_records.at(batches.where(bad.row - run.first_row), bad.expected, bad.found)


class BadRecords(NamedTuple):
    """A batch whose records are not what they say, or (`is_unreadable`) do not decode at all.

    Its row, what was expected there, and what was found.
    """

    row: int
    expected: str
    found: str
    is_unreadable: bool = False


def has_readable_header(table: BatchTable) -> BoolArray:
    """Return which batches, bool[n], are of magic 2 with a count and a codec that records can be looked for by."""
    count, span = table.record_count, table.column(fields.LAST_OFFSET_DELTA) + 1
    is_right: BoolArray = (count >= 0) & (count <= span) & (table.attributes & CODEC_MASK <= max(Codec))
    is_right &= table.magic >= MAGIC_V2
    return is_right


def has_data(table: BatchTable) -> BoolArray:
    """Return which batches, bool[n], have a readable header and are no control batches."""
    is_data: BoolArray = has_readable_header(table) & (table.attributes & CONTROL_FLAG == 0)
    return is_data


def bad_records(data: ByteArray, table: BatchTable, rows: Int64Array) -> Iterator[BadRecords]:
    """Decode the batches of `rows` (int64, ascending, of `has_data`), and yield each that is bad once, in any order."""
    reported: set[int] = set()
    for bad in _Checker(table).check(data, rows):
        if bad.row not in reported:
            reported.add(bad.row)
            yield bad


class _Checker:
    """Carries the last batch of a window to the next one, where it may go on."""

    def __init__(self, table: BatchTable) -> None:
        self._table = table
        self._last = _Unfinished(-1)

    def check(self, data: ByteArray, rows: Int64Array) -> Iterator[BadRecords]:
        table = self._table
        for row in rows[(table.record_count[rows] == 0) & (table.size[rows] > HEADER_SIZE)].tolist():
            found = f"{table.size[row] - HEADER_SIZE} bytes"
            yield BadRecords(row, "nothing behind the header of a batch without records", found)
        for window in record_windows(data, table, rows):
            if (error := window.error) is not None:
                found = error.message or str(error.found or type(error).__name__)
                yield BadRecords(int(window.batch_rows[-1]), "records that can be read", found, is_unreadable=True)
            elif len(window):
                yield from self._bad_offsets(table, window)
                yield from _bad_timestamps(table, window)
                yield from _bad_nulls(window)
                yield from self._unreached_timestamps(table, window)

    def _bad_offsets(self, table: BatchTable, window: Records) -> Iterator[BadRecords]:
        rows, offsets = window.rows, window.offset
        before = np.concatenate([[-1], offsets[:-1]])
        is_first = np.concatenate([[True], rows[1:] != rows[:-1]])
        before[is_first] = table.base_offset[rows[is_first]] - 1
        if self._last.row == rows[0]:
            before[0] = self._last.offset
        is_wrong = (offsets <= before) | (offsets > table.last_offset[rows])
        for record in np.flatnonzero(is_wrong).tolist():
            expected = f"an offset from {int(before[record]) + 1} to {int(table.last_offset[rows[record]])}"
            yield BadRecords(int(rows[record]), expected, f"offset {int(offsets[record])} in a record")

    def _unreached_timestamps(self, table: BatchTable, window: Records) -> Iterator[BadRecords]:
        """Yield batches whose largest timestamp no record has, unless the broker set it; some end in a later window."""
        timestamps = window.timestamp
        counts = window.batch_counts
        rows, firsts = window.batch_rows[counts > 0], (window.batch_ends - counts)[counts > 0]
        largest, counts = np.maximum.reduceat(timestamps, firsts), counts[counts > 0]
        if self._last.row == rows[0]:
            largest[0], counts[0] = max(largest[0], self._last.largest), counts[0] + self._last.record_count
        self._last = _Unfinished(int(rows[-1]), int(window.offset[-1]), int(largest[-1]), int(counts[-1]))
        is_asked = (counts == table.record_count[rows]) & (table.attributes[rows] & LOG_APPEND_TIME_FLAG == 0)
        for index in np.flatnonzero(is_asked & (largest < table.max_timestamp[rows])).tolist():
            expected = f"a record with timestamp {int(table.max_timestamp[rows[index]])}, the batch's largest"
            yield BadRecords(int(rows[index]), expected, f"timestamps up to {int(largest[index])}")


class _Unfinished(NamedTuple):
    """The last batch of a window: its row, the offset of its last record, the largest timestamp and records so far."""

    row: int
    offset: int = -1
    largest: int = -1
    record_count: int = 0


def _bad_nulls(window: Records) -> Iterator[BadRecords]:
    """Yield nulls of another size than -1, whose byte is 1; Java reads any negative size as null (`DefaultRecord`)."""
    rows, data = window.rows, window.data
    for name, sizes, positions in (
        ("key", window.key_size, window.key_position),
        ("value", window.value_size, window.value_position),
    ):
        nulls = np.flatnonzero(sizes < 0)
        for record in nulls[data[positions[nulls] - 1] != _NULL].tolist():
            yield BadRecords(
                int(rows[record]), f"a {name} of -1 bytes or more", f"a smaller size, at a {name} that is null"
            )


def _bad_timestamps(table: BatchTable, window: Records) -> Iterator[BadRecords]:
    rows = window.rows
    timestamps, largest = window.timestamp, table.max_timestamp[rows]
    is_wrong = (timestamps > largest) & (table.attributes[rows] & LOG_APPEND_TIME_FLAG == 0)  # of the producer
    for record in np.flatnonzero(is_wrong).tolist():
        expected = f"timestamps up to {int(largest[record])}, the batch's largest"
        yield BadRecords(int(rows[record]), expected, f"timestamp {int(timestamps[record])} in a record")
