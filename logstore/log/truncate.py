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

if TYPE_CHECKING:
    from .partition_log import PartitionLog

_OFFSET_MAX = (1 << 63) - 1


def truncate_to(log: PartitionLog, target_offset: int) -> bool:
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
    now_ms = log.now_ms()  # first, as it is a function of the caller's
    if target_offset < log.active.base_offset:
        log.truncation_count += 1
    _cut_segments(log, target_offset, now_ms)
    log.offsets.truncated(target_offset)
    if log.epochs.truncate_from_end(target_offset):
        log.write_epochs()
    log.offsets.lower_log_start(target_offset)
    _rebuild_producers(log, now_ms)
    if log.high_watermark >= target_offset:
        log.offsets.update_high_watermark(target_offset)
    return True


def truncate_fully_and_start_at(log: PartitionLog, offset: int, log_start_offset: int | None = None) -> None:
    """Drop everything; the log is empty, ends at `offset`, and starts there if not told otherwise.

    Raises:
        UsageError: no offset that a record can have.
        DataDirectoryError: a file cannot be changed.
    """
    if not 0 <= offset <= _OFFSET_MAX:
        raise UsageError(f"A log cannot begin at offset {offset}", expected=f"0 to {_OFFSET_MAX}", found=offset)
    reason = f"the log begins anew at offset {offset}"
    now_ms, jitter_ms = log.now_ms(), log.roll_jitter_ms()  # first, as these are functions of the caller's
    log.truncation_count += 1
    old = log.active
    old.release()
    _remove(log, [segment for segment in log.segments if segment is not old], reason)
    begin_segment(log, offset, now_ms, jitter_ms)
    if old.base_offset != offset:
        _remove(log, [old], reason)
    log.offsets.truncated(offset)
    log.epochs.clear()
    log.write_epochs()
    log.producers.start_at(offset)
    log.offsets.start_at(offset if log_start_offset is None else log_start_offset)
    _rebuild_producers(log, now_ms)
    log.offsets.update_high_watermark(offset)


def _cut_segments(log: PartitionLog, target_offset: int, now_ms: int) -> None:
    behind = [segment for segment in log.segments if segment.base_offset > target_offset]
    if log.active in behind:
        log.active.release()
    _remove(log, behind, f"the log is truncated to offset {target_offset}")
    last = log.segments.last
    assert last is not None
    if not isinstance(last, ActiveSegment):
        last.keep_bytes()
        last = ActiveSegment.resume(last, log.config, log.offsets.struct)
    log.activate(last.truncated_to(target_offset, log.config, now_ms))


def _remove(log: PartitionLog, segments: Sequence[Segment], reason: str) -> None:
    """Remove segments with their snapshots, the last first, so that no crash leaves a gap."""
    for segment in reversed(segments):
        log.segments.remove(segment.base_offset)
        segment.delete_files(reason)
    log.producers.remove_snapshots_of(segments)
    log.directory.sync()


def _rebuild_producers(log: PartitionLog, now_ms: int) -> None:
    log.producers.now_ms = now_ms
    log.producers.rebuild(
        log.segments,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset,
        is_after_clean_shutdown=False,
    )
    log.offsets.producers_loaded()
