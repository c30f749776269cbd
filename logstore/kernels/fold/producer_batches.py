"""Checks a batch and adds it to its producer's update (`ProducerAppendInfo`, `analyzeAndValidateProducerState`).

An update is the producer's entry after the current group of batches, with only the batches of the group.
"""

from __future__ import annotations

from typing import Any

from ...layout import marker
from ...layout.batch import CODEC_MASK, CONTROL_FLAG, LOG_APPEND_TIME_FLAG, NO_SEQUENCE, TRANSACTIONAL_FLAG
from ...layout.record import SEQUENCE_MAX
from ...native.device import device
from ...native.structs import words_at
from ..primitives import add64, be16, be32
from ..rules import increment_sequence
from ..scan import batches as scan
from . import producer_entries as fields
from . import producer_struct as fold
from .producer_entries import ENTRY_WIDTH, NONE, add_batch, find_batch, find_entry, newest_sequence
from .producer_struct import OK


@device
def update_of(producer_id: int, entry: int, producers: Any) -> int:
    """Return the producer's update in this group; makes it from the entry, -1 for none (`prepareUpdate`)."""
    entries, updates = words_at(producers.entries), words_at(producers.updates)
    update_index = words_at(producers.update_index)
    count = producers.update_count
    found = find_entry(producer_id, updates, update_index, producers.update_index_bits, producers.index_seed)
    if found >= 0:
        return found
    producers.update_count = count + 1
    update_index[-1 - found] = count + 1
    update = count * ENTRY_WIDTH
    updates[update + fields.PRODUCER_ID] = producer_id
    updates[update + fields.INDEX_SLOT] = -1 - found
    updates[update + fields.BATCH_COUNT] = 0
    updates[update + fields.BATCH_START] = 0
    if entry >= 0:
        for field in range(fields.PRODUCER_EPOCH, fields.BATCH_COUNT):
            updates[update + field] = entries[entry * ENTRY_WIDTH + field]
    else:
        updates[update + fields.PRODUCER_EPOCH] = -1
        updates[update + fields.COORDINATOR_EPOCH] = -1
        updates[update + fields.LAST_TIMESTAMP] = -1
        updates[update + fields.TXN_FIRST_OFFSET] = NONE
    return count


@device
def _check_sequence(producers: Any, entry: int, update: int, epoch: int, sequence: int) -> int:
    """Check the first sequence of a client's batch (`checkSequence`); returns the status."""
    entries, updates = words_at(producers.entries), words_at(producers.updates)
    entry_epoch = -1 if entry < 0 else entries[entry * ENTRY_WIDTH + fields.PRODUCER_EPOCH]
    entry_sequence = -1 if entry < 0 else newest_sequence(entries, entry)
    is_fresh = entry < 0 or entries[entry * ENTRY_WIDTH + fields.BATCH_COUNT] == 0
    if producers.supports_epoch_bump != 0 and sequence != 0 and is_fresh:
        return fold.FIRST_SEQUENCE_NOT_ZERO
    if sequence > producers.lowest_sequence:
        producers.detail = producers.lowest_sequence
        return fold.SEQUENCE_ABOVE_LOWEST
    current_epoch = updates[update * ENTRY_WIDTH + fields.PRODUCER_EPOCH]
    if epoch != current_epoch:
        producers.detail = current_epoch
        return fold.NEW_EPOCH_SEQUENCE if sequence != 0 and current_epoch != -1 else OK
    last = -1
    if updates[update * ENTRY_WIDTH + fields.BATCH_COUNT] != 0:
        last = newest_sequence(updates, update)
    elif epoch == entry_epoch:
        last = entry_sequence
    producers.detail = last
    follows = sequence == last + 1 or (sequence == 0 and last == SEQUENCE_MAX)
    return fold.SEQUENCE_GAP if entry_epoch != -1 and not follows else OK


