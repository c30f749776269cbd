"""Producer state stepped by batches (`ProducerAppendInfo`, `ProducerStateManager`, `UnifiedLog`).

As in Kafka the batches of a group are first worked into *updates*, one a producer, and those are applied together:
nothing has changed when a batch of the group is refused. A group is one batch in the recovery of a segment, what one
append brings, or all that is read of a segment while the state is rebuilt.
"""

from __future__ import annotations

from typing import Any

from ..layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL_FLAG
from . import scan
from .fold_transactions import (
    ONGOING_CAPACITY,
    ONGOING_END,
    UNREPLICATED_CAPACITY,
    UNREPLICATED_END,
    put_ongoing,
    put_unreplicated,
    remove_ongoing,
    stable_offset,
)
from .kernel import called, device, kernel
from .primitives import add64, be16, be32
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
    LAST_TIMESTAMP,
    MAP_CAPACITY,
    MAP_CAPACITY_MIN,
    MAP_CROWDED_BY_COMPUTE,
    MAP_CROWDED_BY_PUT,
    NONE,
    OFFSET_DELTA,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TIMESTAMP,
    TXN_FIRST_OFFSET,
    add_batch,
    find_batch,
    find_entry,
    incremented,
    map_capacity_with,
    newest_sequence,
)

# Slots of the state: the entries and their index,
ENTRY_COUNT = 0
ENTRY_CAPACITY = 1
INDEX_BITS = 2
INDEX_SEED = 3
JAVA_CAPACITY = 4  # table size of the Java map; 0 before its first entry
MAP_END_OFFSET = 5  # the state is as of this offset
# the group under way,
UPDATE_COUNT = 6
UPDATE_CAPACITY = 7
UPDATE_INDEX_BITS = 8
UPDATE_JAVA_CAPACITY = 9
STARTED_COUNT = 10  # transactions started and not yet put among the open ones
STARTED_CAPACITY = 11
COMPLETED_COUNT = 12  # transactions completed
APPLIED_COUNT = 13  # and how many of these have been taken from the open ones
COMPLETED_CAPACITY = 14
# how the batches come,
ORIGIN = 15
TRANSACTION_VERSION = 16  # -1 not known
IS_SINGLE = 17  # 1: each batch is a group of its own
IS_VERIFIED = 18  # 0: a transactional batch outside of a transaction is refused
LOWEST_SEQUENCE = 19  # of the verification state; 2^31 - 1 without one
SUPPORTS_EPOCH_BUMP = 20
# a marker that was read elsewhere,
MARKER_ROW = 21  # -1 none
MARKER_TYPE = 22
MARKER_COORDINATOR_EPOCH = 23
MARKER_TIMESTAMP = 24
# and what the last call stopped at.
STOP_ROW = 25
DETAIL = 26
SECOND_DETAIL = 27
THIRD_DETAIL = 28
SLOT_COUNT = 29

REPLICATION = 0  # `AppendOrigin`, by the numbers of Kafka's ordinals
COORDINATOR = 1
CLIENT = 2
RAFT_LEADER = 3

ABORT = 0
COMMIT = 1

# Fields of a completed transaction.
COMPLETED_PRODUCER_ID = 0
COMPLETED_FIRST_OFFSET = 1
COMPLETED_LAST_OFFSET = 2  # of the marker
COMPLETED_IS_ABORTED = 3
COMPLETED_LAST_STABLE_OFFSET = 4
COMPLETED_WIDTH = 5

# Status. Of those that refuse a batch the words are in `folds.producer_refusal`.
OK = 0
NO_ROOM = 1  # a buffer is full: enlarge it and go on at STOP_ROW
MARKER_TO_READ = 2  # a control batch of unusual form: fill the MARKER slots and go on at STOP_ROW
DUPLICATE = 3  # DETAIL … THIRD_DETAIL: first offset, last offset, timestamp of the first append
SMALLER_EPOCH = 4  # DETAIL: epoch known
NOT_VERIFIED = 5
OLD_EPOCH = 6  # DETAIL: epoch known, SECOND_DETAIL: transaction version
FIRST_SEQUENCE_NOT_ZERO = 7
SEQUENCE_ABOVE_LOWEST = 8  # DETAIL: that of the verification state
NEW_EPOCH_SEQUENCE = 9  # DETAIL: epoch known
SEQUENCE_GAP = 10  # DETAIL: last sequence known
OLD_COORDINATOR_EPOCH = 11  # DETAIL: epoch known, SECOND_DETAIL: the marker's
NOT_TRANSACTIONAL = 12
NO_TRANSACTION_VERSION = 13
NOT_STARTED = 14  # a completed transaction that is not among the open ones; DETAIL: its number

