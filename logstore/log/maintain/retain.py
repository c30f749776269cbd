"""Retention: old segments are deleted by log start offset, size and time (`UnifiedLog.deleteOldSegments`).

Deleting records on request (`Partition.deleteRecordsOnLeader`) only moves the log start: readers stop seeing them at
once, and segments without other records go with the next `delete_old_segments`.

Of a log with remote storage nothing goes by size and time: nobody here knows which segments were copied there.

Segments go from the oldest on, until one must stay. One that the high watermark has not passed stays; the active one
goes only with all others, and an empty one is rolled first. Open transactions hold nothing back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from ...config.topic import is_tiered
from ...errors import OffsetOutOfRangeError, PolicyViolationError
from ..segment.log_segment import LogSegment
from ..state import LogState
from .flush import raise_recovery_point
from .roll import roll
from .swap import delete_snapshots, remove_segments

CLEANUP_POLICY = "cleanup.policy"
RETENTION_BYTES = "retention.bytes"
RETENTION_MS = "retention.ms"
DELETE = "delete"
UP_TO_HIGH_WATERMARK = -1

_LOGGER = logging.getLogger("logstore")

# Decides whether a segment goes, given the base offset of the next segment, None for the last.
Condition = Callable[[LogSegment, int | None], bool]


class DeletedSegment(NamedTuple):
    """A deleted segment; `reason` in the words of Kafka's log."""

    base_offset: int
    size: int
    reason: str


def delete_old_segments(state: LogState, now_ms: int) -> list[DeletedSegment]:
    """Delete what the configuration does not retain; return the deleted segments, the oldest first.

    If `cleanup.policy` has delete: by log start offset, size and time, else by log start offset alone. The files and
    the snapshots at the segments' base offsets are renamed to `.deleted`.
    """
    with state.failure.poisoned_by("Error while deleting segments for"):
        start = state.log_start_offset
        deleted = _delete(
            state, lambda _, end: end is not None and end <= start, f"log start offset {start} breach", now_ms
        )
        if DELETE in state.config[CLEANUP_POLICY] and not is_tiered(state.config):
            deleted += _delete_by_size(state, now_ms)
            deleted += _delete_by_time(state, now_ms)
        return deleted


def delete_records(state: LogState, offset: int) -> int:
    """Move the log start to `offset`, or to the high watermark for -1; return the log start, its low watermark.

    Raises:
        PolicyViolationError: `cleanup.policy` has compact and not delete; an empty one allows everything.
        OffsetOutOfRangeError: the offset is negative, or above the high watermark.
    """
    if state.rules.is_compacted and DELETE not in state.config[CLEANUP_POLICY]:
        raise PolicyViolationError(
            f"Records of partition {state.topic_partition} can not be deleted due to the configured policy",
            expected=f"{CLEANUP_POLICY} with {DELETE}",
            found=",".join(state.config[CLEANUP_POLICY]),
        )
    if offset == UP_TO_HIGH_WATERMARK:
        offset = state.high_watermark
    if offset < 0:
        raise OffsetOutOfRangeError(f"The offset {offset} for partition {state.topic_partition} is not valid")
    raise_log_start(state, offset)
    return state.log_start_offset


def raise_log_start(state: LogState, offset: int) -> bool:
    """Move the log start up to `offset`; return False if it is there or above. The caller holds the log's lock.

    Raises:
        OffsetOutOfRangeError: an offset above the high watermark.
        DataDirectoryError: a file cannot be written.
    """
    with state.failure.poisoned_by("Exception while increasing log start offset for"):
        if not state.may_start_at(offset):
            return False
        raise_recovery_point(state, offset)
        move_log_start(state, offset)
        return True


def move_log_start(state: LogState, offset: int) -> None:
    """Move the log start up, and all that follows it but the recovery point. The caller holds the log's lock."""
    state.struct.log_start_offset = offset
    state.remote_start_offset = None
    if state.epochs.truncate_from_start(offset):
        state.write_epochs()
    state.producers.raise_log_start_offset(offset)
    state.refresh_first_unstable_offset()


