"""Appends to a running log, step by step as `UnifiedLog.append` does them.

The order is part of what a log is: epochs are noted and a segment may roll before a batch turns out to be a repetition,
or is refused for its producer's sake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..columns.batch_table import BatchTable, ByteArray
from ..folds import leader_epochs
from ..folds.open_transactions import CompletedTransactions
from ..folds.producer_update import AppendOrigin, Duplicate, ProducerUpdate
from ..folds.verification import VerificationGuard
from ..kernels import scan as fields
from ..layout.batch import NO_PRODUCER_ID, NO_TIMESTAMP
from .analyze import Analyzed, analyze, require_continuation, require_room
from .append_info import AppendInfo
from .flush import flush
from .roll import roll, should_roll
from .segment import RELATIVE_OFFSET_MAX
from .watermarks import refresh_first_unstable_offset, update_high_watermark

if TYPE_CHECKING:
    from .log_appends import LogAppends
    from .log_state import LogState
    from .validate import Validated


def append(
    log: LogAppends,
    data: ByteArray,
    *,
    leader_epoch: int,
    origin: AppendOrigin,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> AppendInfo:
    """Check what is to be appended, and write it; see `PartitionLog.append_as_leader` and `append_as_follower`."""
    if origin in (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR):
        return _append_without_offsets(log, data, leader_epoch, origin, guard, transaction_version)
    analyzed = analyze(data, origin=origin, leader_epoch=leader_epoch, rules=log.rules)
    if analyzed.valid_size <= 0:
        return _nothing(log)
    with log.lock, log.appending:
        info = _placed_info(log, data, analyzed)
        update = _update(log, analyzed.table, origin, guard, transaction_version)
        return append_placed(log, data[: analyzed.valid_size], analyzed.table, info, update)


def _append_without_offsets(
    log: LogAppends,
    data: ByteArray,
    leader_epoch: int,
    origin: AppendOrigin,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> AppendInfo:
    """Append a batch of a client or a coordinator: a leader gives it its offsets."""
    with log.lock:
        now_ms = log.now_ms()  # before the log's end is read: a clock of the caller's may append
        validated = log.validator.validate(
            data, origin=origin, base_offset=log.log_end_offset, leader_epoch=leader_epoch, now_ms=now_ms
        )
        return (
            _nothing(log) if validated is None else append_validated(log, validated, origin, guard, transaction_version)
        )


def append_validated(
    log: LogAppends,
    batch: Validated,
    origin: AppendOrigin,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> AppendInfo:
    """Write a batch that has its offsets and the leader's epoch, the quick way if that is open to it.

    The caller holds the log's lock.
    """
    quick_info = log.quick.append_placed(batch) if origin is AppendOrigin.CLIENT and guard is None else None
    if quick_info is not None:
        return quick_info
    first_offset, last_offset = batch.first_offset, batch.last_offset
    info = AppendInfo(
        first_offset,
        last_offset,
        batch.max_timestamp,
        batch.log_append_time,
        log.log_start_offset,
        last_offset - first_offset + 1,
        False,
    )
    with log.appending:
        update = _update(log, batch.table, origin, guard, transaction_version)
        return append_placed(log, batch.data, batch.table, info, update)


def append_placed(
    log: LogState, data: ByteArray, table: BatchTable, info: AppendInfo, update: ProducerUpdate | None
) -> AppendInfo:
    """Write batches that have their offsets, and are sound, unless their producers have written them before.

    Args:
        data: uint8[n], the batches and nothing else.
        table: of `data`; its positions become those in the segment.
        info: the answer, if they are written.
        update: begun for them; None if no batch has a producer.
    """
    duplicate = _prepare(log, data, table, info, update)
    if duplicate is not None:
        _follow(log)
        return info._replace(
            first_offset=duplicate.first_offset,
            last_offset=duplicate.last_offset,
            log_append_time=duplicate.timestamp,
            record_count=0,
            is_duplicate=True,
        )
    _write(log, data, table, info, update)
    return info


def _nothing(log: LogState) -> AppendInfo:
    """The answer to an append without a whole batch."""
    return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, log.log_start_offset, 0, False)


def _placed_info(log: LogState, data: ByteArray, analyzed: Analyzed) -> AppendInfo:
    """The answer to batches that bring their offsets, which must continue the log."""
    require_continuation(
        data,
        analyzed,
        log_end_offset=log.log_end_offset,
        log_start_offset=log.log_start_offset,
        rules=log.rules,
    )
    return AppendInfo(
        analyzed.first_offset,
        analyzed.last_offset,
        analyzed.max_timestamp,
        NO_TIMESTAMP,
        log.log_start_offset,
        analyzed.last_offset - log.log_end_offset + 1,
        False,
    )


def _prepare(
    log: LogState, data: ByteArray, table: BatchTable, info: AppendInfo, update: ProducerUpdate | None
) -> Duplicate | None:
    """All that comes before the first byte is written; `Duplicate` if none is to be."""
    if not _is_of_latest_epoch(log, table):
        try:
            leader_epochs.step(log.epochs, table, 0, table.count)
        finally:  # the epochs of the batches before one that is refused stay
            if log.epochs.is_changed:
                log.write_epochs()
    require_room(data.size, log.rules)
    if should_roll(log, data.size, info.max_timestamp, info.last_offset):
        roll(log, info.last_offset - RELATIVE_OFFSET_MAX if info.first_offset < 0 else info.first_offset)
    return None if update is None else update.step(data, table, 0, table.count)


def _write(log: LogState, data: ByteArray, table: BatchTable, info: AppendInfo, update: ProducerUpdate | None) -> None:
    end_offset = info.last_offset + 1
    log.active.append(data, table)
    log.log_end_offset = end_offset
    if update is None:
        log.producers.state.map_end_offset = end_offset
    else:
        _index_aborted(log, update.commit(end_offset))
    refresh_first_unstable_offset(log)
    _follow(log)
    if end_offset - log.recovery_point >= log.flush_message_count:
        flush(log)


def _follow(log: LogState) -> None:
    """The high watermark of a log that has no other replicas is where it ends (`Partition.maybeIncrementLeaderHW`)."""
    if log.is_only_replica and log.high_watermark < log.log_end_offset:
        update_high_watermark(log, log.log_end_offset)


def _index_aborted(log: LogState, completed: CompletedTransactions) -> None:
    if len(completed) and completed.is_aborted.any():
        log.active.add_aborted(completed)


def _is_of_latest_epoch(log: LogState, table: BatchTable) -> bool:
    """One batch of the leader that wrote last, which the epochs know already."""
    if table.count != 1 or not log.epochs.entries:
        return False
    epoch, start_offset = log.epochs.entries[-1]
    matrix = table.matrix
    return bool(matrix[fields.PARTITION_LEADER_EPOCH, 0] == epoch and matrix[fields.BASE_OFFSET, 0] >= start_offset)


def _update(
    log: LogState, table: BatchTable, origin: AppendOrigin, guard: VerificationGuard | None, transaction_version: int
) -> ProducerUpdate | None:
    """Begun for the batches; None if none has a producer."""
    if not _has_producer(table):
        return None
    return ProducerUpdate(log.producers.state, origin, transaction_version=transaction_version, guard=guard)


def _has_producer(table: BatchTable) -> bool:
    if table.count == 1:
        return bool(table.matrix[fields.PRODUCER_ID, 0] > NO_PRODUCER_ID)
    return bool((table.producer_id > NO_PRODUCER_ID).any())
