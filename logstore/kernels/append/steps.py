"""Appends a batch as a leader in one call: checks it, writes it, then makes all changes, or none.

The slow path, `log.append.slow`, does the same step by step and has the messages: it takes whatever is unusual, as a
refused record, a full segment or a sequence that does not follow. Before the write only scratch buffers and updates of
producers change, so that nothing has to be undone.
"""

from __future__ import annotations

from typing import Any

from ...layout.batch import CONTROL_FLAG, HEADER_SIZE, NO_PRODUCER_ID, NO_TIMESTAMP
from ...native.device import device
from ...native.kernel import kernel
from ...native.structs import bytes_at, call_write, words_at
from ..encode.batches import put_header
from ..encode.fields import put_be64
from ..fold.indexes import IndexStruct, fold_index_rows, last_entry_field
from ..fold.producer_struct import CLIENT, COMPLETED_FIRST_OFFSET, COMPLETED_IS_ABORTED, OK, ProducerStruct
from ..fold.producers import apply_transactions, apply_update, clear_updates, has_room, work_row
from ..fold.transactions import DECIDED, first_unstable, ongoing_position
from ..rules import has_segment_room, waited_ms
from ..scan import batches as scan
from . import structs as kinds
from .records import put_batch_header, put_marker, put_records
from .structs import NO_OFFSET, NOT_FOR_FAST_PATH, FastPathStruct, LogStruct, RequestStruct
from .validation import validated_size


@device
def _place_built(log: Any, fast: Any, request: Any) -> int:
    """Set a built batch's base offset to the log's end; returns its size, 0 if it is for the slow path."""
    row = words_at(fast.row)
    if row[scan.PARTITION_LEADER_EPOCH] != request.leader_epoch or row[scan.ATTRIBUTES] & CONTROL_FLAG != 0:
        return 0
    if row[scan.BASE_OFFSET] != log.log_end_offset:  # earlier batches of the request were duplicates
        row[scan.BASE_OFFSET] = log.log_end_offset
        put_be64(bytes_at(request.built), 0, log.log_end_offset)
    return request.size


@device
def _make_batch(log: Any, fast: Any, request: Any, data: Any) -> int:
    """Make the request's batch, with its row, for the log's end; returns its size, 0 if it is for the slow path."""
    if request.kind == kinds.RECORDS or request.kind == kinds.TO_COMPRESS or request.kind == kinds.MARKER:
        size = put_marker(fast, request, data) if request.kind == kinds.MARKER else put_records(fast, request, data)
        return put_batch_header(log, fast, request, size) if size > HEADER_SIZE else 0
    if request.kind == kinds.COMPRESSED:
        return put_header(bytes_at(fast.out), 0, request.size, words_at(fast.row), 1, 0)
    if request.kind == kinds.BUILT:
        return _place_built(log, fast, request)
    return validated_size(log, fast, request) if request.kind == kinds.BATCH else 0


@device
def _has_segment_room(log: Any, fast: Any, request: Any, indexes: Any, size: int) -> bool:
    """Return whether the active segment and its indexes have room for the batch."""
    row = words_at(fast.row)
    last_offset = log.log_end_offset + row[scan.LAST_OFFSET_DELTA]
    waited = waited_ms(log.first_timestamp, row[scan.MAX_TIMESTAMP], fast.segment_created_ms, request.now_ms)
    timestamp_offset = indexes.largest_timestamp_offset
    if row[scan.MAX_TIMESTAMP] > indexes.largest_timestamp:
        timestamp_offset = last_offset
    offset_count, time_count = indexes.offset_entry_count, indexes.time_entry_count
    limits = fast.segment_size_max, waited, fast.segment_age_max_ms, last_offset - indexes.base_offset
    return (
        has_segment_room(log.segment_size, size, *limits)
        and offset_count < min(indexes.offset_entry_count_max, indexes.offset_entry_room)
        and time_count < min(indexes.time_entry_count_max - 1, indexes.time_entry_room)
        and last_offset > last_entry_field(words_at(indexes.offset_entries), offset_count, 0, last_offset - 1)
        and timestamp_offset >= last_entry_field(words_at(indexes.time_entries), time_count, 1, timestamp_offset)
    )


@device
def _is_stable_known(log: Any, producers: Any) -> bool:
    """Return whether the first unstable offset is a batch's: below the log start the slow path looks for the batch."""
    first = first_unstable(producers)
    return first == NO_OFFSET or first >= log.log_start_offset


@device
def _ends_open_transaction(producers: Any) -> bool:
    """Return whether the marker ends no transaction, or commits an open one; an abort needs a `.txnindex` entry."""
    if producers.completed_count == 0:
        return True
    completed, ongoing = words_at(producers.completed), words_at(producers.ongoing)
    first_offset = completed[COMPLETED_FIRST_OFFSET]
    position = ongoing_position(producers, first_offset)
    return (
        completed[COMPLETED_IS_ABORTED] == 0
        and position < producers.ongoing_end
        and ongoing[2 * position] == first_offset
        and ongoing[2 * position + 1] != DECIDED
    )


