"""What is in memory goes to the disk, and the recovery point behind it (`LocalLog.flush`).

The recovery point tells the next load what need not be looked at after a crash: the segments before the one that holds
it. So it moves only when these are on the disk with all that is beside them, and no segment that is closed later may
come to lie before it without that, see `roll`. What waits for its sync is therefore looked for from there on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..segment.active_segment import ActiveSegment, sync_segment
from ..segment.log_segment import LogSegment

if TYPE_CHECKING:
    from ..partition_log import PartitionLog

FAILURE_TEXT = "Error while flushing log for"


def flush(log: PartitionLog, end_offset: int | None = None) -> None:
    """Sync all below `end_offset`, by default the log's end. The caller holds the log's lock.

    Raises:
        DataDirectoryError: a sync failed; what it was about may be lost, so it must not be tried again.
    """
    end_offset = log.log_end_offset if end_offset is None else end_offset
    if end_offset <= log.recovery_point:
        return
    for segment in _unsynced(log, end_offset):
        sync_segment(segment)
    if log.active.base_offset < end_offset:
        log.active.sync()
    _mark(log, end_offset)


def flush_beside(log: PartitionLog) -> None:
    """Sync all that was appended by now, while others read and append: they do not wait for the disk.

    Raises:
        KafkaStorageError: the log is closed, its writing has failed, or a sync has.
    """
    with log.poisoned_by(FAILURE_TEXT):
        with log.lock:
            end_offset, active = log.log_end_offset, log.active
            if end_offset <= log.recovery_point:
                return
            unsynced = _unsynced(log, end_offset)
        for segment in unsynced:
            sync_segment(segment)
        active.sync()
        with log.lock:
            if log.active is not active:  # rolled, or truncated and perhaps written anew, meanwhile
                flush(log)
            elif end_offset > log.recovery_point:
                _mark(log, end_offset)


def flush_closed(log: PartitionLog, end_offset: int) -> None:
    """Sync the closed segments below `end_offset` while the log is written on; for another thread.

    A log that is closed, or not written any more, is left as it is.

    Raises:
        KafkaStorageError: a sync failed; the log is not written any more.
    """
    with log.lock:
        if not log.is_writable:
            return
        unsynced = _unsynced(log, min(end_offset, log.active.base_offset))
    with log.poisoned_by(FAILURE_TEXT):
        for segment in unsynced:
            sync_segment(segment)
        with log.lock:
            # a truncation may have come first, and appends in place of what it dropped
            below = [segment for segment in log.segments if segment.base_offset < end_offset]
            if end_offset > log.recovery_point and all(segment.is_synced for segment in below):
                _mark(log, end_offset)


def raise_recovery_point(log: PartitionLog, offset: int) -> None:
    """Let what is below `offset` not be looked at after a crash, for nothing there is read any more.

    A load may not know that yet, so what is closed there is synced.

    Raises:
        DataDirectoryError: a sync failed.
    """
    if offset > log.recovery_point:
        for segment in _unsynced(log, offset):
            sync_segment(segment)
        log.offsets.synced(offset)


def _unsynced(log: PartitionLog, end_offset: int) -> list[LogSegment]:
    """The closed segments that begin below `end_offset` and are not on the disk."""
    behind = log.segments.between(log.recovery_point, end_offset)
    return [segment for segment in behind if not segment.is_synced and not isinstance(segment, ActiveSegment)]


def _mark(log: PartitionLog, end_offset: int) -> None:
    """All below is on the disk but for its names."""
    log.directory.sync()
    log.offsets.synced(end_offset)
    log.last_flush_ms = log.now_ms()
