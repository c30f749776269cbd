"""Producer state stepped by batches (`ProducerAppendInfo`, `ProducerStateManager`, `UnifiedLog`).

As in Kafka the batches of a group are first worked into *updates*, one a producer, and those are applied together:
nothing has changed when a batch of the group is refused. A group is one batch in the recovery of a segment, what one
append brings, or all that is read of a segment while the state is rebuilt.
"""

from __future__ import annotations

from typing import Any

from ...jit.device import device
from ...jit.kernel import kernel
from ...jit.structs import words_at
from ...layout.batch import CONTROL_FLAG, NO_PRODUCER_ID
from ..primitives import add64
from ..scan import batches as scan
from . import producer_slots as slot
from .producer_batches import check_before, read_marker, update_of, work_data, work_marker
from .producer_entries import (
    BATCH_COUNT,
    BATCH_COUNT_MAX,
    BATCH_START,
    BATCH_WIDTH,
    BATCHES,
    COORDINATOR_EPOCH,
    ENTRY_WIDTH,
    INDEX_SLOT,
    LAST_OFFSET,
    LAST_SEQUENCE,
    MAP_CAPACITY,
    MAP_CAPACITY_MIN,
    MAP_CROWDED_BY_PUT,
    OFFSET_DELTA,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TIMESTAMP,
    add_batch,
    find_entry,
    map_capacity_with,
)
from .producer_slots import NO_ROOM, NOT_STARTED, OK, ProducerStruct
from .transactions import ONGOING_CAPACITY, ONGOING_END, put_ongoing, remove_ongoing, stable_offset


@device
def apply_update(update: int, producers: Any) -> int:
    """Merge a producer's update into its entry, or make it its entry (`ProducerStateManager.update`)."""
    slots, index = words_at(producers.producer_slots), words_at(producers.index)
    entries, updates = words_at(producers.entries), words_at(producers.updates)
    source = update * ENTRY_WIDTH
    producer_id = updates[source + PRODUCER_ID]
    found = find_entry(producer_id, entries, index, slots[slot.INDEX_BITS], slots[slot.INDEX_SEED])
    count = slots[slot.ENTRY_COUNT]
    entry = count if found < 0 else found
    at = entry * ENTRY_WIDTH
    if found < 0:
        capacity = MAP_CAPACITY_MIN if slots[slot.JAVA_CAPACITY] == 0 else slots[slot.JAVA_CAPACITY]
        capacity = map_capacity_with(producer_id, entries, count, capacity, MAP_CROWDED_BY_PUT)
        if count + 1 > capacity * 3 // 4:
            capacity *= 2
        slots[slot.JAVA_CAPACITY] = capacity
        slots[slot.ENTRY_COUNT] = count + 1
        index[-1 - found] = count + 1
        entries[at + PRODUCER_ID] = producer_id
        entries[at + INDEX_SLOT] = -1 - found
        entries[at + MAP_CAPACITY] = capacity
        entries[at + BATCH_COUNT] = 0
        entries[at + BATCH_START] = 0
        entries[at + PRODUCER_EPOCH] = updates[source + PRODUCER_EPOCH]
    epoch = updates[source + PRODUCER_EPOCH]
    if entries[at + PRODUCER_EPOCH] != epoch:
        entries[at + PRODUCER_EPOCH] = epoch
        entries[at + BATCH_COUNT] = 0
    for age in range(updates[source + BATCH_COUNT]):
        number = (updates[source + BATCH_START] + age) % BATCH_COUNT_MAX
        batch = source + BATCHES + number * BATCH_WIDTH
        add_batch(
            entries,
            entry,
            epoch,
            updates[batch + LAST_SEQUENCE],
            updates[batch + LAST_OFFSET],
            updates[batch + OFFSET_DELTA],
            updates[batch + TIMESTAMP],
        )
    for field in range(COORDINATOR_EPOCH, BATCH_COUNT):
        entries[at + field] = updates[source + field]
    return entry