@device
def _forget_group(producers: Any) -> int:
    """Clear updates and transactions of batches that were not written."""
    clear_updates(producers)
    producers.started_count = 0
    producers.completed_count = 0
    producers.applied_count = 0
    return OK


@device
def _work_producer(fast: Any, request: Any, producers: Any) -> bool:
    """Add the batch to its producer's update; False if it is refused or a duplicate."""
    row = words_at(fast.row)
    if row[scan.PRODUCER_ID] <= NO_PRODUCER_ID:
        return True
    if row[scan.BASE_SEQUENCE] < 0 and request.origin == CLIENT:
        return False
    if not has_room(producers):
        return False
    producers.origin = request.origin
    producers.transaction_version = request.transaction_version
    producers.is_single = 0
    producers.is_verified = request.is_verified
    producers.lowest_sequence = request.lowest_sequence
    producers.supports_epoch_bump = request.supports_epoch_bump
    producers.marker_row = 0 if request.kind == kinds.MARKER else -1
    producers.marker_type = request.marker_type
    producers.marker_coordinator_epoch = request.coordinator_epoch
    producers.marker_timestamp = request.now_ms
    status = work_row(bytes_at(fast.out), row, 1, 0, producers)
    producers.marker_row = -1
    return status == OK and _ends_open_transaction(producers)


@device
def _answer(log: Any, fast: Any, request: Any, end_offset: int) -> int:
    row = words_at(fast.row)
    request.first_offset = log.log_end_offset
    request.last_offset = end_offset - 1
    request.max_timestamp = row[scan.MAX_TIMESTAMP]
    request.log_append_time = row[scan.MAX_TIMESTAMP] if fast.is_log_append_time != 0 else NO_TIMESTAMP
    request.start_offset = log.log_start_offset
    request.offset_count = end_offset - log.log_end_offset
    return OK


@device
def _commit(log: Any, fast: Any, request: Any, producers: Any, indexes: Any) -> int:
    """Update the log's state for the batch that was written. Returns the status."""
    row = words_at(fast.row)
    end_offset = log.log_end_offset + row[scan.LAST_OFFSET_DELTA] + 1
    _answer(log, fast, request, end_offset)
    if row[scan.PRODUCER_ID] > NO_PRODUCER_ID:
        apply_update(0, producers)
        apply_transactions(producers)
        _forget_group(producers)
    producers.map_end_offset = end_offset
    fold_index_rows(row, 1, 0, 1, indexes)
    if log.segment_size == 0:
        log.first_timestamp = row[scan.MAX_TIMESTAMP]
    log.segment_size += row[scan.SIZE]
    log.is_timestamp_known = 1
    log.log_end_offset = end_offset
    log.first_unstable_offset = first_unstable(producers)
    # readers of both offsets hold the log's lock, as the caller does (`Offsets.last_stable_offset`): any order will do
    log.high_watermark = end_offset
    log.unfinished_size = 0
    return kinds.FLUSH_IS_DUE if end_offset - log.recovery_point >= fast.flush_message_count else kinds.APPENDED


@kernel(LogStruct, FastPathStruct, RequestStruct, ProducerStruct, IndexStruct, "u8*", waits=True)
def append_request(log: Any, fast: Any, request: Any, producers: Any, indexes: Any, data: Any) -> int:
    """Append the request's batch. Returns a status of `structs`.

    data: for RECORDS and a MARKER, see `put_records` and `put_marker`. The caller holds the log's lock.
    """
    if (
        fast.is_bound == 0
        or log.unfinished_size != 0
        or request.log_end_offset != log.log_end_offset
        or request.leader_epoch != fast.leader_epoch
    ):
        return NOT_FOR_FAST_PATH
    size = _make_batch(log, fast, request, data)
    if request.kind == kinds.TO_COMPRESS and size != 0:
        return kinds.COMPRESSION_IS_DUE
    if size == 0 or not _has_segment_room(log, fast, request, indexes, size) or not _is_stable_known(log, producers):
        return NOT_FOR_FAST_PATH
    row = words_at(fast.row)
    row[scan.POSITION] = 0  # position in `out`, where a marker is read
    _forget_group(producers)
    if not _work_producer(fast, request, producers):
        _forget_group(producers)
        return NOT_FOR_FAST_PATH
    row[scan.POSITION] = log.segment_size
    log.unfinished_size = size  # before the write: an interrupt in it must not leave bytes that the log does not know
    batch = bytes_at(fast.out)
    if request.kind == kinds.BUILT:
        batch = bytes_at(request.built)
    written_size = call_write(fast.write_address, fast.descriptor, batch, size)
    if written_size != size:
        request.written_size = max(written_size, 0)
        return kinds.UNFINISHED
    return _commit(log, fast, request, producers, indexes)


@kernel(LogStruct, FastPathStruct, RequestStruct, ProducerStruct, IndexStruct)
def finish_append(log: Any, fast: Any, request: Any, producers: Any, indexes: Any) -> int:
    """Update the log's state for an UNFINISHED batch whose rest was written. Returns a status of `structs`."""
    if log.unfinished_size == 0:
        return NOT_FOR_FAST_PATH
    return _commit(log, fast, request, producers, indexes)
