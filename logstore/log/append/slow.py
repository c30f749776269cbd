"""The slow path: `UnifiedLog.append` step by step, and the reference for the fast path.

The order of the steps shows in the files: epochs are noted and a segment may roll before a batch turns out to be a
duplicate, or is refused because of its producer.
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
from ..failure import APPEND_FAILURE_TEXT
from ..maintain.flush import flush
from ..maintain.roll import roll, should_roll
from .analyze import require_room
from .request import AppendInfo, AppendRequest
from .validate import Validated

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


class SlowPath:
    """Appends any request to one log."""

    __slots__ = ("_log",)

    def __init__(self, log: PartitionLog) -> None:
        self._log = log

    def append(self, request: AppendRequest) -> AppendInfo:
        """See `Appender.append`."""
        log = self._log
        now_ms = log.now_ms()  # before the log's end is read: a clock that the caller passed may append
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
        with log.failure.poisoned_by(APPEND_FAILURE_TEXT):
            update = self._update(batch.table, request)
            try:
                duplicate = self._prepare(batch, update, log.log_end_offset, now_ms)
                if duplicate is None:
                    self._write(batch, update)
            except BaseException:
                # a step that failed half-way left prepared entries: the fast path would commit them with its next batch
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
        """Do all that comes before the first byte is written; return the `Duplicate` if the batch is one."""
        log, table, size = self._log, batch.table, batch.data.size
        if not self._is_of_latest_epoch(table):
            try:
                leader_epochs.step(log.epochs, table, 0, table.count)
            finally:  # as in Kafka, the epochs of the batches before a refused one stay
                if log.epochs.is_changed:
                    log.write_epochs()
        require_room(size, log.rules)
        if should_roll(log, size, batch.max_timestamp, batch.last_offset, now_ms):
            first_offset = batch.first_offset
            roll(log, batch.last_offset - RELATIVE_OFFSET_MAX if first_offset < 0 else first_offset)
        # checked here, as the clock and a sync by the roll may run code of the caller
        if log.log_end_offset != end_offset:
            raise UsageError(
                f"The log of {log.topic_partition} was appended to from inside of an append, by its clock or by a sync",
                advice="append from another thread",
            )
        return None if update is None else update.step(batch.data, table, 0, table.count)

    def _write(self, batch: Validated, update: ProducerUpdate | None) -> None:
        """Write the batch and count it; an exception in here poisons the log."""
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
        """Return whether this is one batch of the latest leader epoch, which needs no new entry."""
        entries = self._log.epochs.entries
        if table.count != 1 or not entries:
            return False
        epoch, start_offset = entries[-1]
        matrix = table.matrix
        return bool(matrix[fields.PARTITION_LEADER_EPOCH, 0] == epoch and matrix[fields.BASE_OFFSET, 0] >= start_offset)

    def _update(self, table: BatchTable, request: AppendRequest) -> ProducerUpdate | None:
        """Begin a producer update for the batches; None if none has a producer id."""
        if not (table.producer_id > NO_PRODUCER_ID).any():
            return None
        return ProducerUpdate(
            self._log.producers.state,
            request.origin,
            transaction_version=request.transaction_version,
            guard=request.guard,
        )