_SEQUENCE_MAX = (1 << 31) - 1
_MARKER_SIZE = 78


@called
def _update_of(producer_id: int, slots: Any, entries: Any, entry: int, updates: Any, update_index: Any) -> int:
    """The producer's update in this group; made of its entry (-1 without) when it has none (`prepareUpdate`)."""
    count = slots[UPDATE_COUNT]
    capacity = slots[UPDATE_JAVA_CAPACITY]
    if capacity == 0:
        capacity = MAP_CAPACITY_MIN
    elif count > capacity * 3 // 4:
        capacity = capacity * 2
    slots[UPDATE_JAVA_CAPACITY] = capacity
    found = find_entry(producer_id, updates, update_index, slots[UPDATE_INDEX_BITS], slots[INDEX_SEED])
    if found >= 0:
        return found
    capacity = map_capacity_with(producer_id, updates, count, capacity, MAP_CROWDED_BY_COMPUTE)
    slots[UPDATE_JAVA_CAPACITY] = capacity
    slots[UPDATE_COUNT] = count + 1
    update_index[-1 - found] = count + 1
    update = count * ENTRY_WIDTH
    updates[update + PRODUCER_ID] = producer_id
    updates[update + INDEX_SLOT] = -1 - found
    updates[update + MAP_CAPACITY] = capacity
    updates[update + BATCH_COUNT] = 0
    updates[update + BATCH_START] = 0
    if entry >= 0:
        for field in range(PRODUCER_EPOCH, BATCH_COUNT):
            updates[update + field] = entries[entry * ENTRY_WIDTH + field]
    else:
        updates[update + PRODUCER_EPOCH] = -1
        updates[update + COORDINATOR_EPOCH] = -1
        updates[update + LAST_TIMESTAMP] = -1
        updates[update + TXN_FIRST_OFFSET] = NONE
    return count


@called
def _check_sequence(slots: Any, entries: Any, entry: int, updates: Any, update: int, epoch: int, sequence: int) -> int:
    """Whether the first sequence of a client's batch may come now (`checkSequence`)."""
    entry_epoch = -1 if entry < 0 else entries[entry * ENTRY_WIDTH + PRODUCER_EPOCH]
    entry_sequence = -1 if entry < 0 else newest_sequence(entries, entry)
    is_fresh = entry < 0 or entries[entry * ENTRY_WIDTH + BATCH_COUNT] == 0
    if slots[SUPPORTS_EPOCH_BUMP] != 0 and sequence != 0 and is_fresh:
        return FIRST_SEQUENCE_NOT_ZERO
    if sequence > slots[LOWEST_SEQUENCE]:
        slots[DETAIL] = slots[LOWEST_SEQUENCE]
        return SEQUENCE_ABOVE_LOWEST
    current_epoch = updates[update * ENTRY_WIDTH + PRODUCER_EPOCH]
    if epoch != current_epoch:
        slots[DETAIL] = current_epoch
        return NEW_EPOCH_SEQUENCE if sequence != 0 and current_epoch != -1 else OK
    last = -1
    if updates[update * ENTRY_WIDTH + BATCH_COUNT] != 0:
        last = newest_sequence(updates, update)
    elif epoch == entry_epoch:
        last = entry_sequence
    slots[DETAIL] = last
    follows = sequence == last + 1 or (sequence == 0 and last == _SEQUENCE_MAX)
    return SEQUENCE_GAP if entry_epoch != -1 and not follows else OK


@called
def _apply_data(
    columns: Any, capacity: int, row: int, slots: Any, entries: Any, entry: int, updates: Any, update: int, started: Any
) -> int:
    """Work a data batch into its producer's update (`appendDataBatch`)."""
    at = update * ENTRY_WIDTH
    epoch = columns[scan.PRODUCER_EPOCH * capacity + row]
    sequence = columns[scan.BASE_SEQUENCE * capacity + row]
    if epoch < updates[at + PRODUCER_EPOCH] and slots[ORIGIN] != REPLICATION:
        slots[DETAIL] = updates[at + PRODUCER_EPOCH]
        slots[SECOND_DETAIL] = -1
        return OLD_EPOCH
    if slots[ORIGIN] == CLIENT:
        status = _check_sequence(slots, entries, entry, updates, update, epoch, sequence)
        if status != OK:
            return status
    base_offset = columns[scan.BASE_OFFSET * capacity + row]
    delta = columns[scan.LAST_OFFSET_DELTA * capacity + row]
    last_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else incremented(sequence, delta)
    timestamp = columns[scan.MAX_TIMESTAMP * capacity + row]
    add_batch(updates, update, epoch, last_sequence, add64(base_offset, delta), delta, timestamp)
    updates[at + LAST_TIMESTAMP] = timestamp
    is_transactional = columns[scan.ATTRIBUTES * capacity + row] & TRANSACTIONAL_FLAG != 0
    if updates[at + TXN_FIRST_OFFSET] != NONE:
        return OK if is_transactional else NOT_TRANSACTIONAL
    if is_transactional:
        updates[at + TXN_FIRST_OFFSET] = base_offset
        number = slots[STARTED_COUNT]
        started[2 * number] = base_offset
        started[2 * number + 1] = updates[at + PRODUCER_ID]
        slots[STARTED_COUNT] = number + 1
    return OK


