"""Adds the entries of batches to a segment's offset index and time index (`LogSegment.append`, `.recover`)."""

from __future__ import annotations

from typing import Any

from ...layout.batch import NO_TIMESTAMP
from ...native.device import device
from ...native.kernel import kernel
from ...native.structs import Struct, Words, struct, words_at
from ..primitives import add64
from ..rules import RELATIVE_OFFSET_MAX
from ..scan.batches import BASE_OFFSET, LAST_OFFSET_DELTA, MAX_TIMESTAMP, POSITION


@struct
class IndexStruct(Struct):
    """Entries of both indexes of a segment, and what decides when the next one is due."""

    base_offset: int  # of the segment
    interval: int  # index.interval.bytes
    indexed_position: int  # position where the interval began: of the last entry's batch, or where writing began
    largest_timestamp: int  # of all batches so far
    largest_timestamp_offset: int  # last offset of the batch that has it
    offset_entry_count: int
    offset_entry_count_max: int
    time_entry_count: int
    time_entry_count_max: int
    stop_row: int  # the row of a status other than OK
    offset_entry_room: int  # length of the arrays
    time_entry_room: int
    offset_entries: Words  # int64[offset_entry_room, 2]: offset, position
    time_entries: Words  # int64[time_entry_room, 2]: timestamp, offset


OK = 0
OFFSET_OVERFLOW = 1  # a last offset outside of base offset … base offset + 2^31 - 1
OFFSET_INDEX_FULL = 2
OFFSET_NOT_LARGER = 3
TIME_INDEX_FULL = 4
TIME_OFFSET_SMALLER = 5
NO_ROOM = 6  # in the arrays: call again from `stop_row` on, with larger ones


@device
def last_entry_field(entries: Any, count: int, field: int, default: int) -> int:
    """Return a field, 0 or 1, of the last of `count` entries; `default` if there is none."""
    return entries[2 * count - 2 + field] if count > 0 else default


@device
def fold_index_rows(columns: Any, capacity: int, row: int, row_end: int, indexes: Any) -> int:
    """Advance the two indexes by rows of a batch table, see `fold_indexes`."""
    offset_entries, time_entries = words_at(indexes.offset_entries), words_at(indexes.time_entries)
    base_offset = indexes.base_offset
    interval = indexes.interval
    while row < row_end:
        indexes.stop_row = row
        position = columns[POSITION * capacity + row]
        last_offset = add64(columns[BASE_OFFSET * capacity + row], columns[LAST_OFFSET_DELTA * capacity + row])
        if last_offset < base_offset or last_offset - base_offset > RELATIVE_OFFSET_MAX:
            return OFFSET_OVERFLOW
        if columns[MAX_TIMESTAMP * capacity + row] > indexes.largest_timestamp:
            indexes.largest_timestamp = columns[MAX_TIMESTAMP * capacity + row]
            indexes.largest_timestamp_offset = last_offset
        if position - indexes.indexed_position > interval:
            count = indexes.offset_entry_count
            if count >= indexes.offset_entry_count_max:
                return OFFSET_INDEX_FULL
            if count >= indexes.offset_entry_room or indexes.time_entry_count >= indexes.time_entry_room:
                return NO_ROOM
            if last_offset <= last_entry_field(offset_entries, count, 0, last_offset - 1):
                return OFFSET_NOT_LARGER
            offset_entries[2 * count] = last_offset
            offset_entries[2 * count + 1] = position
            indexes.offset_entry_count = count + 1
            count = indexes.time_entry_count
            if count >= indexes.time_entry_count_max - 1:  # the last slot is for the entry when the segment rolls
                return TIME_INDEX_FULL
            timestamp, offset = indexes.largest_timestamp, indexes.largest_timestamp_offset
            if offset < last_entry_field(time_entries, count, 1, offset):
                return TIME_OFFSET_SMALLER
            if timestamp > last_entry_field(time_entries, count, 0, NO_TIMESTAMP):
                time_entries[2 * count] = timestamp
                time_entries[2 * count + 1] = offset
                indexes.time_entry_count = count + 1
            indexes.indexed_position = position
        row += 1
    return OK


@kernel("i64*, i64, i64, i64", IndexStruct)
def fold_indexes(columns: Any, capacity: int, row: int, row_end: int, indexes: Any) -> int:
    """Advance the two indexes by rows `row` … `row_end` - 1 of a batch table; returns the status.

    columns: int64[COLUMN_COUNT, capacity] of `scan.batches`.
    """
    return fold_index_rows(columns, capacity, row, row_end, indexes)
