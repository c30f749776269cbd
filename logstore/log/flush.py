"""What is in memory goes to the disk, and the recovery point behind it (`LocalLog.flush`).

The recovery point tells the next load what need not be looked at after a crash: the segments before the one that holds
it. So it moves only when these are on the disk with all that is beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DataDirectoryError
from .active_segment import ActiveSegment, sync_segment
from .segment import Segment

if TYPE_CHECKING:
    from .log_state import LogState


def flush(log: LogState, end_offset: int | None = None) -> None:
    """Sync all below `end_offset`, by default the log's end.

    Raises:
        DataDirectoryError: a sync failed; what it was about may be lost, so it must not be tried again.
    """
    end_offset = log.log_end_offset if end_offset is None else end_offset
    if end_offset <= log.recovery_point:
        return
    for segment in log.segments.between(log.recovery_point, end_offset):
        if isinstance(segment, ActiveSegment):
            segment.sync()
        elif not segment.is_synced:
            sync_segment(segment)
    log.directory.sync()
    _mark(log, end_offset)


def flush_closed(log: LogState, end_offset: int) -> None:
    """Sync the closed segments below `end_offset` while the log is written on; for another thread.

    A log that is closed, or not written any more, is left as it is.

    Raises:
        KafkaStorageError: a sync failed; the log is not written any more.
    """
    with log.lock:
        if not log.is_writable:
            return
        closed = [segment for segment in log.segments if segment.base_offset < min(end_offset, log.active.base_offset)]
        unsynced = [segment for segment in closed if not segment.is_synced]
    with log.flushing:
        for segment in unsynced:
            _sync_unless_removed(log, segment)
        with log.lock:
            log.directory.sync()
            below = [segment for segment in log.segments if segment.base_offset < end_offset]
            # a truncation may have come first, and appends in place of what it dropped
            is_closed_there = any(segment.base_offset == end_offset for segment in log.segments)
            if end_offset > log.recovery_point and is_closed_there and all(segment.is_synced for segment in below):
                _mark(log, end_offset)


def _sync_unless_removed(log: LogState, segment: Segment) -> None:
    try:
        sync_segment(segment)
    except DataDirectoryError:
        with log.lock:
            if log.segments.floor(segment.base_offset) is segment:
                raise


def _mark(log: LogState, end_offset: int) -> None:
    log.recovery_point = end_offset
    log.last_flush_ms = log.now_ms()