@device
def work_data(columns: Any, capacity: int, row: int, producers: Any, entry: int, update: int) -> int:
    """Add a data batch to its producer's update (`appendDataBatch`); returns the status."""
    updates, started = words_at(producers.updates), words_at(producers.started)
    at = update * ENTRY_WIDTH
    epoch = columns[scan.PRODUCER_EPOCH * capacity + row]
    sequence = columns[scan.BASE_SEQUENCE * capacity + row]
    if epoch < updates[at + fields.PRODUCER_EPOCH] and producers.origin != fold.REPLICATION:
        producers.detail = updates[at + fields.PRODUCER_EPOCH]
        producers.second_detail = -1
        return fold.OLD_EPOCH
    if producers.origin == fold.CLIENT:
        status = _check_sequence(producers, entry, update, epoch, sequence)
        if status != OK:
            return status
    base_offset = columns[scan.BASE_OFFSET * capacity + row]
    delta = columns[scan.LAST_OFFSET_DELTA * capacity + row]
    last_sequence = NO_SEQUENCE if sequence == NO_SEQUENCE else increment_sequence(sequence, delta)
    timestamp = columns[scan.MAX_TIMESTAMP * capacity + row]
    add_batch(updates, update, epoch, last_sequence, add64(base_offset, delta), delta, timestamp)
    updates[at + fields.LAST_TIMESTAMP] = timestamp
    is_transactional = columns[scan.ATTRIBUTES * capacity + row] & TRANSACTIONAL_FLAG != 0
    if updates[at + fields.TXN_FIRST_OFFSET] != NONE:
        return OK if is_transactional else fold.NOT_TRANSACTIONAL
    if is_transactional:
        updates[at + fields.TXN_FIRST_OFFSET] = base_offset
        number = producers.started_count
        started[2 * number] = base_offset
        started[2 * number + 1] = updates[at + fields.PRODUCER_ID]
        producers.started_count = number + 1
    return OK


@device
def _has_marker_form(data: Any, position: int) -> bool:
    """Return whether the bytes between a marker's fields are those that Kafka writes."""
    return (
        data[position + marker.RECORD_LENGTH] == marker.RECORD_LENGTH_BYTE
        and be16(data, position + marker.DELTAS) == 0
        and data[position + marker.KEY_SIZE] == marker.KEY_SIZE_BYTE
        and be16(data, position + marker.KEY_VERSION) == 0
        and data[position + marker.VALUE_SIZE] == marker.VALUE_SIZE_BYTE
        and be16(data, position + marker.VALUE_VERSION) == 0
        and data[position + marker.HEADER_COUNT] == 0
    )


@device
def read_marker(data: Any, columns: Any, capacity: int, row: int, producers: Any) -> int:
    """Read a marker as Kafka writes it, one record of 17 bytes; returns MARKER_TO_READ for any other."""
    if producers.marker_row == row:
        return OK
    position = columns[scan.POSITION * capacity + row]
    if columns[scan.SIZE * capacity + row] != marker.MARKER_SIZE or columns[scan.RECORD_COUNT * capacity + row] != 1:
        return fold.MARKER_TO_READ
    attributes = columns[scan.ATTRIBUTES * capacity + row]
    kind = be16(data, position + marker.CONTROL_TYPE)
    if attributes & CODEC_MASK != 0 or kind < 0 or kind > 1 or not _has_marker_form(data, position):
        return fold.MARKER_TO_READ
    is_appended = attributes & LOG_APPEND_TIME_FLAG != 0
    producers.marker_type = kind
    producers.marker_coordinator_epoch = be32(data, position + marker.COORDINATOR_EPOCH)
    producers.marker_timestamp = columns[(scan.MAX_TIMESTAMP if is_appended else scan.BASE_TIMESTAMP) * capacity + row]
    return OK