@called
def _read_marker(data: Any, columns: Any, capacity: int, row: int, slots: Any) -> int:
    """Fill the MARKER slots from a marker as Kafka writes it, one record of 17 bytes."""
    if slots[MARKER_ROW] == row:
        return OK
    position = columns[scan.POSITION * capacity + row]
    if columns[scan.SIZE * capacity + row] != _MARKER_SIZE or columns[scan.RECORD_COUNT * capacity + row] != 1:
        return MARKER_TO_READ
    if data[position + 61] != 32 or data[position + 63] != 0 or data[position + 64] != 0 or data[position + 65] != 8:
        return MARKER_TO_READ
    if data[position + 70] != 12 or data[position + 77] != 0:
        return MARKER_TO_READ
    attributes = columns[scan.ATTRIBUTES * capacity + row]
    kind = be16(data, position + 68)
    if attributes & 7 != 0 or be16(data, position + 66) != 0 or be16(data, position + 71) != 0 or kind < 0 or kind > 1:
        return MARKER_TO_READ
    is_appended = attributes & LOG_APPEND_TIME_FLAG != 0
    slots[MARKER_TYPE] = kind
    slots[MARKER_COORDINATOR_EPOCH] = be32(data, position + 73)
    slots[MARKER_TIMESTAMP] = columns[(scan.MAX_TIMESTAMP if is_appended else scan.BASE_TIMESTAMP) * capacity + row]
    return OK


@called
def _apply_marker(columns: Any, capacity: int, row: int, slots: Any, updates: Any, update: int, completed: Any) -> int:
    """Work the marker in the MARKER slots into its producer's update (`appendEndTxnMarker`)."""
    at = update * ENTRY_WIDTH
    epoch = columns[scan.PRODUCER_EPOCH * capacity + row]
    is_checked = slots[ORIGIN] != REPLICATION
    version = slots[TRANSACTION_VERSION]
    if version == -1 and is_checked:
        return NO_TRANSACTION_VERSION
    current = updates[at + PRODUCER_EPOCH]
    is_open = updates[at + TXN_FIRST_OFFSET] != NONE
    is_old = epoch <= current if version >= 2 else epoch < current
    is_repeated = version >= 2 and epoch == current and (not is_open or epoch == 32767)
    if is_checked and is_old and not is_repeated:
        slots[DETAIL] = current
        slots[SECOND_DETAIL] = max(version, 0)
        return OLD_EPOCH
    if is_checked and updates[at + COORDINATOR_EPOCH] > slots[MARKER_COORDINATOR_EPOCH]:
        slots[DETAIL] = updates[at + COORDINATOR_EPOCH]
        slots[SECOND_DETAIL] = slots[MARKER_COORDINATOR_EPOCH]
        return OLD_COORDINATOR_EPOCH
    if is_open:
        number = slots[COMPLETED_COUNT]
        transaction = number * COMPLETED_WIDTH
        completed[transaction + COMPLETED_PRODUCER_ID] = updates[at + PRODUCER_ID]
        completed[transaction + COMPLETED_FIRST_OFFSET] = updates[at + TXN_FIRST_OFFSET]
        completed[transaction + COMPLETED_LAST_OFFSET] = columns[scan.BASE_OFFSET * capacity + row]
        completed[transaction + COMPLETED_IS_ABORTED] = 1 if slots[MARKER_TYPE] == ABORT else 0
        slots[COMPLETED_COUNT] = number + 1
    if epoch != current:
        updates[at + PRODUCER_EPOCH] = epoch
        updates[at + BATCH_COUNT] = 0
    updates[at + COORDINATOR_EPOCH] = slots[MARKER_COORDINATOR_EPOCH]
    updates[at + LAST_TIMESTAMP] = slots[MARKER_TIMESTAMP]
    updates[at + TXN_FIRST_OFFSET] = NONE
    return OK


