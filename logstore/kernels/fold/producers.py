"""Advances the producer state by batches (`ProducerAppendInfo`, `ProducerStateManager`, `UnifiedLog`).

As in Kafka the batches of a group first go into *updates*, one per producer, which are applied together, so that a
refused batch leaves the state unchanged. A group is one batch in the recovery of a segment, the batches of one append,
or a segment's batches while the state is rebuilt.
"""

from __future__ import annotations

from typing import Any

from ...layout.batch import CONTROL_FLAG, NO_PRODUCER_ID
from ...native.device import device
from ...native.kernel import kernel
from ...native.structs import words_at
from ..primitives import add64
from ..scan import batches as scan
from . import producer_entries as fields
from . import producer_struct as fold
from .producer_batches import check_before, read_marker, update_of, work_data, work_marker
from .producer_entries import ENTRY_WIDTH, add_batch, find_entry
from .producer_struct import NO_ROOM, NOT_STARTED, OK, ProducerStruct
from .transactions import put_ongoing, remove_ongoing, stable_offset


@device
def apply_update(update: int, producers: Any) -> int:
    """Merge a producer's update into its entry, which is added if there is none (`ProducerStateManager.update`)."""
    entries, updates, index = words_at(producers.entries), words_at(producers.updates), words_at(producers.index)
    source = update * ENTRY_WIDTH
    producer_id = updates[source + fields.PRODUCER_ID]
    found = find_entry(producer_id, entries, index, producers.index_bits, producers.index_seed)
    count = producers.entry_count
    entry = count if found < 0 else found
    at = entry * ENTRY_WIDTH
    if found < 0:
        producers.entry_count = count + 1
        index[-1 - found] = count + 1
        entries[at + fields.PRODUCER_ID] = producer_id
        entries[at + fields.INDEX_SLOT] = -1 - found
        entries[at + fields.BATCH_COUNT] = 0
        entries[at + fields.BATCH_START] = 0
        entries[at + fields.PRODUCER_EPOCH] = updates[source + fields.PRODUCER_EPOCH]
    epoch = updates[source + fields.PRODUCER_EPOCH]
    if entries[at + fields.PRODUCER_EPOCH] != epoch:
        entries[at + fields.PRODUCER_EPOCH] = epoch
        entries[at + fields.BATCH_COUNT] = 0
    for age in range(updates[source + fields.BATCH_COUNT]):
        number = (updates[source + fields.BATCH_START] + age) % fields.BATCH_COUNT_MAX
        batch = source + fields.BATCHES + number * fields.BATCH_WIDTH
        add_batch(
            entries,
            entry,
            epoch,
            updates[batch + fields.LAST_SEQUENCE],
            updates[batch + fields.LAST_OFFSET],
            updates[batch + fields.OFFSET_DELTA],
            updates[batch + fields.TIMESTAMP],
        )
    for field in range(fields.COORDINATOR_EPOCH, fields.BATCH_COUNT):
        entries[at + field] = updates[source + field]
    return entry


@device
def apply_transactions(producers: Any) -> int:
    """Add the transactions that the group started, then remove those that it completed (`completeTxn`)."""
    started, completed = words_at(producers.started), words_at(producers.completed)
    for number in range(producers.started_count):
        put_ongoing(producers, started[2 * number], started[2 * number + 1])
    producers.started_count = 0
    status = OK
    while producers.applied_count < producers.completed_count and status == OK:
        transaction = producers.applied_count * fold.COMPLETED_WIDTH
        first_offset = completed[transaction + fold.COMPLETED_FIRST_OFFSET]
        last_offset = completed[transaction + fold.COMPLETED_LAST_OFFSET]
        completed[transaction + fold.COMPLETED_LAST_STABLE_OFFSET] = stable_offset(
            producers, completed[transaction + fold.COMPLETED_PRODUCER_ID], last_offset
        )
        if remove_ongoing(producers, first_offset) == 0:
            producers.detail = producers.applied_count
            status = NOT_STARTED
        else:
            producers.applied_count += 1
    return status


@device
def clear_updates(producers: Any) -> int:
    """Clear the updates of the current group."""
    updates, update_index = words_at(producers.updates), words_at(producers.update_index)
    for update in range(producers.update_count):
        update_index[updates[update * ENTRY_WIDTH + fields.INDEX_SLOT]] = 0
    producers.update_count = 0
    return OK


@device
def has_room(producers: Any) -> bool:
    """Return whether all buffers have room for one batch more, and for the group when it is applied."""
    return (
        producers.entry_count + producers.update_count < producers.entry_capacity
        and producers.update_count < producers.update_capacity
        and producers.started_count < producers.started_capacity
        and producers.completed_count < producers.completed_capacity
        and producers.ongoing_end + producers.started_count < producers.ongoing_capacity
    )


@device
def work_row(data: Any, columns: Any, capacity: int, row: int, producers: Any) -> int:
    """Add one row with a producer to its update; returns the status."""
    entries, index = words_at(producers.entries), words_at(producers.index)
    producer_id = columns[scan.PRODUCER_ID * capacity + row]
    entry = max(find_entry(producer_id, entries, index, producers.index_bits, producers.index_seed), -1)
    is_control = columns[scan.ATTRIBUTES * capacity + row] & CONTROL_FLAG != 0
    is_marker = is_control and columns[scan.RECORD_COUNT * capacity + row] != 0
    status = check_before(columns, capacity, row, producers, entry)
    if status == OK and is_marker:
        status = read_marker(data, columns, capacity, row, producers)
    if status != OK:
        return status
    update = update_of(producer_id, entry, producers)
    if is_marker:
        return work_marker(columns, capacity, row, producers, update)
    return OK if is_control else work_data(columns, capacity, row, producers, entry, update)


@kernel("u8*, i64*, i64, i64, i64", ProducerStruct)
def fold_producers(data: Any, columns: Any, capacity: int, row: int, row_end: int, producers: Any) -> int:
    """Add rows `row` … `row_end` - 1 of a batch table to updates, and apply each at once if `is_single`.

    data: uint8, the scanned bytes; columns: int64[COLUMN_COUNT, capacity] of `scan.batches`. Returns the status; the
    rows before `stop_row` are done.
    """
    is_single = producers.is_single != 0
    while row < row_end:
        producers.stop_row = row
        if not has_room(producers):
            return NO_ROOM
        if columns[scan.MAGIC * capacity + row] >= 2:
            if columns[scan.PRODUCER_ID * capacity + row] > NO_PRODUCER_ID:
                status = work_row(data, columns, capacity, row, producers)
                if status == OK and is_single:
                    apply_update(0, producers)
                    status = apply_transactions(producers)
                    clear_updates(producers)
                if status != OK:
                    return status
            if is_single:
                last_delta = columns[scan.LAST_OFFSET_DELTA * capacity + row]
                producers.map_end_offset = add64(add64(columns[scan.BASE_OFFSET * capacity + row], last_delta), 1)
        row += 1
    return OK


@kernel(ProducerStruct)
def apply_updates(producers: Any) -> int:
    """Apply the updates of a group, then its transactions; the buffers have room for it. Returns OK or NOT_STARTED."""
    for update in range(producers.update_count):
        apply_update(update, producers)
    status = apply_transactions(producers)
    clear_updates(producers)
    return status
