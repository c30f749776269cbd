"""The common append in one kernel call, the write included; everything else goes the long way (`append`).

Common is: a client's batch, or records without headers that are given as lists for a topic that stores them
uncompressed, by a producer whose sequence follows on its last, into a segment that has room. Then a batch of one record
takes a few microseconds. Both ways do the same to the byte; a test holds them to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ..columns.batch_table import Int64Array
from ..kernels import append_slots as slot
from ..kernels import scan as fields
from ..kernels.append_records import commit_append, prepare_append, prepare_placed
from ..layout.batch import NO_TIMESTAMP, TRANSACTIONAL_FLAG
from ..model import Codec, TimestampType
from .append_info import AppendInfo
from .append_request import RequestRows
from .flush import flush
from .watermarks import refresh_first_unstable_offset, update_high_watermark

if TYPE_CHECKING:
    from .log_appends import LogAppends
    from .validate import Validated

_OUT_SIZE_MAX = 1 << 21  # bytes; a larger batch goes the long way
_ENTRY_ROOM = 1024  # index entries until the long way makes more room
CALL = struct.Struct(f"={slot.CALL_SLOT_COUNT}q")
_DATA, _ROWS = 0, 1  # arguments of `prepare_append`
_NO_DATA = np.zeros(1, np.uint8)
_info = partial(tuple.__new__, AppendInfo)  # of a tuple of its fields: half the time of `AppendInfo`


class QuickAppend:
    """The quick way into one log; it finds out by itself when the log was changed in another way."""

    def __init__(self, log: LogAppends) -> None:
        self._log = log
        self._slots = np.zeros(slot.SLOT_COUNT, np.int64)
        self._call_slots = self._slots.data.cast("B")
        self._columns = np.zeros((fields.COLUMN_COUNT, 1), np.int64)
        self._row = self._columns.reshape(-1).data
        self._out = np.empty(min(log.rules.max_message_bytes, _OUT_SIZE_MAX), np.uint8)  # memory once it is written to
        self._bytes = self._out.data
        self._slots[slot.OUT_CAPACITY] = self._out.size
        self._request = RequestRows()
        self._rows = self._request.rows
        self._known_change_count = -1
        self._is_usable = self._is_plain = self._is_unstable_known = False
        self._leader_epoch = -1

    def append(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | None,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        is_transactional: bool,
        leader_epoch: int,
    ) -> AppendInfo | None:
        """The answer, as of the long way; None if that has to be taken. The caller holds the log's lock.

        Raises:
            KafkaStorageError: the write failed.
        """
        log = self._log
        try:
            producer_id, producer_epoch, base_sequence = index(producer_id), index(producer_epoch), index(base_sequence)
            leader_epoch, is_transactional = index(leader_epoch), bool(is_transactional)
        except TypeError:
            return None
        if log.change_count != self._known_change_count:
            self._bind()
        if not self._is_usable or not self._is_plain:
            return None
        now_ms = log.now_ms()
        if log.change_count != self._known_change_count:  # a clock of the caller's may roll the log
            return None
        producer = (producer_id, producer_epoch, base_sequence, TRANSACTIONAL_FLAG if is_transactional else 0)
        if leader_epoch != self._leader_epoch or not self._take(values, keys, timestamps, now_ms, producer):
            return None
        size, end_offset = 0, log.log_end_offset
        try:
            size = self._prepare()
            if size == 0:
                return None
            return self._answer(self._finish(size) if size > 0 else size, now_ms, is_transactional)
        except BaseException as error:
            self._settle_interrupted(error, size, end_offset)
            raise

    def _take(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | None,
        now_ms: int,
        producer: tuple[int, int, int, int],
    ) -> bool:
        """Put the call where the kernel finds it; False if it is not for the quick way."""
        data = self._request.take(values, keys, timestamps, now_ms)
        if data is None:
            return False
        try:
            CALL.pack_into(self._call_slots, 0, self._request.count, now_ms, *producer)
        except struct.error:  # no ints of 64 bits
            return False
        self._arguments.set(_DATA, data)
        if self._rows is not self._request.rows:
            self._rows = self._request.rows
            self._arguments.set(_ROWS, self._rows)
        return True

    def _settle_interrupted(self, error: BaseException, size: int, end_offset: int) -> None:
        """Make the log what the kernel's struct says after an exception, Ctrl-C too, came between the two.

        A batch that the kernel committed counts, and only its answer is lost; one of `size` bytes that is prepared
        and not committed ends the writing.

        Args:
            end_offset: of the log before the append.
        """
        log, active = self._log, self._active
        committed_end_offset = int(self._slots[slot.LOG_END_OFFSET])
        if committed_end_offset > end_offset:
            active.size = int(self._slots[slot.SEGMENT_SIZE])
            active.is_timestamp_known = True
            log.log_end_offset = committed_end_offset
            log.change_count += 1
            refresh_first_unstable_offset(log)
            if log.is_only_replica:
                update_high_watermark(log, committed_end_offset)
        elif size > 0 and log.failure is None:
            self._undo(error)

    def _answer(self, size: int, now_ms: int, is_transactional: bool) -> AppendInfo:
        """The batch counts for the kernels; minus `size` bytes of it do not for the segment yet."""
        log, row, active = self._log, self._row, self._active
        active.size -= size
        active.is_timestamp_known = True
        end_offset = log.log_end_offset + row[fields.LAST_OFFSET_DELTA] + 1  # the list may be another by now
        log_append_time = now_ms if self._is_log_append_time else NO_TIMESTAMP
        return self._count(end_offset, row[fields.MAX_TIMESTAMP], log_append_time, is_transactional)

    def _finish(self, size: int) -> int:
        """Write what the system did not take of a batch of this size, and let it count; minus what it took."""
        written_size = int(self._slots[slot.WRITTEN_SIZE])
        try:
            self._write(self._bytes[written_size:size])
        except BaseException as error:
            self._undo(error)
            raise
        self._commit()
        return -written_size

    def append_placed(self, batch: Validated) -> AppendInfo | None:
        """As `append`, of a client's batch that is validated; its arrays are those of all that are."""
        if self._log.change_count != self._known_change_count:
            self._bind()
        if not self._is_usable:
            return None
        if batch.table.matrix is not self._placed_matrix:
            self._bind_placed(batch.table.matrix)
        self._slots[slot.NOW_MS] = self._log.now_ms()
        size, end_offset = 0, self._log.log_end_offset
        try:
            size = self._prepare_placed()
            if size == 0:
                return None
            self._write(batch.data.data)
            is_transactional = self._placed_row[fields.ATTRIBUTES] & TRANSACTIONAL_FLAG != 0
            return self._count(self._commit_placed(), batch.max_timestamp, batch.log_append_time, is_transactional)
        except BaseException as error:
            self._settle_interrupted(error, size, end_offset)
            raise

    def _undo(self, error: BaseException) -> None:
        """The write failed: the log is not written any more, and nothing of the batch counts."""
        log = self._log
        log.active.indexes.slots[:] = self._slots[slot.SAVED_INDEX_SLOTS : slot.WRITTEN_SIZE]
        log.producers.state.buffers.discard()
        log.change_count += 1
        log.appending.__exit__(type(error), error, None)

    def _count(self, end_offset: int, max_timestamp: int, log_append_time: int, is_transactional: bool) -> AppendInfo:
        """The batch is written, and the log ends behind it."""
        log = self._log
        first_offset = log.log_end_offset
        log.log_end_offset = end_offset
        if is_transactional or not self._is_unstable_known:
            self._is_unstable_known = True
            refresh_first_unstable_offset(log)
        if log.is_only_replica:
            if log.first_unstable_offset is None:
                log.high_watermark = end_offset
            else:
                update_high_watermark(log, end_offset)
        if end_offset - log.recovery_point >= log.flush_message_count:
            with log.appending:
                flush(log)
        return _info(
            (
                first_offset,
                end_offset - 1,
                max_timestamp,
                log_append_time,
                log.log_start_offset,
                end_offset - first_offset,
                False,
            )
        )

    def _bind(self) -> None:
        """Take over how the log is now."""
        log = self._log
        change_count = log.change_count
        self._known_change_count = -1  # until all is taken over: an exception on the way leaves nothing half bound
        self._is_usable = self._is_unstable_known = False
        self._is_log_append_time = log.rules.timestamp_type is TimestampType.LOG_APPEND_TIME
        # a batch that was refused may have left an epoch that begins behind the log's end
        is_known = bool(log.epochs.entries) and log.epochs.entries[-1][1] <= log.log_end_offset
        self._leader_epoch = log.epochs.entries[-1][0] if is_known else -1
        self._is_plain = log.rules.target_codec(Codec.NONE) is Codec.NONE
        is_usable = log.is_writable and self._leader_epoch >= 0 and not len(log.producers.state.verification)
        if is_usable:
            self._set_slots()
            self._set_arguments()
        self._is_usable = is_usable
        self._known_change_count = change_count

    def _set_slots(self) -> None:
        log, rules, active, slots = self._log, self._log.rules, self._log.active, self._slots
        slots[slot.BATCH_SIZE_MAX] = rules.max_message_bytes
        slots[slot.NEEDS_KEYS] = rules.is_compacted
        slots[slot.IS_LOG_APPEND_TIME] = self._is_log_append_time
        slots[slot.TIMESTAMP_BEFORE_MAX_MS] = rules.timestamp_before_max_ms
        slots[slot.TIMESTAMP_AFTER_MAX_MS] = rules.timestamp_after_max_ms
        slots[slot.IS_VERIFIED] = not log.producers.state.requires_verification
        slots[slot.LOG_END_OFFSET] = log.log_end_offset
        slots[slot.LEADER_EPOCH] = self._leader_epoch
        slots[slot.SEGMENT_SIZE] = active.size
        slots[slot.SEGMENT_SIZE_MAX] = min(rules.segment_size_max, active.space.end)
        first_timestamp = active.first_batch_timestamp
        slots[slot.FIRST_TIMESTAMP] = NO_TIMESTAMP if first_timestamp is None else first_timestamp
        slots[slot.AGE_MAX_MS] = log.segment_ms_max - active.roll_jitter_ms
        slots[slot.CREATED_MS] = active.created_ms

    def _set_arguments(self) -> None:
        self._log.active.indexes.reserve(_ENTRY_ROOM)
        offset_entries, time_entries = self._log.active.indexes.buffers
        producers = self._log.producers.state.buffers.arguments
        self._slots[slot.OFFSET_ENTRY_ROOM] = len(offset_entries)
        self._slots[slot.TIME_ENTRY_ROOM] = len(time_entries)
        self._producers = producers
        self._placed_matrix: Any = None
        self._active = self._log.active
        self._arguments = prepare_append.bound(
            _NO_DATA,
            self._rows,
            self._slots,
            self._active.file,
            self._out,
            self._columns,
            self._active.indexes.slots,
            offset_entries,
            time_entries,
            *producers,
        )
        self._prepare = self._arguments.run
        self._commit = commit_append.bound(self._slots, self._columns, *producers).run
        self._write = self._active.write

    def _bind_placed(self, matrix: Int64Array) -> None:
        """Take over where validated batches have their row."""
        indexes = self._log.active.indexes
        arguments = (self._slots, self._out, matrix, indexes.slots, *indexes.buffers, *self._producers[:8])
        self._prepare_placed = prepare_placed.bound(*arguments).run
        self._commit_placed = commit_append.bound(self._slots, matrix, *self._producers).run
        self._placed_matrix, self._placed_row = matrix, matrix.reshape(-1).data
