"""Rolling: when a segment is full, and how the next one, or the whole log, begins anew (`UnifiedLog.roll`)."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidOffsetError, UsageError
from ...kernels.rules import has_segment_room, waited_ms
from ...layout.file_names import SEGMENT_SUFFIXES, segment_file_name
from ..segment.active_segment import ActiveSegment, sync_segment
from ..segment.log_segment import LogSegment
from ..state import LogState
from .flush import flush, flush_closed

_FILE_COUNT = 5  # of a segment and its snapshot, at most
_OFFSET_MAX = (1 << 63) - 1


def should_roll(state: LogState, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
    """Return whether an append of `size` bytes, up to `max_timestamp` and `last_offset`, begins a new segment."""
    active = state.active
    waited = waited_ms(active.load_first_timestamp(), max_timestamp, active.created_ms, now_ms) if active.size else 0
    age_max_ms = state.segment_ms_max - active.roll_jitter_ms
    limits = state.rules.segment_size_max, waited, age_max_ms, last_offset - active.base_offset
    return active.indexes.is_full or not has_segment_room(active.size, size, *limits)


def roll(state: LogState, expected_next_offset: int = 0) -> ActiveSegment:
    """Close the active segment, and begin one at the log's end, or at `expected_next_offset` if that is higher.

    An empty active segment with the same base is replaced. `flush_later` syncs what is below the new one, and the
    snapshot of the producers there (KAFKA-15046); without it, or if the recovery point of the log or of the checkpoint
    is not below the log's end, the roll itself syncs, else that point would lie behind a segment that is not durable.

    Raises:
        InvalidOffsetError: a segment with this or a higher base exists: offsets are damaged, or an append behind the
            log's end was refused after its segment had begun. Opening the log anew mends both.
        TooManyOpenFilesError: the process may open no more files; nothing has changed.
        DataDirectoryError: a file cannot be written.
    """
    state.directory.open_files.require_spare()
    now_ms, jitter_ms = state.host.now_ms(), state.draw_roll_jitter_ms()  # first: functions that the caller passed
    base_offset = max(expected_next_offset, state.log_end_offset)
    active, unsynced = state.active, None
    _require_free(state, base_offset, expected_next_offset)
    if base_offset == active.base_offset:
        active.release()
    else:
        closed = active.close()
        state.segments.add(closed)
        if state.host.flush_later is None or state.promised_recovery_point >= state.log_end_offset:
            sync_segment(closed)
        else:
            unsynced = closed.unsynced
    begin_segment(state, base_offset, now_ms, jitter_ms)
    state.producers.state.map_end_offset = base_offset
    state.producers.take_snapshot(unsynced)
    if unsynced is not None:
        state.directory.open_files.add(unsynced, _FILE_COUNT)
    if state.host.flush_later is None:
        flush(state, base_offset)
    else:
        state.host.flush_later(lambda: flush_closed(state, base_offset))
    return state.active


def _require_free(state: LogState, base_offset: int, expected_next_offset: int) -> None:
    """Check that no segment has this base or a higher one, except an empty active one."""
    active = state.active
    if base_offset > active.base_offset or (base_offset == active.base_offset and not active.size):
        return
    floor = state.segments.floor(base_offset)
    is_taken = floor is not None and floor.base_offset == base_offset
    raise InvalidOffsetError(
        f"Trying to roll a new log segment for topic partition {state.topic_partition} with start offset {base_offset} "
        f"=max(provided offset = {expected_next_offset}, LEO = {state.log_end_offset}) "
        + ("while it already exists." if is_taken else "lower than start offset of the active segment."),
        path=state.directory.path,
        offset=base_offset,
        found=f"an active segment of base offset {active.base_offset} and {active.size} bytes",
        advice="open the log anew",
        java_class="org.apache.kafka.common.KafkaException",
    )


def begin_segment(state: LogState, base_offset: int, now_ms: int, jitter_ms: int) -> None:
    """Create an empty segment as the active one, replacing any files of its base.

    Args:
        now_ms, jitter_ms: its creation time, and how much earlier than after `segment.ms` it is full.
    """
    for kind in SEGMENT_SUFFIXES:
        state.directory.delete(segment_file_name(base_offset, kind), "a new segment begins at its offset")
    active = ActiveSegment.create(state.directory, base_offset, state.config)
    active.created_ms, active.roll_jitter_ms = now_ms, jitter_ms
    state.activate(active)


def truncate_fully_and_start_at(state: LogState, offset: int) -> None:
    """Drop everything; the log is empty, and starts and ends at `offset` (`UnifiedLog.truncateFullyAndStartAt`).

    The metadata log does so when a snapshot reaches behind it. The recovery point checkpoint on the disk may then lie
    above the log's end, and a load after a crash reads only the segment that holds it. So `roll` syncs each segment
    that it closes until the log's end has passed it.

    Raises:
        UsageError: an offset that no record can have.
        DataDirectoryError: a file cannot be changed.
    """
    if not 0 <= offset <= _OFFSET_MAX:
        raise UsageError(f"A log cannot begin at offset {offset}", expected=f"0 to {_OFFSET_MAX}", found=offset)
    reason = f"the log begins anew at offset {offset}"
    now_ms, jitter_ms = state.host.now_ms(), state.draw_roll_jitter_ms()  # first: functions that the caller passed
    old = state.active
    old.release()
    _remove(state, [segment for segment in state.segments if segment is not old], reason)
    begin_segment(state, offset, now_ms, jitter_ms)
    # its files have been replaced if the base is the same
    if old.base_offset != offset:
        _remove(state, [old], reason)
    state.restart_at(offset)
    state.epochs.clear()
    state.write_epochs()
    state.producers.start_at(offset)
    state.producers.now_ms = now_ms
    state.producers.rebuild(state.segments, log_start_offset=offset, end_offset=offset, is_after_clean_shutdown=False)
    state.follow_end()


def _remove(state: LogState, segments: Sequence[LogSegment], reason: str) -> None:
    """Remove segments, the last first, so that no crash leaves a gap."""
    for segment in reversed(segments):
        state.segments.remove(segment.base_offset)
        segment.delete_files(reason)
    state.directory.sync()
