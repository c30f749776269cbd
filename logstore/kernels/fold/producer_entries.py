"""Producers as rows of a matrix, found by producer id through an open-addressing index (`ProducerStateEntry`).

Rows lie in the order in which producers came; the index holds row number + 1 and is never more than half full. Beside
what a producer's state is, the size of the table that a Java HashMap of them would have is kept: it decides the order
of a snapshot, and depends on the history of the map, not only on what is in it.
"""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ...jit.kernel import kernel
from ..primitives import MASK32
from ..rules import decrement_sequence

# Fields of an entry.
PRODUCER_ID = 0
PRODUCER_EPOCH = 1  # -1 unknown
COORDINATOR_EPOCH = 2  # of the last marker; -1 without
LAST_TIMESTAMP = 3  # of the last batch or marker; -1 without
TXN_FIRST_OFFSET = 4  # of the open transaction; NONE without
BATCH_COUNT = 5  # remembered batches, the oldest at BATCH_START, going around
BATCH_START = 6
INDEX_SLOT = 7  # where the index points here from
MAP_CAPACITY = 8  # of the Java map, once this entry was in it
BATCHES = 9  # BATCH_COUNT_MAX times the fields below
BATCH_COUNT_MAX = 5
LAST_SEQUENCE = 0
LAST_OFFSET = 1
OFFSET_DELTA = 2
TIMESTAMP = 3
BATCH_WIDTH = 4
ENTRY_WIDTH = BATCHES + BATCH_COUNT_MAX * BATCH_WIDTH

NONE = -(1 << 63)  # no open transaction: no offset of a batch whose last offset is not negative

MAP_CAPACITY_MIN = 16
MAP_TREE_CAPACITY_MIN = 64  # below, a crowded bucket makes the table grow
MAP_CROWDED_BY_PUT = 8  # entries in a bucket that make one more crowd it, by way of the method
MAP_CROWDED_BY_COMPUTE = 7

_MASK31 = (1 << 31) - 1


@device
def index_slot(producer_id: int, seed: int, bits: int) -> int:
    """Where the search for a producer begins in an index of 2^bits slots."""
    mixed = ((producer_id ^ seed) & _MASK31) * 1640531527 + ((producer_id >> 31) & MASK32) * 1013904223
    mixed = ((mixed ^ (mixed >> 29)) & _MASK31) * 1597334677
    return ((mixed ^ (mixed >> 17)) & _MASK31) >> (31 - bits)


@device
def find_entry(producer_id: int, entries: Any, index: Any, bits: int, seed: int) -> int:
    """The producer's row; if there is none, -1 minus the slot of the index that is free for it."""
    mask = (1 << bits) - 1
    slot = index_slot(producer_id, seed, bits)
    while index[slot] != 0:
        row = index[slot] - 1
        if entries[row * ENTRY_WIDTH + PRODUCER_ID] == producer_id:
            return row
        slot = (slot + 1) & mask
    return -1 - slot


@kernel("i64*, i64, i64*, i64, i64")
def index_entries(entries: Any, count: int, index: Any, bits: int, seed: int) -> int:
    """Point an index of 2^bits zeros at `count` entries of distinct producers; int64[count, ENTRY_WIDTH]."""
    for row in range(count):
        found = find_entry(entries[row * ENTRY_WIDTH + PRODUCER_ID], entries, index, bits, seed)
        if found < 0:
            index[-1 - found] = row + 1
            entries[row * ENTRY_WIDTH + INDEX_SLOT] = -1 - found
    return count


@device
def java_hash(producer_id: int) -> int:
    """Hash of a Java Long as HashMap spreads it, 32 bits unsigned."""
    low = (producer_id ^ (producer_id >> 32)) & MASK32
    return low ^ (low >> 16)


@device
def map_capacity_with(producer_id: int, entries: Any, count: int, map_capacity: int, crowded: int) -> int:
    """Table size of the Java map of `count` entries once this producer has its node, not counting it."""
    if map_capacity >= MAP_TREE_CAPACITY_MIN:
        return map_capacity
    bucket = java_hash(producer_id) & (map_capacity - 1)
    neighbour_count = 0
    for row in range(count):
        if java_hash(entries[row * ENTRY_WIDTH + PRODUCER_ID]) & (map_capacity - 1) == bucket:
            neighbour_count += 1
    return map_capacity * 2 if neighbour_count >= crowded else map_capacity


@device
def add_batch(
    entries: Any, row: int, epoch: int, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int
) -> int:
    """Remember a batch, dropping the oldest of five; those of another epoch go first."""
    entry = row * ENTRY_WIDTH
    if entries[entry + PRODUCER_EPOCH] != epoch:
        entries[entry + PRODUCER_EPOCH] = epoch
        entries[entry + BATCH_COUNT] = 0
    start = entries[entry + BATCH_START]
    count = entries[entry + BATCH_COUNT]
    batch = entry + BATCHES + (start + count) % BATCH_COUNT_MAX * BATCH_WIDTH
    if count == BATCH_COUNT_MAX:
        entries[entry + BATCH_START] = (start + 1) % BATCH_COUNT_MAX
    else:
        entries[entry + BATCH_COUNT] = count + 1
    entries[batch + LAST_SEQUENCE] = last_sequence
    entries[batch + LAST_OFFSET] = last_offset
    entries[batch + OFFSET_DELTA] = offset_delta
    entries[batch + TIMESTAMP] = timestamp
    return batch


@device
def newest_sequence(entries: Any, row: int) -> int:
    """Last sequence of the newest remembered batch; -1 without one."""
    entry = row * ENTRY_WIDTH
    count = entries[entry + BATCH_COUNT]
    if count == 0:
        return -1
    newest = (entries[entry + BATCH_START] + count - 1) % BATCH_COUNT_MAX
    return entries[entry + BATCHES + newest * BATCH_WIDTH + LAST_SEQUENCE]


@device
def find_batch(entries: Any, row: int, first_sequence: int, last_sequence: int) -> int:
    """Position in `entries` of the oldest remembered batch with these sequences; -1 without one."""
    entry = row * ENTRY_WIDTH
    for age in range(entries[entry + BATCH_COUNT]):
        number = (entries[entry + BATCH_START] + age) % BATCH_COUNT_MAX
        batch = entry + BATCHES + number * BATCH_WIDTH
        last = entries[batch + LAST_SEQUENCE]
        if last == last_sequence and decrement_sequence(last, entries[batch + OFFSET_DELTA]) == first_sequence:
            return batch
    return -1
