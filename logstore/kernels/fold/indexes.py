"""The entries that a segment's batches add to its offset index and time index (`LogSegment.append`, `.recover`)."""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ...jit.kernel import kernel
from ..primitives import add64
from ..rules import RELATIVE_OFFSET_MAX
from ..scan.batches import BASE_OFFSET, LAST_OFFSET_DELTA, MAX_TIMESTAMP, POSITION

# Slots of the state.
SEGMENT_BASE_OFFSET = 0
INTERVAL = 1  # index.interval.bytes
INDEXED_POSITION = 2  # bytes; where the interval began: the batch of the last entry, or where writing began
LARGEST_TIMESTAMP = 3  # of all batches so far
LARGEST_TIMESTAMP_OFFSET = 4  # last offset of the batch that has it
OFFSET_ENTRY_COUNT = 5
OFFSET_ENTRY_COUNT_MAX = 6
LAST_ENTRY_OFFSET = 7  # of the offset index; the base offset without an entry
TIME_ENTRY_COUNT = 8
TIME_ENTRY_COUNT_MAX = 9
LAST_ENTRY_TIMESTAMP = 10  # of the time index; -1 without an entry
LAST_ENTRY_TIMESTAMP_OFFSET = 11  # the base offset without an entry
STOP_ROW = 12  # the row that a status other than OK is about
OFFSET_ENTRY_ROOM = 13  # entries that the arrays have room for, those that are there included
TIME_ENTRY_ROOM = 14
SLOT_COUNT = 15

OK = 0
OFFSET_OVERFLOW = 1  # a last offset that is not base offset … base offset + 2^31 - 1
OFFSET_INDEX_FULL = 2
OFFSET_NOT_LARGER = 3
TIME_INDEX_FULL = 4
TIME_OFFSET_SMALLER = 5
NO_ROOM = 6  # in the arrays: to be called again from the row on, with larger ones


@device
def fold_index_rows(
    columns: Any, capacity: int, row: int, row_end: int, slots: Any, offset_entries: Any, time_entries: Any
) -> int:
    """Step the two indexes by rows of a batch table, see `fold_indexes`."""
    base_offset = slots[SEGMENT_BASE_OFFSET]
    interval = slots[INTERVAL]
    while row < row_end:
        slots[STOP_ROW] = row
        position = columns[POSITION * capacity + row]
        last_offset = add64(columns[BASE_OFFSET * capacity + row], columns[LAST_OFFSET_DELTA * capacity + row])
        if last_offset < base_offset or last_offset - base_offset > RELATIVE_OFFSET_MAX:
            return OFFSET_OVERFLOW
        if columns[MAX_TIMESTAMP * capacity + row] > slots[LARGEST_TIMESTAMP]:
            slots[LARGEST_TIMESTAMP] = columns[MAX_TIMESTAMP * capacity + row]
            slots[LARGEST_TIMESTAMP_OFFSET] = last_offset
        if position - slots[INDEXED_POSITION] > interval:
            count = slots[OFFSET_ENTRY_COUNT]
            if count >= slots[OFFSET_ENTRY_COUNT_MAX]:
                return OFFSET_INDEX_FULL
            if count >= slots[OFFSET_ENTRY_ROOM] or slots[TIME_ENTRY_COUNT] >= slots[TIME_ENTRY_ROOM]:
                return NO_ROOM
            if count > 0 and last_offset <= slots[LAST_ENTRY_OFFSET]:
                return OFFSET_NOT_LARGER
            offset_entries[2 * count] = last_offset
            offset_entries[2 * count + 1] = position
            slots[OFFSET_ENTRY_COUNT] = count + 1
            slots[LAST_ENTRY_OFFSET] = last_offset
            count = slots[TIME_ENTRY_COUNT]
            if count >= slots[TIME_ENTRY_COUNT_MAX] - 1:
                return TIME_INDEX_FULL
            if count > 0 and slots[LARGEST_TIMESTAMP_OFFSET] < slots[LAST_ENTRY_TIMESTAMP_OFFSET]:
                return TIME_OFFSET_SMALLER
            if slots[LARGEST_TIMESTAMP] > slots[LAST_ENTRY_TIMESTAMP]:
                time_entries[2 * count] = slots[LARGEST_TIMESTAMP]
                time_entries[2 * count + 1] = slots[LARGEST_TIMESTAMP_OFFSET]
                slots[TIME_ENTRY_COUNT] = count + 1
                slots[LAST_ENTRY_TIMESTAMP] = slots[LARGEST_TIMESTAMP]
                slots[LAST_ENTRY_TIMESTAMP_OFFSET] = slots[LARGEST_TIMESTAMP_OFFSET]
            slots[INDEXED_POSITION] = position
        row += 1
    return OK


@kernel("i64*, i64, i64, i64, i64*, i64*, i64*")
def fold_indexes(
    columns: Any, capacity: int, row: int, row_end: int, slots: Any, offset_entries: Any, time_entries: Any
) -> int:
    """Step the two indexes by rows `row` … `row_end` - 1 of a batch table; returns the status.

    columns: int64[COLUMN_COUNT, capacity] of `scan`; offset_entries: int64[n, 2], (offset, position);
    time_entries: int64[n, 2], (timestamp, offset). How many entries each has room for is in the slots.
    """
    return fold_index_rows(columns, capacity, row, row_end, slots, offset_entries, time_entries)
