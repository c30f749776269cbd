"""The common begin and end of a transaction as quickly as what is between; the rest goes the long way (`append`).

Common is: a first batch whose producer has just been verified, no other waiting for that; a marker of a coordinator and
a producer that are not older than those known, into a segment that has room. It shares what is known of the log with
the quick way of records, so that they may alternate.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..folds.verification import VerificationGuard
from ..kernels import append_slots as slot
from ..kernels import producer_slots as producers
from ..kernels.append_marker import prepare_marker
from ..layout.batch import CONTROL_FLAG, NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from .append_info import AppendInfo
from .quick_append import CALL, QuickAppend

if TYPE_CHECKING:
    from .log_appends import LogAppends

_MARKER = struct.Struct(f"={producers.MARKER_TIMESTAMP - producers.ORIGIN + 1}q")
_MARKER_POSITION = 8 * producers.ORIGIN
_FLAGS = TRANSACTIONAL_FLAG | CONTROL_FLAG
_EPOCH_MAX = (1 << 15) - 1
_COORDINATOR_EPOCH_MAX = (1 << 31) - 1
_VERSION_MAX = 2
_NO_VERIFICATION = 0, 0, (1 << 31) - 1, 0, 0  # IS_SINGLE to MARKER_ROW


class QuickTransactions(QuickAppend):
    """The quick way of records, and beside them of what begins and ends transactions."""

    def __init__(self, log: LogAppends) -> None:
        super().__init__(log)
        self._is_marker_bound = self._is_suspended = False

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        leader_epoch: int,
    ) -> AppendInfo | None:
        """The answer, as of the long way; None if that has to be taken. The caller holds the log's lock.

        Raises:
            KafkaStorageError: the write failed.
        """
        log = self._log
        if log.change_count != self._known_change_count:
            self._bind()
        if not self._is_usable or leader_epoch != self._leader_epoch:
            return None
        if producer_id < 0 or not 0 <= producer_epoch <= _EPOCH_MAX:
            return None
        if not 0 <= coordinator_epoch <= _COORDINATOR_EPOCH_MAX or not 0 <= transaction_version <= _VERSION_MAX:
            return None
        if not self._is_marker_bound:
            self._bind_marker()
        now_ms, kind = log.now_ms(), producers.COMMIT if is_commit else producers.ABORT
        CALL.pack_into(self._call_slots, 0, 1, now_ms, producer_id, producer_epoch, NO_SEQUENCE, _FLAGS)
        marker = (*_NO_VERIFICATION, kind, coordinator_epoch, now_ms)
        _MARKER.pack_into(self._marker_slots, _MARKER_POSITION, producers.COORDINATOR, transaction_version, *marker)
        size = self._prepare_marker()
        if size == 0:
            return None
        try:
            self._write(self._bytes[:size])
        except BaseException as error:
            self._undo(error)
            raise
        end_offset = self._commit()
        self._take_completed(end_offset, is_commit)
        return self._count(end_offset, now_ms, now_ms if self._is_log_append_time else NO_TIMESTAMP, True)

    def append_verified(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | None,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        leader_epoch: int,
        guard: VerificationGuard,
    ) -> AppendInfo | None:
        """As `append`, of the first batch of a transaction, which shows its guard."""
        states = self._log.producers.state.verification
        verified = states.get(producer_id)
        if verified is None or verified.guard is not guard or len(states) > 1:
            return None
        if base_sequence > verified.lowest_sequence or (verified.supports_epoch_bump and base_sequence != 0):
            return None
        # as if nobody were being verified, and nobody had to be
        states.take(producer_id)
        info = None
        try:
            if self._log.change_count != self._known_change_count:
                self._bind()
            self._slots[slot.IS_VERIFIED] = 1
            self._is_usable, self._is_suspended = self._is_usable or self._is_suspended, False
            producer = (producer_id, producer_epoch, base_sequence, True)
            info = self.append(values, keys, timestamps, *producer, leader_epoch)
        finally:
            self._slots[slot.IS_VERIFIED] = not self._log.producers.state.requires_verification
            if info is None:
                states.put_back(producer_id, verified)
                self.suspend()
        return info

    def suspend(self) -> None:
        """A producer is being verified: nothing but its batch is quick until that is written."""
        self._is_suspended = self._is_suspended or self._is_usable
        self._is_usable = False

    def _take_completed(self, end_offset: int, is_commit: bool) -> None:
        """An aborted transaction goes to the `.txnindex`, before the log ends behind its marker."""
        counts = self._producer_counts
        if is_commit or not counts[producers.APPLIED_COUNT]:
            counts[producers.COMPLETED_COUNT] = counts[producers.APPLIED_COUNT] = 0
            return
        log = self._log
        try:
            log.active.add_aborted(log.producers.state.buffers.take_completed())
        except BaseException as error:
            log.log_end_offset = end_offset
            log.change_count += 1
            log.appending.__exit__(type(error), error, None)
            raise

    def _bind_marker(self) -> None:
        """Take over where producers and indexes are now."""
        indexes = self._log.active.indexes
        slots = self._log.producers.state.buffers.slots
        self._producer_counts, self._marker_slots = slots.data, slots.data.cast("B")
        arguments = (self._slots, self._out, self._columns, indexes.slots, *indexes.buffers, *self._producers[:9])
        self._prepare_marker = prepare_marker.bound(*arguments).run
        self._is_marker_bound = True

    def _bind(self) -> None:
        self._is_suspended = False
        super()._bind()

    def _set_arguments(self) -> None:
        super()._set_arguments()
        self._is_marker_bound = False
