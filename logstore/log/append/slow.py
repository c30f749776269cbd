"""The slow path: an append step by step as `UnifiedLog.append` does it, which is the reference of the fast one.

The order is part of what a log is: epochs are noted and a segment may roll before a batch turns out to be a repetition,
or is refused for its producer's sake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...columns.batch_table import BatchTable
from ...errors import UsageError
from ...folds import leader_epochs
from ...folds.open_transactions import CompletedTransactions
from ...folds.producer_update import Duplicate, ProducerUpdate
from ...kernels.rules import RELATIVE_OFFSET_MAX
from ...kernels.scan import batches as fields
from ...layout.batch import NO_PRODUCER_ID, NO_TIMESTAMP
from ..maintain.flush import flush
from ..maintain.roll import roll, should_roll
from .analyze import require_room
from .request import AppendInfo, AppendRequest
from .validate import Validated

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


class SlowPath:
    """Appends to one log whatever is to be appended."""

    __slots__ = ("_log",)

    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    def append(self, request: AppendRequest) -> AppendInfo:
        """See `Appender.append`."""
        log = self._log
        now_ms = log.now_ms()  # before the log's end is read: a clock of the caller's may append
        batch = request.numbered(log, now_ms)
        if batch is None:
            return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, log.log_start_offset, 0, False)
        info = AppendInfo(
            batch.first_offset,
            batch.last_offset,
            batch.max_timestamp,
            batch.log_append_time,
            log.log_start_offset,
            batch.last_offset - log.log_end_offset + 1,
            False,
        )
        with log.failure.poisoned_by("Error while appending records to"):
            update = self._update(batch.table, request)
            try:
                duplicate = self._prepare(batch, update, log.log_end_offset, now_ms)
                if duplicate is None:
                    self._write(batch, update)
            except BaseException:
                log.producers.state.buffers.discard()
                raise
            if duplicate is not None:
                return info._replace(
                    first_offset=duplicate.first_offset,
                    last_offset=duplicate.last_offset,
                    log_append_time=duplicate.timestamp,
                    record_count=0,
                    is_duplicate=True,
                )
            if log.log_end_offset - log.recovery_point >= log.flush_message_count:
                flush(log)
        return info

    def _prepare(
        self, batch: Validated, update: ProducerUpdate | None, end_offset: int, now_ms: int
    ) -> Duplicate | None:
        """All that comes before the first byte is written; `Duplicate` if none is to be."""
        log, table, size = self._log, batch.table, batch.data.size
        if not self._is_of_latest_epoch(table):
            try:
                leader_epochs.step(log.epochs, table, 0, table.count)
            finally:  # the epochs of the batches before one that is refused stay
                if log.epochs.is_changed:
                    log.write_epochs()
        require_room(size, log.rules)
        if should_roll(log, size, batch.max_timestamp, batch.last_offset, now_ms):
            first_offset = batch.first_offset
            roll(log, batch.last_offset - RELATIVE_OFFSET_MAX if first_offset < 0 else first_offset)
        if log.log_end_offset != end_offset:
            raise UsageError(
                f"The log of {log.topic_partition} was appended to from inside of an append, by its clock or by a sync",
                advice="append from another thread",
            )
        return None if update is None else update.step(batch.data, table, 0, table.count)

    def _write(self, batch: Validated, update: ProducerUpdate | None) -> None:
        """Write the batch and let it count; an exception on the way ends the writing."""
        log, end_offset = self._log, batch.last_offset + 1
        log.active.append(batch.data, batch.table)
        log.offsets.written(end_offset)
        if update is None:
            log.producers.state.map_end_offset = end_offset
        else:
            self._index_aborted(update.commit(end_offset))
        log.offsets.appended()

    def _index_aborted(self, completed: CompletedTransactions) -> None:
        if len(completed) and completed.is_aborted.any():
            self._log.active.add_aborted(completed)

    def _is_of_latest_epoch(self, table: BatchTable) -> bool:
        """Whether this is one batch of the leader that wrote last, which the epochs know already."""
        entries = self._log.epochs.entries
        if table.count != 1 or not entries:
            return False
        epoch, start_offset = entries[-1]
        matrix = table.matrix
        return bool(matrix[fields.PARTITION_LEADER_EPOCH, 0] == epoch and matrix[fields.BASE_OFFSET, 0] >= start_offset)

    def _update(self, table: BatchTable, request: AppendRequest) -> ProducerUpdate | None:
        """Begin a group for the batches; None if none has a producer."""
        if not (table.producer_id > NO_PRODUCER_ID).any():
            return None
        return ProducerUpdate(
            self._log.producers.state,
            request.origin,
            transaction_version=request.transaction_version,
            guard=request.guard,
        )
