"""The common end of a transaction in one call: its marker, checked as a coordinator's. `commit_append` lets it count.

As in `append_records`, what is out of the ordinary is left to the long way.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from ..layout.batch import HEADER_SIZE
from . import append_slots as slot
from . import producer_slots as producers
from . import scan
from .append_records import fill_row, has_segment_room, index_batch
from .encode import put_header
from .fold_producers import clear_updates, has_room, work_row
from .fold_transactions import DECIDED, ONGOING_END, ongoing_position

MARKER_SIZE = 78  # bytes
_RECORD_SIZE = MARKER_SIZE - HEADER_SIZE
_LENGTH, _KEY_LENGTH, _TYPE, _VALUE_LENGTH, _EPOCH = 0, 4, 8, 9, 12  # positions in the record


@device
def _put_marker(slots: Any, producer_slots: Any, columns: Any, out: Any) -> int:
    """Write the batch (`MemoryRecords.writeEndTransactionalMarker`)."""
    for position in range(HEADER_SIZE, MARKER_SIZE):
        out[position] = 0
    epoch = producer_slots[producers.MARKER_COORDINATOR_EPOCH]
    out[HEADER_SIZE + _LENGTH] = 2 * (_RECORD_SIZE - 1)
    out[HEADER_SIZE + _KEY_LENGTH] = 2 * 4
    out[HEADER_SIZE + _TYPE] = producer_slots[producers.MARKER_TYPE]
    out[HEADER_SIZE + _VALUE_LENGTH] = 2 * 6
    for byte in range(4):
        out[HEADER_SIZE + _EPOCH + byte] = (epoch >> (24 - 8 * byte)) & 0xFF
    columns[scan.BASE_TIMESTAMP] = slots[slot.NOW_MS]
    columns[scan.MAX_TIMESTAMP] = slots[slot.NOW_MS]
    fill_row(slots, columns)
    put_header(out, 0, MARKER_SIZE, columns, 1, 0)
    return MARKER_SIZE


@device
def _is_of_open(producer_slots: Any, completed: Any, transaction_slots: Any, ongoing: Any) -> bool:
    """Whether the transaction that the marker ends, if it ends one, is among the open ones."""
    number = producer_slots[producers.APPLIED_COUNT]
    if producer_slots[producers.COMPLETED_COUNT] == number:
        return True
    first_offset = completed[number * producers.COMPLETED_WIDTH + producers.COMPLETED_FIRST_OFFSET]
    position = ongoing_position(transaction_slots, ongoing, first_offset)
    return (
        position < transaction_slots[ONGOING_END]
        and ongoing[2 * position] == first_offset
        and ongoing[2 * position + 1] != DECIDED
    )


@kernel("i64*, u8*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*, i64*")
def prepare_marker(
    slots: Any,
    out: Any,
    columns: Any,
    index_slots: Any,
    offset_entries: Any,
    time_entries: Any,
    producer_slots: Any,
    entries: Any,
    index: Any,
    updates: Any,
    update_index: Any,
    started: Any,
    completed: Any,
    transaction_slots: Any,
    ongoing: Any,
) -> int:
    """Make a marker and check it as a coordinator's. Returns its bytes; 0, and nothing has changed, if not quick.

    slots: of `append_slots`, the call with RECORD_COUNT 1; producer_slots: with ORIGIN to MARKER_TIMESTAMP as for the
    row 0, which the marker is; the rest as in `prepare_append` and `fold_transactions`.
    """
    if min(slots[slot.OUT_CAPACITY], slots[slot.BATCH_SIZE_MAX]) < MARKER_SIZE or slots[slot.NOW_MS] < 0:
        return 0
    _put_marker(slots, producer_slots, columns, out)
    if not has_segment_room(slots, columns, index_slots, MARKER_SIZE) or not has_room(
        producer_slots, transaction_slots
    ):
        return 0
    status = work_row(out, columns, 1, 0, producer_slots, entries, index, updates, update_index, started, completed)
    producer_slots[producers.MARKER_ROW] = -1
    if status == slot.OK and not _is_of_open(producer_slots, completed, transaction_slots, ongoing):
        status = slot.NOT_QUICK
    if status == slot.OK:
        status = index_batch(slots, columns, index_slots, offset_entries, time_entries)
    if status != slot.OK:
        clear_updates(producer_slots, updates, update_index)
        producer_slots[producers.COMPLETED_COUNT] = producer_slots[producers.APPLIED_COUNT]
    return MARKER_SIZE if status == slot.OK else 0
