"""A log that drops all it has and begins anew at an offset (`UnifiedLog.truncateFullyAndStartAt`).

The metadata log does so when a snapshot has more than it. The recovery point checkpoint on the disk may lie above the
log's end then, and a load after a crash looks at nothing below it but the segment that holds it. So until the log's end
has passed it, `roll` syncs each segment that it closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import UsageError
from ..segment.log_segment import LogSegment
from .roll import begin_segment

if TYPE_CHECKING:
    from ..partition_log import PartitionLog

_OFFSET_MAX = (1 << 63) - 1


def truncate_fully_and_start_at(log: PartitionLog, offset: int) -> None:
    """Drop everything; the log is empty, and starts and ends at `offset`.

    Raises:
        UsageError: no offset that a record can have.
        DataDirectoryError: a file cannot be changed.
    """
    if not 0 <= offset <= _OFFSET_MAX:
        raise UsageError(f"A log cannot begin at offset {offset}", expected=f"0 to {_OFFSET_MAX}", found=offset)
    reason = f"the log begins anew at offset {offset}"
    now_ms, jitter_ms = log.now_ms(), log.roll_jitter_ms()  # first, as these are functions of the caller's
    old = log.active
    old.release()
    _remove(log, [segment for segment in log.segments if segment is not old], reason)
    begin_segment(log, offset, now_ms, jitter_ms)
    if old.base_offset != offset:
        _remove(log, [old], reason)
    log.offsets.restart_at(offset)
    log.epochs.clear()
    log.write_epochs()
    log.producers.start_at(offset)
    log.producers.now_ms = now_ms
    log.producers.rebuild(log.segments, log_start_offset=offset, end_offset=offset, is_after_clean_shutdown=False)
    log.offsets.producers_loaded()
    log.offsets.follow_end()


def _remove(log: PartitionLog, segments: Sequence[LogSegment], reason: str) -> None:
    """Remove segments with their snapshots, the last first, so that no crash leaves a gap."""
    for segment in reversed(segments):
        log.segments.remove(segment.base_offset)
        segment.delete_files(reason)
    log.producers.remove_snapshots_of(segments)
    log.directory.sync()