@device
def work_marker(columns: Any, capacity: int, row: int, producers: Any, update: int) -> int:
    """Add the marker that was read to its producer's update (`appendEndTxnMarker`); returns the status."""
    updates, completed = words_at(producers.updates), words_at(producers.completed)
    at = update * ENTRY_WIDTH
    epoch = columns[scan.PRODUCER_EPOCH * capacity + row]
    is_checked = producers.origin != fold.REPLICATION
    version = producers.transaction_version
    if version == -1 and is_checked:
        return fold.NO_TRANSACTION_VERSION
    current = updates[at + fields.PRODUCER_EPOCH]
    is_open = updates[at + fields.TXN_FIRST_OFFSET] != NONE
    is_old = epoch <= current if version >= 2 else epoch < current  # version 2 increments the epoch (KIP-890)
    is_repeated = version >= 2 and epoch == current and (not is_open or epoch == 32767)
    if is_checked and is_old and not is_repeated:
        producers.detail = current
        producers.second_detail = max(version, 0)
        return fold.OLD_EPOCH
    if is_checked and updates[at + fields.COORDINATOR_EPOCH] > producers.marker_coordinator_epoch:
        producers.detail = updates[at + fields.COORDINATOR_EPOCH]
        producers.second_detail = producers.marker_coordinator_epoch
        return fold.OLD_COORDINATOR_EPOCH
    if is_open:
        number = producers.completed_count
        transaction = number * fold.COMPLETED_WIDTH
        completed[transaction + fold.COMPLETED_PRODUCER_ID] = updates[at + fields.PRODUCER_ID]
        completed[transaction + fold.COMPLETED_FIRST_OFFSET] = updates[at + fields.TXN_FIRST_OFFSET]
        completed[transaction + fold.COMPLETED_LAST_OFFSET] = columns[scan.BASE_OFFSET * capacity + row]
        completed[transaction + fold.COMPLETED_IS_ABORTED] = 1 if producers.marker_type == fold.ABORT else 0
        producers.completed_count = number + 1
    if epoch != current:
        updates[at + fields.PRODUCER_EPOCH] = epoch
        updates[at + fields.BATCH_COUNT] = 0
    updates[at + fields.COORDINATOR_EPOCH] = producers.marker_coordinator_epoch
    updates[at + fields.LAST_TIMESTAMP] = producers.marker_timestamp
    updates[at + fields.TXN_FIRST_OFFSET] = NONE
    return OK


@device
def check_before(columns: Any, capacity: int, row: int, producers: Any, entry: int) -> int:
    """Check a batch before it goes into an update (`analyzeAndValidateProducerState`); returns the status."""
    if producers.origin == fold.REPLICATION:
        return OK
    entries = words_at(producers.entries)
    epoch = columns[scan.PRODUCER_EPOCH * capacity + row]
    attributes = columns[scan.ATTRIBUTES * capacity + row]
    at = entry * ENTRY_WIDTH
    if producers.origin == fold.CLIENT and entry >= 0 and entries[at + fields.PRODUCER_EPOCH] == epoch:
        first = columns[scan.BASE_SEQUENCE * capacity + row]
        delta = columns[scan.LAST_OFFSET_DELTA * capacity + row]
        last = NO_SEQUENCE if first == NO_SEQUENCE else increment_sequence(first, delta)
        batch = find_batch(entries, entry, first, last)
        if batch >= 0:
            producers.detail = entries[batch + fields.LAST_OFFSET] - entries[batch + fields.OFFSET_DELTA]
            producers.second_detail = entries[batch + fields.LAST_OFFSET]
            producers.third_detail = entries[batch + fields.TIMESTAMP]
            return fold.DUPLICATE
    if attributes & TRANSACTIONAL_FLAG == 0:
        return OK
    if entry >= 0:
        if entries[at + fields.TXN_FIRST_OFFSET] != NONE and entries[at + fields.PRODUCER_EPOCH] == epoch:
            return OK
        if epoch < entries[at + fields.PRODUCER_EPOCH]:
            producers.detail = entries[at + fields.PRODUCER_EPOCH]
            return fold.SMALLER_EPOCH
    return fold.NOT_VERIFIED if producers.is_verified == 0 and attributes & CONTROL_FLAG == 0 else OK