@called
def _check_before(columns: Any, capacity: int, row: int, slots: Any, entries: Any, entry: int) -> int:
    """What is checked before a batch is worked into an update (`analyzeAndValidateProducerState`)."""
    if slots[ORIGIN] == REPLICATION:
        return OK
    epoch = columns[scan.PRODUCER_EPOCH * capacity + row]
    attributes = columns[scan.ATTRIBUTES * capacity + row]
    at = entry * ENTRY_WIDTH
    if slots[ORIGIN] == CLIENT and entry >= 0 and entries[at + PRODUCER_EPOCH] == epoch:
        first = columns[scan.BASE_SEQUENCE * capacity + row]
        delta = columns[scan.LAST_OFFSET_DELTA * capacity + row]
        last = NO_SEQUENCE if first == NO_SEQUENCE else incremented(first, delta)
        batch = find_batch(entries, entry, first, last)
        if batch >= 0:
            slots[DETAIL] = entries[batch + LAST_OFFSET] - entries[batch + OFFSET_DELTA]
            slots[SECOND_DETAIL] = entries[batch + LAST_OFFSET]
            slots[THIRD_DETAIL] = entries[batch + TIMESTAMP]
            return DUPLICATE
    if attributes & TRANSACTIONAL_FLAG == 0:
        return OK
    if entry >= 0:
        if entries[at + TXN_FIRST_OFFSET] != NONE and entries[at + PRODUCER_EPOCH] == epoch:
            return OK
        if epoch < entries[at + PRODUCER_EPOCH]:
            slots[DETAIL] = entries[at + PRODUCER_EPOCH]
            return SMALLER_EPOCH
    return NOT_VERIFIED if slots[IS_VERIFIED] == 0 and attributes & CONTROL_FLAG == 0 else OK


@called
def _apply_update(update: int, slots: Any, entries: Any, index: Any, updates: Any) -> int:
    """Merge a producer's update into its entry, or make it its entry (`ProducerStateManager.update`)."""
    source = update * ENTRY_WIDTH
    producer_id = updates[source + PRODUCER_ID]
    found = find_entry(producer_id, entries, index, slots[INDEX_BITS], slots[INDEX_SEED])
    count = slots[ENTRY_COUNT]
    entry = count if found < 0 else found
    at = entry * ENTRY_WIDTH
    if found < 0:
        capacity = MAP_CAPACITY_MIN if slots[JAVA_CAPACITY] == 0 else slots[JAVA_CAPACITY]
        capacity = map_capacity_with(producer_id, entries, count, capacity, MAP_CROWDED_BY_PUT)
        if count + 1 > capacity * 3 // 4:
            capacity *= 2
        slots[JAVA_CAPACITY] = capacity
        slots[ENTRY_COUNT] = count + 1
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


@called
def _apply_transactions(
    slots: Any, started: Any, completed: Any, transaction_slots: Any, ongoing: Any, unreplicated: Any
) -> int:
    """Open the transactions that the group started, then decide those that it completed (`completeTxn`)."""
    for number in range(slots[STARTED_COUNT]):
        put_ongoing(transaction_slots, ongoing, started[2 * number], started[2 * number + 1])
    slots[STARTED_COUNT] = 0
    status = OK
    while slots[APPLIED_COUNT] < slots[COMPLETED_COUNT] and status == OK:
        transaction = slots[APPLIED_COUNT] * COMPLETED_WIDTH
        first_offset = completed[transaction + COMPLETED_FIRST_OFFSET]
        last_offset = completed[transaction + COMPLETED_LAST_OFFSET]
        completed[transaction + COMPLETED_LAST_STABLE_OFFSET] = stable_offset(
            transaction_slots, ongoing, completed[transaction + COMPLETED_PRODUCER_ID], last_offset
        )
        if remove_ongoing(transaction_slots, ongoing, first_offset) == 0:
            slots[DETAIL] = slots[APPLIED_COUNT]
            status = NOT_STARTED
        else:
            put_unreplicated(transaction_slots, unreplicated, first_offset, last_offset)
            slots[APPLIED_COUNT] += 1
    return status


@called
def _clear_updates(slots: Any, updates: Any, update_index: Any) -> int:
    for update in range(slots[UPDATE_COUNT]):
        update_index[updates[update * ENTRY_WIDTH + INDEX_SLOT]] = 0
    slots[UPDATE_COUNT] = 0
    slots[UPDATE_JAVA_CAPACITY] = 0
    return OK


