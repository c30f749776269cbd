"""Flushing a log: sync its segments, then move the recovery point (`LocalLog.flush`).

After a crash the next load reads only the segment that holds the recovery point and those behind it. So the point moves
only when everything below is durable, side files included, and a segment that is closed later may lie below it only if
it is synced, see `roll`. Unsynced segments are therefore looked for from the recovery point on.
"""

from __future__ import annotations

from ...calls import LOG, alone
from ...errors import KafkaStorageError
from ..segment.active_segment import ActiveSegment, sync_segment
from ..segment.log_segment import LogSegment
from ..state import LogState

FAILURE_TEXT = "Error while flushing log for"


def flush(state: LogState, end_offset: int | None = None) -> None:
    """Sync everything below `end_offset`, by default the log's end. The caller holds the log's lock.

    A DataDirectoryError means that a sync failed: data may be lost, so it must not be tried again.
    """
    end_offset = state.log_end_offset if end_offset is None else end_offset
    if end_offset <= state.recovery_point:
        return
    for segment in _unsynced(state, end_offset):
        sync_segment(segment)
    if state.active.base_offset < end_offset:
        state.active.sync()
    state.directory.sync()
    _mark(state, end_offset)


def flush_beside(state: LogState) -> None:
    """Sync everything appended so far, without the lock: others read and append meanwhile. Raises KafkaStorageError."""
    with state.failure.poisoned_by(FAILURE_TEXT):
        with state.lock:
            end_offset, active = state.log_end_offset, state.active
            if end_offset <= state.recovery_point:
                return
            unsynced = _unsynced(state, end_offset)
        for segment in unsynced:
            sync_segment(segment)
        active.sync()
        state.directory.sync()
        with state.lock:
            if state.active is not active:  # rolled or truncated meanwhile: the new segments are not synced yet
                flush(state)
            elif end_offset > state.recovery_point:
                _mark(state, end_offset)


def flush_closed(state: LogState, end_offset: int) -> None:
    """Sync the closed segments below `end_offset` while appends go on; for another thread.

    Does nothing if the log is closed or poisoned; poisons it and raises KafkaStorageError if a sync fails.
    """
    with alone(LOG):
        with state.lock:
            if not state.failure.is_writable:
                return
            unsynced = _unsynced(state, min(end_offset, state.active.base_offset))
        try:
            with state.failure.poisoned_by(FAILURE_TEXT):
                for segment in unsynced:
                    sync_segment(segment)
                state.directory.sync()
                with state.lock:
                    # a truncation may have come first, and appends in place of what it removed
                    below = (segment for segment in state.segments if segment.base_offset < end_offset)
                    if end_offset > state.recovery_point and all(segment.is_synced for segment in below):
                        _mark(state, end_offset)
        except KafkaStorageError:
            # not of a log that was put aside since, or closed, and perhaps moved away: all of it was synced
            if state.failure.error is not None and not state.failure.is_closed:
                raise


def raise_recovery_point(state: LogState, offset: int) -> None:
    """Move the recovery point up to `offset`, as nothing below is read any more; raise DataDirectoryError.

    A load may still see an older log start, so the closed segments there are synced.
    """
    if offset > state.recovery_point:
        for segment in _unsynced(state, offset):
            sync_segment(segment)
        state.raise_recovery_point(offset)


def _unsynced(state: LogState, end_offset: int) -> list[LogSegment]:
    """Return the closed segments that begin below `end_offset` and are not durable."""
    behind = state.segments.between(state.recovery_point, end_offset)
    return [segment for segment in behind if not segment.is_synced and not isinstance(segment, ActiveSegment)]


def _mark(state: LogState, end_offset: int) -> None:
    """Move the recovery point; the caller has synced everything below, names too, and holds the log's lock."""
    state.raise_recovery_point(end_offset)
    state.last_flush_ms = state.host.now_ms()


def close(state: LogState) -> None:
    """Write and sync everything, and close all files; a second call does nothing. The caller holds the lock.

    If a write failed, files are only closed: the next load must treat the log as not cleanly closed.
    """
    failure = state.failure
    if failure.is_closed:
        return
    state.invalidate()
    if failure.error is None:
        with failure.poisoned_by(FAILURE_TEXT):
            state.producers.take_snapshot()
            if not state.active.is_untouched:
                closed = state.active.close()
                state.segments.add(closed)
                sync_segment(closed)
            flush(state)
            state.directory.sync()
            failure.is_closed = True  # in the block: after an interrupt a second close writes nothing
    failure.is_closed = True
    state.release()
