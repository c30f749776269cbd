"""Hash table from key to last offset, for the cleaner (`SkimpyOffsetMap`).

Open addressing with linear probing. A slot has three words: the two halves of the key's hash, and the offset. As in
Kafka a slot of zeros is free, and the number of entries is limited.
"""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ...native.kernel import kernel
from ..decode.records import KEY_SIZE, OFFSET
from ..primitives import MASK32, prefetch

SLOT_WIDTH = 3
ABSENT = -1  # offset of a key that is not in the table

# Slots of the state.
SLOT_COUNT = 0  # of the table, at most 2^31
ENTRY_COUNT = 1
ENTRY_COUNT_MAX = 2  # below SLOT_COUNT
OFFSET_MIN = 3  # records below it are not put
LAST_ROW = 4  # row of the record that was put last; -1: none in this call
LAST_OFFSET = 5  # its offset
MARK_COUNT = 6  # offsets from OFFSET_MIN on that have a mark; 0 once the marks are not reliable
STATE_COUNT = 7

# Marks of an offset.
NOT_PUT = 0
LATEST = 1  # the map has it
SUPERSEDED = 2  # the map has a later one of its key

AHEAD_COUNT = 12  # records to prefetch the slots of ahead


@device
def first_slot(low: int, slot_count: int) -> int:
    """Return the slot where the search for a hash begins."""
    return ((low >> 32) & MASK32) * slot_count >> 32


@device
def _is_free(table: Any, at: int) -> bool:
    return table[at] == 0 and table[at + 1] == 0 and table[at + 2] == 0


@device
def _place_of(table: Any, slot_count: int, low: int, high: int) -> int:
    """Find the slot of a hash, or the free one for it; returns the index of its first word."""
    slot = first_slot(low, slot_count)
    while not _is_free(table, slot * SLOT_WIDTH) and (
        table[slot * SLOT_WIDTH] != low or table[slot * SLOT_WIDTH + 1] != high
    ):
        slot = slot + 1 if slot + 1 < slot_count else 0
    return slot * SLOT_WIDTH


@device
def _mark(state: Any, marks: Any, offset: int, old_offset: int) -> int:
    """Mark the record that is put and the superseded one (ABSENT: none); drops all marks if offsets do not ascend."""
    first = state[OFFSET_MIN]
    if old_offset >= offset or offset >= first + state[MARK_COUNT] or marks[offset - first] != NOT_PUT:
        state[MARK_COUNT] = 0
        return 0
    if old_offset != ABSENT:
        marks[old_offset - first] = SUPERSEDED
    marks[offset - first] = LATEST
    return 1


@kernel("i64*, i64*, i64, i64, i64, i64*, i64*, u8*")
def put_offsets(
    records: Any, hashes: Any, capacity: int, row: int, row_end: int, state: Any, table: Any, marks: Any
) -> int:
    """Put the offsets of rows `row` … `row_end` - 1 that have a key.

    records: int64[decode.COLUMN_COUNT, capacity]; hashes: int64[2, capacity], of `hash_keys`; state:
    int64[STATE_COUNT]; table: int64[slot count, SLOT_WIDTH]; marks: uint8[state[MARK_COUNT]], NOT_PUT at first.
    Returns the row at which the table is full, else `row_end`.
    """
    slot_count = state[SLOT_COUNT]
    entry_count = state[ENTRY_COUNT]
    state[LAST_ROW] = -1
    for ahead in range(row, min(row + AHEAD_COUNT, row_end)):
        prefetch(table, first_slot(hashes[ahead], slot_count) * SLOT_WIDTH)
    while row < row_end:
        if row + AHEAD_COUNT < row_end:
            prefetch(table, first_slot(hashes[row + AHEAD_COUNT], slot_count) * SLOT_WIDTH)
        offset = records[OFFSET * capacity + row]
        if records[KEY_SIZE * capacity + row] >= 0 and offset >= state[OFFSET_MIN]:
            if entry_count >= state[ENTRY_COUNT_MAX]:
                break
            low = hashes[row]
            high = hashes[capacity + row]
            at = _place_of(table, slot_count, low, high)
            old_offset = table[at + 2]
            if _is_free(table, at):
                entry_count += 1
                old_offset = ABSENT
            if state[MARK_COUNT] > 0:
                _mark(state, marks, offset, old_offset)
            table[at] = low
            table[at + 1] = high
            table[at + 2] = offset
            state[LAST_ROW] = row
            state[LAST_OFFSET] = offset
        row += 1
    state[ENTRY_COUNT] = entry_count
    return row


@kernel("i64*, i64*, i64, i64, i64*, i64*, i64*")
def find_offsets(records: Any, hashes: Any, capacity: int, count: int, state: Any, table: Any, offsets: Any) -> int:
    """Look up the offset for the key of each of the first `count` records; ABSENT if there is none.

    Arguments as of `put_offsets`; offsets: int64[count], out. Returns how many were found.
    """
    slot_count = state[SLOT_COUNT]
    found_count = 0
    for ahead in range(min(AHEAD_COUNT, count)):
        prefetch(table, first_slot(hashes[ahead], slot_count) * SLOT_WIDTH)
    for row in range(count):
        if row + AHEAD_COUNT < count:
            prefetch(table, first_slot(hashes[row + AHEAD_COUNT], slot_count) * SLOT_WIDTH)
        offset = ABSENT
        if records[KEY_SIZE * capacity + row] >= 0:
            at = _place_of(table, slot_count, hashes[row], hashes[capacity + row])
            if not _is_free(table, at):
                offset = table[at + 2]
                found_count += 1
        offsets[row] = offset
    return found_count