def _delete_by_size(state: LogState, now_ms: int) -> list[DeletedSegment]:
    """Delete the oldest segments, but leave at least `retention.bytes`."""
    retention_bytes = state.config[RETENTION_BYTES]
    excess_size = sum(segment.size for segment in state.segments) - retention_bytes
    if retention_bytes < 0 or excess_size < 0:
        return []

    def is_excess(segment: LogSegment, next_base_offset: int | None) -> bool:
        nonlocal excess_size
        # a segment that is larger than the excess stays: at least `retention.bytes` must be left
        if segment.size > excess_size:
            return False
        excess_size -= segment.size
        return True

    return _delete(state, is_excess, f"log retention size {retention_bytes} breach", now_ms)


def _delete_by_time(state: LogState, now_ms: int) -> list[DeletedSegment]:
    """Delete by the largest timestamp; a segment without one by its file's modification time."""
    retention_ms = state.config[RETENTION_MS]
    if retention_ms < 0:
        return []
    fresh: list[int] = []  # how old the newest record of each segment was when that was written, ms

    def is_old(segment: LogSegment, next_base_offset: int | None) -> bool:
        largest_timestamp = segment.load_largest_timestamp()
        if largest_timestamp > now_ms:
            _LOGGER.warning(
                "%s: segment %s contains future timestamp(s), making it ineligible to be deleted; the largest is %s",
                state.topic_partition,
                segment.base_offset,
                largest_timestamp,
            )
        age_ms = now_ms - largest_timestamp
        # twice: a close or a cleaning may have touched a file that nobody has written to for long
        if age_ms > 2 * retention_ms and 0 <= (written_ms := now_ms - segment.modified_ms) < retention_ms // 2:
            fresh.append(age_ms - written_ms)
        return bool(age_ms > retention_ms)

    deleted = _delete(state, is_old, f"log retention time {retention_ms}ms breach", now_ms)
    if deleted and fresh:
        _LOGGER.warning(
            "%s: retention deletes up to offset %d what was written lately, for it goes by the timestamps of records, "
            "which were at least %d ms old when they were written: to keep such records, set retention.ms=-1, or "
            "message.timestamp.type=LogAppendTime before they are written",
            *(state.topic_partition, state.log_start_offset, min(fresh)),
        )
    return deleted


def _delete(state: LogState, condition: Condition, reason: str, now_ms: int) -> list[DeletedSegment]:
    """Delete segments from the oldest on while the condition holds (`deletableSegments`, `deleteSegments`)."""
    deletable = _deletable(state, condition)
    if not deletable:
        return []
    if len(deletable) == len(state.segments):
        roll(state)
    # anew: a roll has put a closed segment in the place of the active one
    deletable = [segment for segment in state.segments if segment.base_offset <= deletable[-1].base_offset]
    following = state.segments.higher(deletable[-1].base_offset)
    assert following is not None
    # the start first: no reader may look for a segment that is gone
    if state.may_start_at(following.base_offset):
        move_log_start(state, following.base_offset)
    remove_segments(state, deletable, reason, now_ms)
    delete_snapshots(state, deletable, now_ms)
    state.directory.sync()
    # behind the names: until then a load may find the segments, whose bytes nobody has synced
    state.raise_recovery_point(following.base_offset)
    return [DeletedSegment(segment.base_offset, segment.size, reason) for segment in deletable]


def _deletable(state: LogState, condition: Condition) -> list[LogSegment]:
    segments = list(state.segments)
    next_base_offsets = [*(segment.base_offset for segment in segments[1:]), None]
    deletable = []
    for segment, next_base_offset in zip(segments, next_base_offsets, strict=True):
        end_offset = state.log_end_offset if next_base_offset is None else next_base_offset
        is_empty_last = next_base_offset is None and segment.size == 0
        if state.high_watermark < end_offset or not condition(segment, next_base_offset) or is_empty_last:
            break
        deletable.append(segment)
    return deletable
