"""Producers as rows of a matrix, with an open-addressing index by producer id (`ProducerStateEntry`).

Rows are in the order in which producers came. The index holds row number + 1 and is never more than half full.
"""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ...native.kernel import kernel
from ..primitives import MASK32
from ..rules import decrement_sequence

# Fields of an entry.
PRODUCER_ID = 0
PRODUCER_EPOCH = 1  # -1: unknown
COORDINATOR_EPOCH = 2  # of the last marker; -1: none
LAST_TIMESTAMP = 3  # of the last batch or marker; -1: none
TXN_FIRST_OFFSET = 4  # of the open transaction; NONE: none
BATCH_COUNT = 5  # batches in the ring buffer, the oldest at BATCH_START
BATCH_START = 6
INDEX_SLOT = 7  # slot of the index that points here
BATCHES = 8  # BATCH_COUNT_MAX times the fields below
BATCH_COUNT_MAX = 5
LAST_SEQUENCE = 0
LAST_OFFSET = 1
OFFSET_DELTA = 2
TIMESTAMP = 3
BATCH_WIDTH = 4
ENTRY_WIDTH = BATCHES + BATCH_COUNT_MAX * BATCH_WIDTH

NONE = -(1 << 63)  # no open transaction: cannot be the first offset of a batch whose last offset is not negative

_MASK31 = (1 << 31) - 1


@device
def index_slot(producer_id: int, seed: int, bits: int) -> int:
    """Return the slot where the search for a producer begins, in an index of 2^bits slots."""
    mixed = ((producer_id ^ seed) & _MASK31) * 1640531527 + ((producer_id >> 31) & MASK32) * 1013904223
    mixed = ((mixed ^ (mixed >> 29)) & _MASK31) * 1597334677
    return ((mixed ^ (mixed >> 17)) & _MASK31) >> (31 - bits)


@device
def find_entry(producer_id: int, entries: Any, index: Any, bits: int, seed: int) -> int:
    """Return the producer's row; if there is none, -1 minus the free slot of the index for it."""
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
    """Fill an index of 2^bits zeros for `count` entries of distinct producers; entries: int64[count, ENTRY_WIDTH]."""
    for row in range(count):
        found = find_entry(entries[row * ENTRY_WIDTH + PRODUCER_ID], entries, index, bits, seed)
        if found < 0:
            index[-1 - found] = row + 1
            entries[row * ENTRY_WIDTH + INDEX_SLOT] = -1 - found
    return count


@device
def add_batch(
    entries: Any, row: int, epoch: int, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int
) -> int:
    """Add a batch to the last five; first drops batches of another epoch (`ProducerStateEntry.addBatch`)."""
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
    """Return the last sequence of the newest batch; -1 if there is none."""
    entry = row * ENTRY_WIDTH
    count = entries[entry + BATCH_COUNT]
    if count == 0:
        return -1
    newest = (entries[entry + BATCH_START] + count - 1) % BATCH_COUNT_MAX
    return entries[entry + BATCHES + newest * BATCH_WIDTH + LAST_SEQUENCE]


@device
def find_batch(entries: Any, row: int, first_sequence: int, last_sequence: int) -> int:
    """Return the position in `entries` of the oldest batch with these sequences; -1 if there is none."""
    entry = row * ENTRY_WIDTH
    for age in range(entries[entry + BATCH_COUNT]):
        number = (entries[entry + BATCH_START] + age) % BATCH_COUNT_MAX
        batch = entry + BATCHES + number * BATCH_WIDTH
        last = entries[batch + LAST_SEQUENCE]
        if last == last_sequence and decrement_sequence(last, entries[batch + OFFSET_DELTA]) == first_sequence:
            return batch
    return -1
