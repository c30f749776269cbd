"""The common append of a leader: records to a checked batch, the write, then what it changes.

Whatever is out of the ordinary (a record that is refused, a segment that is full, a sequence that does not follow) is
left to the long way, which does the same step by step and has the words for it. Where the caller has no function for
the write, or that did not take all, the caller writes, and then calls `commit_append`: nothing counts that was not
written.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from ..jit.write_call import call_write
from ..layout.batch import CONTROL_FLAG, HEADER_SIZE, LOG_APPEND_TIME_FLAG, NO_PRODUCER_ID
from . import append_slots as slot
from . import fold_indexes as indexes
from . import producer_slots as producers
from . import scan
from .append_request import put_records
from .encode import put_header
from .fold_indexes import RELATIVE_OFFSET_MAX, fold_index_rows
from .fold_producers import apply_transactions, apply_update, clear_updates, has_room, work_row
from .primitives import add64

_ANY_SEQUENCE = (1 << 31) - 1


@device
def fill_row(slots: Any, columns: Any) -> int:
    """The fields of the batch's header that its records do not say."""
    columns[scan.BASE_OFFSET] = slots[slot.LOG_END_OFFSET]
    columns[scan.PARTITION_LEADER_EPOCH] = slots[slot.LEADER_EPOCH]
    columns[scan.ATTRIBUTES] = slots[slot.ATTRIBUTES]
    if slots[slot.IS_LOG_APPEND_TIME] != 0:
        columns[scan.ATTRIBUTES] |= LOG_APPEND_TIME_FLAG
        columns[scan.MAX_TIMESTAMP] = slots[slot.NOW_MS]
    columns[scan.LAST_OFFSET_DELTA] = slots[slot.RECORD_COUNT] - 1
    columns[scan.PRODUCER_ID] = slots[slot.PRODUCER_ID]
    columns[scan.PRODUCER_EPOCH] = slots[slot.PRODUCER_EPOCH]
    columns[scan.BASE_SEQUENCE] = slots[slot.BASE_SEQUENCE]
    columns[scan.RECORD_COUNT] = slots[slot.RECORD_COUNT]
    return 0


@device
def has_segment_room(slots: Any, columns: Any, index_slots: Any, size: int) -> bool:
    """Whether the last segment takes the batch without rolling (`LogSegment.shouldRoll`)."""
    last_offset = slots[slot.LOG_END_OFFSET] + slots[slot.RECORD_COUNT] - 1
    offset_entry_count = index_slots[indexes.OFFSET_ENTRY_COUNT]
    time_entry_count = index_slots[indexes.TIME_ENTRY_COUNT]
    waited_ms = columns[scan.MAX_TIMESTAMP] - slots[slot.FIRST_TIMESTAMP]
    if slots[slot.FIRST_TIMESTAMP] < 0:
        waited_ms = slots[slot.NOW_MS] - slots[slot.CREATED_MS]
    return (
        slots[slot.SEGMENT_SIZE] <= slots[slot.SEGMENT_SIZE_MAX] - size
        and (slots[slot.SEGMENT_SIZE] == 0 or waited_ms <= slots[slot.AGE_MAX_MS])
        and last_offset - index_slots[indexes.SEGMENT_BASE_OFFSET] <= RELATIVE_OFFSET_MAX
        and offset_entry_count < index_slots[indexes.OFFSET_ENTRY_COUNT_MAX]
        and time_entry_count < index_slots[indexes.TIME_ENTRY_COUNT_MAX] - 1
        and offset_entry_count < slots[slot.OFFSET_ENTRY_ROOM]
        and time_entry_count < slots[slot.TIME_ENTRY_ROOM]
    )


