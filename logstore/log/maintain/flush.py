"""Flushing a log: sync its segments, then move the recovery point (`LocalLog.flush`).

After a crash the next load reads only the segment that holds the recovery point and those behind it. So the point moves
only when everything below is durable, side files included, and a segment that is closed later may lie below it only if
it is synced, see `roll`. Unsynced segments are therefore looked for from the recovery point on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...calls import LOG, alone
from ..segment.active_segment import ActiveSegment, sync_segment
from ..segment.log_segment import LogSegment

if TYPE_CHECKING:
    from ..partition_log import PartitionLog

FAILURE_TEXT = "Error while flushing log for"


def flush(log: PartitionLog, end_offset: int | None = None) -> None:
    """Sync everything below `end_offset`, by default the log's end. The caller holds the log's lock.

    Raises:
        DataDirectoryError: a sync failed; its data may be lost, so it must not be tried again.
    """
    end_offset = log.log_end_offset if end_offset is None else end_offset
    if end_offset <= log.recovery_point:
        return
    for segment in _unsynced(log, end_offset):
        sync_segment(segment)
    if log.active.base_offset < end_offset:
        log.active.sync()
    log.directory.sync()
    _mark(log, end_offset)


def flush_beside(log: PartitionLog) -> None:
    """Sync everything appended so far without holding the lock: others read and append meanwhile.

    Raises:
        KafkaStorageError: the log is closed or poisoned, or a sync failed.
    """
    with alone(LOG), log.failure.poisoned_by(FAILURE_TEXT):
        with log.lock:
            end_offset, active = log.log_end_offset, log.active
            if end_offset <= log.recovery_point:
                return
            unsynced = _unsynced(log, end_offset)
        for segment in unsynced:
            sync_segment(segment)
        active.sync()
        log.directory.sync()
        with log.lock:
            if log.active is not active:  # rolled or truncated meanwhile: the new segments are not synced yet
                flush(log)
            elif end_offset > log.recovery_point:
                _mark(log, end_offset)


def flush_closed(log: PartitionLog, end_offset: int) -> None:
    """Sync the closed segments below `end_offset` while appends go on; for another thread.

    Does nothing if the log is closed or poisoned.

    Raises:
        KafkaStorageError: a sync failed; the log is poisoned.
    """
    with alone(LOG):
        _flush_closed(log, end_offset)


def _flush_closed(log: PartitionLog, end_offset: int) -> None:
    with log.lock:
        if not log.is_writable:
            return
        unsynced = _unsynced(log, min(end_offset, log.active.base_offset))
    with log.failure.poisoned_by(FAILURE_TEXT):
        for segment in unsynced:
            sync_segment(segment)
        log.directory.sync()
        with log.lock:
            # a truncation may have come first, and appends in place of what it removed
            below = [segment for segment in log.segments if segment.base_offset < end_offset]
            if end_offset > log.recovery_point and all(segment.is_synced for segment in below):
                _mark(log, end_offset)


def raise_recovery_point(log: PartitionLog, offset: int) -> None:
    """Move the recovery point up to `offset`, as nothing below is read any more.

    A load may still see an older log start, so the closed segments there are synced.

    Raises:
        DataDirectoryError: a sync failed.
    """
    if offset > log.recovery_point:
        for segment in _unsynced(log, offset):
            sync_segment(segment)
        log.offsets.synced(offset)


def _unsynced(log: PartitionLog, end_offset: int) -> list[LogSegment]:
    """Return the closed segments that begin below `end_offset` and are not durable."""
    behind = log.segments.between(log.recovery_point, end_offset)
    return [segment for segment in behind if not segment.is_synced and not isinstance(segment, ActiveSegment)]


def _mark(log: PartitionLog, end_offset: int) -> None:
    """Move the recovery point; the caller has synced everything below, names too, and holds the log's lock."""
    log.offsets.synced(end_offset)
    log.last_flush_ms = log.now_ms()
