"""The slow path: `UnifiedLog.append` step by step, and the reference for the fast path.

The order of the steps shows in the files: epochs are noted and a segment may roll before a batch turns out to be a
duplicate, or is refused because of its producer.
"""

from __future__ import annotations

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
from ..state import LogState
from .analyze import require_room
from .request import AppendInfo, AppendRequest
from .validate import Validated


def append_slowly(state: LogState, request: AppendRequest) -> AppendInfo:
    """Append a request; the caller holds the log's lock.

    Raises:
        KafkaStorageError: the log cannot be written.
        LogstoreError: the request is refused.
    """
    now_ms = state.host.now_ms()  # before the log's end is read: a clock that the caller passed may append
    batch = request.numbered(state, now_ms)
    if batch is None:
        return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, state.log_start_offset, 0, False)
    info = AppendInfo(
        batch.first_offset,
        batch.last_offset,
        batch.max_timestamp,
        batch.log_append_time,
        state.log_start_offset,
        batch.last_offset - state.log_end_offset + 1,
        False,
    )
    with state.failure.poisoned_by(APPEND_FAILURE_TEXT):
        state.open_active()  # first: it refuses where the process may open no more files
        update = _update(state, batch.table, request)
        try:
            duplicate = _prepare(state, batch, update, state.log_end_offset, now_ms)
            if duplicate is None:
                _write(state, batch, update)
        except BaseException:
            # a step that failed half-way left prepared entries: the fast path would commit them with its next batch
            state.producers.state.buffers.discard()
            raise
        if duplicate is not None:
            return info._replace(
                first_offset=duplicate.first_offset,
                last_offset=duplicate.last_offset,
                log_append_time=duplicate.timestamp,
                record_count=0,
                is_duplicate=True,
            )
        if state.log_end_offset - state.recovery_point >= state.flush_message_count:
            flush(state)
    return info


def _prepare(
    state: LogState, batch: Validated, update: ProducerUpdate | None, end_offset: int, now_ms: int
) -> Duplicate | None:
    """Do all that comes before the first byte is written; return the `Duplicate` if the batch is one."""
    table, size = batch.table, batch.data.size
    if not _is_of_latest_epoch(state, table):
        try:
            leader_epochs.step(state.epochs, table, 0, table.count)
        finally:  # as in Kafka, the epochs of the batches before a refused one stay
            if state.epochs.is_changed:
                state.write_epochs()
    require_room(size, state.rules)
    if should_roll(state, size, batch.max_timestamp, batch.last_offset, now_ms):
        first_offset = batch.first_offset
        roll(state, batch.last_offset - RELATIVE_OFFSET_MAX if first_offset < 0 else first_offset)
    # checked here, as the clock and a sync by the roll may run code of the caller
    if state.log_end_offset != end_offset:
        raise UsageError(
            f"The log of {state.topic_partition} was appended to from inside of an append, by its clock or by a sync",
            advice="append from another thread",
        )
    return None if update is None else update.step(batch.data, table, 0, table.count)


def _write(state: LogState, batch: Validated, update: ProducerUpdate | None) -> None:
    """Write the batch and count it; an exception in here poisons the log."""
    end_offset = batch.last_offset + 1
    state.open_active().append(batch.data, batch.table)
    state.struct.log_end_offset = end_offset
    if update is None:
        state.producers.state.map_end_offset = end_offset
    else:
        _index_aborted(state, update.commit(end_offset))
    state.appended()


def _index_aborted(state: LogState, completed: CompletedTransactions) -> None:
    if len(completed) and completed.is_aborted.any():
        state.active.add_aborted(completed)


def _is_of_latest_epoch(state: LogState, table: BatchTable) -> bool:
    """Return whether this is one batch of the latest leader epoch, which needs no new entry."""
    entries = state.epochs.entries
    if table.count != 1 or not entries:
        return False
    epoch, start_offset = entries[-1]
    matrix = table.matrix
    return bool(matrix[fields.PARTITION_LEADER_EPOCH, 0] == epoch and matrix[fields.BASE_OFFSET, 0] >= start_offset)


def _update(state: LogState, table: BatchTable, request: AppendRequest) -> ProducerUpdate | None:
    """Begin a producer update for the batches; None if none has a producer id."""
    if not (table.producer_id > NO_PRODUCER_ID).any():
        return None
    return ProducerUpdate(
        state.producers.state,
        request.origin,
        transaction_version=request.transaction_version,
        guard=request.guard,
    )