@device
def index_batch(slots: Any, columns: Any, index_slots: Any, offset_entries: Any, time_entries: Any) -> int:
    """Step the indexes, or leave them as they were."""
    for number in range(indexes.SLOT_COUNT):
        slots[slot.SAVED_INDEX_SLOTS + number] = index_slots[number]
    columns[scan.POSITION] = slots[slot.SEGMENT_SIZE]
    status = fold_index_rows(columns, 1, 0, 1, index_slots, offset_entries, time_entries)
    if status == indexes.OK:
        return slot.OK
    for number in range(indexes.SLOT_COUNT):
        index_slots[number] = slots[slot.SAVED_INDEX_SLOTS + number]
    return slot.NOT_QUICK


@device
def _work_producer(
    slots: Any,
    out: Any,
    columns: Any,
    producer_slots: Any,
    entries: Any,
    index: Any,
    updates: Any,
    update_index: Any,
    started: Any,
    completed: Any,
    transaction_slots: Any,
) -> int:
    """Work the batch into its producer's update; what is left of one otherwise is the caller's to clear."""
    if slots[slot.BASE_SEQUENCE] < 0 or not has_room(producer_slots, transaction_slots):
        return slot.NOT_QUICK
    producer_slots[producers.ORIGIN] = producers.CLIENT
    producer_slots[producers.LOWEST_SEQUENCE] = _ANY_SEQUENCE
    producer_slots[producers.SUPPORTS_EPOCH_BUMP] = 0
    producer_slots[producers.IS_VERIFIED] = slots[slot.IS_VERIFIED]
    producer_slots[producers.MARKER_ROW] = -1
    status = work_row(out, columns, 1, 0, producer_slots, entries, index, updates, update_index, started, completed)
    return slot.OK if status == slot.OK else slot.NOT_QUICK


@device
def _check(
    slots: Any, out: Any, columns: Any, index_slots: Any, offset_entries: Any, time_entries: Any,
    producer_slots: Any, entries: Any, index: Any, updates: Any, update_index: Any, started: Any, completed: Any,
    transaction_slots: Any,
) -> bool:  # fmt: skip
    """Work the batch into its producer's update and into the indexes; False, and nothing has changed, if not quick."""
    status = slot.OK
    if slots[slot.PRODUCER_ID] > NO_PRODUCER_ID:
        status = _work_producer(
            slots, out, columns,
            producer_slots, entries, index, updates, update_index, started, completed, transaction_slots,
        )  # fmt: skip
    if status == slot.OK:
        status = index_batch(slots, columns, index_slots, offset_entries, time_entries)
    if status != slot.OK:
        clear_updates(producer_slots, updates, update_index)
        producer_slots[producers.STARTED_COUNT] = 0
    return status == slot.OK


@device
def _commit(
    slots: Any, columns: Any,
    producer_slots: Any, entries: Any, index: Any, updates: Any, update_index: Any, started: Any, completed: Any,
    transaction_slots: Any, ongoing: Any, unreplicated: Any,
) -> int:  # fmt: skip
    """Let the batch count that was prepared. Returns the new log end offset."""
    end_offset = slots[slot.LOG_END_OFFSET] + slots[slot.RECORD_COUNT]
    if slots[slot.PRODUCER_ID] > NO_PRODUCER_ID:
        apply_update(0, producer_slots, entries, index, updates)
        apply_transactions(producer_slots, started, completed, transaction_slots, ongoing, unreplicated)
        clear_updates(producer_slots, updates, update_index)
    producer_slots[producers.MAP_END_OFFSET] = end_offset
    if slots[slot.SEGMENT_SIZE] == 0:
        slots[slot.FIRST_TIMESTAMP] = columns[scan.MAX_TIMESTAMP]
    slots[slot.SEGMENT_SIZE] += columns[scan.SIZE]
    slots[slot.LOG_END_OFFSET] = end_offset
    return end_offset


