"""The log made shorter at its end, as a follower does that had more than its new leader (`UnifiedLog.truncateTo`).

The recovery point checkpoint on the disk may lie above the log's end then, and a load after a crash looks at nothing
below it but the segment that holds it. So until the log's end has passed it, `roll` syncs each segment that it closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import UsageError
from .active_segment import ActiveSegment
from .roll import begin_segment
from .segment import Segment
from .watermarks import update_high_watermark

if TYPE_CHECKING:
    from .log_state import LogState


def truncate_to(log: LogState, target_offset: int) -> bool:
    """Drop the batch that holds `target_offset` and all behind it; False if the log ends before.

    Raises:
        UsageError: a negative offset.
        DataDirectoryError: a file cannot be changed.
    """
    if target_offset < 0:
        raise UsageError(
            f"Cannot truncate partition {log.topic_partition} to a negative offset ({target_offset}).",
            java_class="java.lang.IllegalArgumentException",
        )
    if target_offset >= log.log_end_offset:
        if log.epochs.truncate_from_end(log.log_end_offset):
            log.write_epochs()
        return False
    if log.segments.base_offsets[0] > target_offset:
        truncate_fully_and_start_at(log, target_offset)
        return True
    if target_offset < log.active.base_offset:
        log.truncation_count += 1
    _cut_segments(log, target_offset)
    _end_at(log, target_offset)
    if log.epochs.truncate_from_end(target_offset):
        log.write_epochs()
    log.log_start_offset = min(target_offset, log.log_start_offset)
    _rebuild_producers(log)
    if log.high_watermark >= target_offset:
        update_high_watermark(log, target_offset)
    return True


def truncate_fully_and_start_at(log: LogState, offset: int, log_start_offset: int | None = None) -> None:
    """Drop everything; the log is empty, ends at `offset`, and starts there if not told otherwise.

    Raises:
        DataDirectoryError: a file cannot be changed.
    """
    reason = f"the log begins anew at offset {offset}"
    log.truncation_count += 1
    old = log.active
    old.release()
    _remove(log, [segment for segment in log.segments if segment is not old], reason)
    begin_segment(log, offset)
    if old.base_offset != offset:
        _remove(log, [old], reason)
    _end_at(log, offset)
    log.epochs.clear()
    log.write_epochs()
    log.producers.start_at(offset)
    log.log_start_offset = offset if log_start_offset is None else log_start_offset
    _rebuild_producers(log)
    update_high_watermark(log, offset)


def _cut_segments(log: LogState, target_offset: int) -> None:
    behind = [segment for segment in log.segments if segment.base_offset > target_offset]
    if log.active in behind:
        log.active.release()
    _remove(log, behind, f"the log is truncated to offset {target_offset}")
    last = log.segments.last
    assert last is not None
    if not isinstance(last, ActiveSegment):
        last.keep_bytes()
        last = ActiveSegment.resume(last, log.config)
    log.active = last.truncated_to(target_offset, log.config, log.now_ms())
    log.segments.add(log.active)


def _remove(log: LogState, segments: Sequence[Segment], reason: str) -> None:
    """Remove segments with their snapshots, the last first, so that no crash leaves a gap."""
    for segment in reversed(segments):
        log.segments.remove(segment.base_offset)
        segment.delete_files(reason)
    log.producers.remove_snapshots_of(segments)
    log.directory.sync()


def _end_at(log: LogState, offset: int) -> None:
    log.log_end_offset = offset
    log.checkpointed_recovery_point = max(log.checkpointed_recovery_point, log.recovery_point)
    log.recovery_point = min(log.recovery_point, offset)


def _rebuild_producers(log: LogState) -> None:
    log.producers.now_ms = log.now_ms()
    log.producers.rebuild(
        log.segments,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset,
        is_after_clean_shutdown=False,
    )
    log.loaded_end_offset = log.log_end_offset