@device
def apply_transactions(producers: Any) -> int:
    """Open the transactions that the group started, then decide those that it completed (`completeTxn`)."""
    slots, started, completed = (
        words_at(producers.producer_slots),
        words_at(producers.started),
        words_at(producers.completed),
    )
    transaction_slots, ongoing = words_at(producers.transaction_slots), words_at(producers.ongoing)
    for number in range(slots[slot.STARTED_COUNT]):
        put_ongoing(transaction_slots, ongoing, started[2 * number], started[2 * number + 1])
    slots[slot.STARTED_COUNT] = 0
    status = OK
    while slots[slot.APPLIED_COUNT] < slots[slot.COMPLETED_COUNT] and status == OK:
        transaction = slots[slot.APPLIED_COUNT] * slot.COMPLETED_WIDTH
        first_offset = completed[transaction + slot.COMPLETED_FIRST_OFFSET]
        last_offset = completed[transaction + slot.COMPLETED_LAST_OFFSET]
        completed[transaction + slot.COMPLETED_LAST_STABLE_OFFSET] = stable_offset(
            transaction_slots, ongoing, completed[transaction + slot.COMPLETED_PRODUCER_ID], last_offset
        )
        if remove_ongoing(transaction_slots, ongoing, first_offset) == 0:
            slots[slot.DETAIL] = slots[slot.APPLIED_COUNT]
            status = NOT_STARTED
        else:
            slots[slot.APPLIED_COUNT] += 1
    return status


@device
def clear_updates(producers: Any) -> int:
    """Forget the updates of the group under way."""
    slots, updates = words_at(producers.producer_slots), words_at(producers.updates)
    update_index = words_at(producers.update_index)
    for update in range(slots[slot.UPDATE_COUNT]):
        update_index[updates[update * ENTRY_WIDTH + INDEX_SLOT]] = 0
    slots[slot.UPDATE_COUNT] = 0
    slots[slot.UPDATE_JAVA_CAPACITY] = 0
    return OK


@device
def has_room(producers: Any) -> bool:
    """Whether one batch more fits everywhere, and the group when it is applied."""
    slots, transaction_slots = words_at(producers.producer_slots), words_at(producers.transaction_slots)
    return (
        slots[slot.ENTRY_COUNT] + slots[slot.UPDATE_COUNT] < slots[slot.ENTRY_CAPACITY]
        and slots[slot.UPDATE_COUNT] < slots[slot.UPDATE_CAPACITY]
        and slots[slot.STARTED_COUNT] < slots[slot.STARTED_CAPACITY]
        and slots[slot.COMPLETED_COUNT] < slots[slot.COMPLETED_CAPACITY]
        and transaction_slots[ONGOING_END] + slots[slot.STARTED_COUNT] < transaction_slots[ONGOING_CAPACITY]
    )


@device
def work_row(data: Any, columns: Any, capacity: int, row: int, producers: Any) -> int:
    """Work one row that has a producer into its update."""
    slots, index = words_at(producers.producer_slots), words_at(producers.index)
    entries, updates = words_at(producers.entries), words_at(producers.updates)
    producer_id = columns[scan.PRODUCER_ID * capacity + row]
    entry = max(find_entry(producer_id, entries, index, slots[slot.INDEX_BITS], slots[slot.INDEX_SEED]), -1)
    is_control = columns[scan.ATTRIBUTES * capacity + row] & CONTROL_FLAG != 0
    is_marker = is_control and columns[scan.RECORD_COUNT * capacity + row] != 0
    status = check_before(columns, capacity, row, slots, entries, entry)
    if status == OK and is_marker:
        status = read_marker(data, columns, capacity, row, slots)
    if status != OK:
        return status
    update = update_of(producer_id, slots, entries, entry, updates, words_at(producers.update_index))
    if is_marker:
        return work_marker(columns, capacity, row, slots, updates, update, words_at(producers.completed))
    if is_control:
        return OK
    return work_data(columns, capacity, row, slots, entries, entry, updates, update, words_at(producers.started))


@kernel("u8*, i64*, i64, i64, i64", ProducerStruct)
def fold_producers(data: Any, columns: Any, capacity: int, row: int, row_end: int, producers: Any) -> int:
    """Work rows `row` … `row_end` - 1 of a batch table into updates, and apply each at once if IS_SINGLE.

    data: uint8, what the table was scanned from; columns: int64[COLUMN_COUNT, capacity] of `scan`. Returns the status;
    the rows before STOP_ROW are done.
    """
    slots = words_at(producers.producer_slots)
    is_single = slots[slot.IS_SINGLE] != 0
    while row < row_end:
        slots[slot.STOP_ROW] = row
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
                slots[slot.MAP_END_OFFSET] = add64(add64(columns[scan.BASE_OFFSET * capacity + row], last_delta), 1)
        row += 1
    return OK


@kernel("i64*", ProducerStruct)
def apply_updates(order: Any, producers: Any) -> int:
    """Apply the updates of a group in this order, which is that of a Java HashMap; then its transactions.

    order: int64[slot.UPDATE_COUNT], numbers of updates; there is room for the whole group. Returns OK or NOT_STARTED.
    """
    for number in range(words_at(producers.producer_slots)[slot.UPDATE_COUNT]):
        apply_update(order[number], producers)
    status = apply_transactions(producers)
    clear_updates(producers)
    return status