@device
def _has_room(slots: Any, transaction_slots: Any) -> bool:
    """Whether one batch more fits everywhere, and the group when it is applied."""
    undecided_count = slots[COMPLETED_COUNT] - slots[APPLIED_COUNT]
    return (
        slots[ENTRY_COUNT] + slots[UPDATE_COUNT] < slots[ENTRY_CAPACITY]
        and slots[UPDATE_COUNT] < slots[UPDATE_CAPACITY]
        and slots[STARTED_COUNT] < slots[STARTED_CAPACITY]
        and slots[COMPLETED_COUNT] < slots[COMPLETED_CAPACITY]
        and transaction_slots[ONGOING_END] + slots[STARTED_COUNT] < transaction_slots[ONGOING_CAPACITY]
        and transaction_slots[UNREPLICATED_END] + undecided_count < transaction_slots[UNREPLICATED_CAPACITY]
    )


@kernel("u8*, i64*, i64, i64, i64, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*")
def fold_producers(
    data: Any,
    columns: Any,
    capacity: int,
    row: int,
    row_end: int,
    slots: Any,
    entries: Any,
    index: Any,
    updates: Any,
    update_index: Any,
    started: Any,
    completed: Any,
    transaction_slots: Any,
    ongoing: Any,
    unreplicated: Any,
) -> int:
    """Work rows `row` … `row_end` - 1 of a batch table into updates, and apply each at once if IS_SINGLE.

    data: uint8, what the table was scanned from; columns: int64[COLUMN_COUNT, capacity] of `scan`; slots:
    int64[SLOT_COUNT]; entries and updates: int64[n, ENTRY_WIDTH]; their indexes: int64[2^bits]; started: int64[n, 2];
    completed: int64[n, COMPLETED_WIDTH], out; the rest as in `fold_transactions`. Returns the status; the rows before
    STOP_ROW are done.
    """
    while row < row_end:
        slots[STOP_ROW] = row
        if not _has_room(slots, transaction_slots):
            return NO_ROOM
        producer_id = columns[scan.PRODUCER_ID * capacity + row]
        if columns[scan.MAGIC * capacity + row] < 2:
            row += 1
            continue
        if producer_id != NO_PRODUCER_ID:
            entry = find_entry(producer_id, entries, index, slots[INDEX_BITS], slots[INDEX_SEED])
            entry = max(entry, -1)
            is_control = columns[scan.ATTRIBUTES * capacity + row] & CONTROL_FLAG != 0
            is_marker = is_control and columns[scan.RECORD_COUNT * capacity + row] != 0
            status = _check_before(columns, capacity, row, slots, entries, entry)
            if status == OK and is_marker:
                status = _read_marker(data, columns, capacity, row, slots)
            if status != OK:
                return status
            update = _update_of(producer_id, slots, entries, entry, updates, update_index)
            if is_marker:
                status = _apply_marker(columns, capacity, row, slots, updates, update, completed)
            elif not is_control:
                status = _apply_data(columns, capacity, row, slots, entries, entry, updates, update, started)
            if status == OK and slots[IS_SINGLE] != 0:
                _apply_update(update, slots, entries, index, updates)
                status = _apply_transactions(slots, started, completed, transaction_slots, ongoing, unreplicated)
                _clear_updates(slots, updates, update_index)
            if status != OK:
                return status
        if slots[IS_SINGLE] != 0:
            last_delta = columns[scan.LAST_OFFSET_DELTA * capacity + row]
            slots[MAP_END_OFFSET] = add64(add64(columns[scan.BASE_OFFSET * capacity + row], last_delta), 1)
        row += 1
    return OK


@kernel("i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*")
def apply_updates(
    order: Any,
    slots: Any,
    entries: Any,
    index: Any,
    updates: Any,
    update_index: Any,
    started: Any,
    completed: Any,
    transaction_slots: Any,
    ongoing: Any,
    unreplicated: Any,
) -> int:
    """Apply the updates of a group in this order, which is that of a Java HashMap; then its transactions.

    order: int64[UPDATE_COUNT], numbers of updates; the rest as in `fold_producers`, with room for the whole group.
    Returns OK or NOT_STARTED.
    """
    for number in range(slots[UPDATE_COUNT]):
        _apply_update(order[number], slots, entries, index, updates)
    status = _apply_transactions(slots, started, completed, transaction_slots, ongoing, unreplicated)
    _clear_updates(slots, updates, update_index)
    return status