@kernel(
    "u8*, i64*, i64*, i64*, u8*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*",
    waits=True,
)
def prepare_append(
    data: Any, rows: Any, slots: Any, file: Any, out: Any, columns: Any, index_slots: Any,
    offset_entries: Any, time_entries: Any,
    producer_slots: Any, entries: Any, index: Any, updates: Any, update_index: Any, started: Any, completed: Any,
    transaction_slots: Any, ongoing: Any, unreplicated: Any,
) -> int:  # fmt: skip
    """Make a batch of records and check it as a client's; with a function for it, write it, and let it count.

    Returns minus the bytes of the batch if all is done, or its bytes if the rest from slots[WRITTEN_SIZE] on is to be
    written before `commit_append`; 0, and nothing has changed, if not quick.

    data, rows: as in `put_records`; slots: of `append_slots`, with the call; file: int64[FILE_SLOT_COUNT]; out:
    uint8[OUT_CAPACITY]; columns: int64[scan.COLUMN_COUNT, 1], out; the rest as in `fold_indexes` and in
    `fold_producers`, stepped and worked.
    """
    size = put_records(slots, data, rows, columns, out)
    fill_row(slots, columns)
    if size <= HEADER_SIZE or not has_segment_room(slots, columns, index_slots, size):
        return 0
    put_header(out, 0, size, columns, 1, 0)
    if not _check(
        slots, out, columns, index_slots, offset_entries, time_entries,
        producer_slots, entries, index, updates, update_index, started, completed, transaction_slots,
    ):  # fmt: skip
        return 0
    slots[slot.WRITTEN_SIZE] = 0
    if file[slot.WRITE_ADDRESS] == 0:
        return size
    written_size = call_write(file[slot.WRITE_ADDRESS], file[slot.DESCRIPTOR], out, size)
    if written_size != size:
        slots[slot.WRITTEN_SIZE] = max(written_size, 0)
        return size
    _commit(
        slots, columns, producer_slots, entries, index, updates, update_index, started, completed,
        transaction_slots, ongoing, unreplicated,
    )  # fmt: skip
    return -size


@device
def _take_row(slots: Any, columns: Any) -> bool:
    """Make the batch of the row that of the call; False if it is not a client's at the log's end."""
    slots[slot.RECORD_COUNT] = add64(columns[scan.LAST_OFFSET_DELTA], 1)
    slots[slot.PRODUCER_ID] = columns[scan.PRODUCER_ID]
    slots[slot.BASE_SEQUENCE] = columns[scan.BASE_SEQUENCE]
    return (
        columns[scan.BASE_OFFSET] == slots[slot.LOG_END_OFFSET]
        and columns[scan.PARTITION_LEADER_EPOCH] == slots[slot.LEADER_EPOCH]
        and columns[scan.ATTRIBUTES] & CONTROL_FLAG == 0
    )


@kernel("i64*, u8*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*")
def prepare_placed(
    slots: Any, data: Any, columns: Any, index_slots: Any, offset_entries: Any, time_entries: Any,
    producer_slots: Any, entries: Any, index: Any, updates: Any, update_index: Any, started: Any, completed: Any,
    transaction_slots: Any,
) -> int:  # fmt: skip
    """Check a client's batch that is validated and has its offsets: its row is in `columns`.

    Returns its bytes, which are to be written before `commit_append`; the rest as in `prepare_append`.
    """
    if not _take_row(slots, columns) or not has_segment_room(slots, columns, index_slots, columns[scan.SIZE]):
        return 0
    is_quick = _check(
        slots, data, columns, index_slots, offset_entries, time_entries,
        producer_slots, entries, index, updates, update_index, started, completed, transaction_slots,
    )  # fmt: skip
    return columns[scan.SIZE] if is_quick else 0


@kernel("i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*")
def commit_append(
    slots: Any, columns: Any,
    producer_slots: Any, entries: Any, index: Any, updates: Any, update_index: Any, started: Any, completed: Any,
    transaction_slots: Any, ongoing: Any, unreplicated: Any,
) -> int:  # fmt: skip
    """The batch that was prepared is written: let it count. Returns the new log end offset."""
    return _commit(
        slots, columns, producer_slots, entries, index, updates, update_index, started, completed,
        transaction_slots, ongoing, unreplicated,
    )  # fmt: skip
