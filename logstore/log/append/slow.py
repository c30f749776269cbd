"""The slow path: `UnifiedLog.append` step by step, and the reference for the fast path.

The order of the steps shows in the files: epochs are noted and a segment may roll before a batch turns out to be a
duplicate, or is refused because of its producer.
"""

from __future__ import annotations

from ...columns.batch_table import Batches, BatchTable
from ...errors import UsageError
from ...folds import leader_epochs
from ...folds.producer_update import AppendOrigin, Duplicate, ProducerUpdate
from ...kernels.rules import RELATIVE_OFFSET_MAX
from ...kernels.scan import batches as fields
from ...layout.batch import NO_PRODUCER_ID, NO_TIMESTAMP
from ...model import TimestampType
from ..failure import APPEND_FAILURE_TEXT
from ..maintain.flush import flush
from ..maintain.roll import roll, should_roll
from ..state import LogState
from .analyze import NUMBERING, first_offset, require_room
from .request import AppendInfo, AppendRequest
from .rules import ValidationRules


def append_slowly(state: LogState, request: AppendRequest) -> AppendInfo:
    """Append a request under the log's lock; raise KafkaStorageError, or a LogstoreError if it is refused."""
    now_ms = state.host.now_ms()  # before the log's end is read: a clock that the caller passed may append
    batch = request.numbered(state, now_ms)
    if batch is None:
        return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, state.log_start_offset, 0, False)
    info = append_info(
        batch.table,
        origin=request.origin,
        log_end_offset=state.log_end_offset,
        log_start_offset=state.log_start_offset,
        rules=state.rules,
    )
    with state.failure.poisoned_by(APPEND_FAILURE_TEXT):
        state.open_active()  # first: it refuses where the process may open no more files
        update = _update(state, batch.table, request)
        try:
            duplicate = _prepare(state, batch, update, info, now_ms)
            if duplicate is None:
                _write(state, batch, update, info.last_offset + 1)
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


def append_info(
    table: BatchTable, *, origin: AppendOrigin, log_end_offset: int, log_start_offset: int, rules: ValidationRules
) -> AppendInfo:
    """Return the answer to the append of batches, as they are written."""
    is_numbered = origin in NUMBERING
    first = log_end_offset if is_numbered else first_offset(table)
    last = int(table.last_offset[-1]) if len(table) else first - 1
    max_timestamp = int(table.max_timestamp.max(initial=NO_TIMESTAMP))
    is_stamped = is_numbered and rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    log_append_time = max_timestamp if is_stamped else NO_TIMESTAMP
    return AppendInfo(first, last, max_timestamp, log_append_time, log_start_offset, last - log_end_offset + 1, False)


def _prepare(
    state: LogState, batch: Batches, update: ProducerUpdate | None, info: AppendInfo, now_ms: int
) -> Duplicate | None:
    """Do all that comes before the first byte is written; return the `Duplicate` if the batch is one."""
    table, size, end_offset = batch.table, batch.data.size, state.log_end_offset
    if not _is_of_latest_epoch(state, table):
        try:
            leader_epochs.step(state.epochs, table, 0, table.count)
        finally:  # as in Kafka, the epochs of the batches before a refused one stay
            if state.epochs.is_changed:
                state.write_epochs()
    require_room(size, state.rules)
    if should_roll(state, size, info.max_timestamp, info.last_offset, now_ms):
        roll(state, info.last_offset - RELATIVE_OFFSET_MAX if info.first_offset < 0 else info.first_offset)
    # checked here, as the clock and a sync by the roll may run code of the caller
    if state.log_end_offset != end_offset:
        raise UsageError(
            f"The log of {state.topic_partition} was appended to from inside of an append, by its clock or by a sync",
            advice="append from another thread",
        )
    return None if update is None else update.step(batch.data, table, 0, table.count)


def _write(state: LogState, batch: Batches, update: ProducerUpdate | None, end_offset: int) -> None:
    """Write the batch and count it; an exception in here poisons the log."""
    state.open_active().append(batch.data, batch.table)
    state.struct.log_end_offset = end_offset
    if update is None:
        state.producers.state.map_end_offset = end_offset
    else:
        state.active.add_aborted(update.commit(end_offset))
    state.follow_end()
    # last: an interrupt before it puts the state aside
    state.struct.unfinished_size = 0


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
