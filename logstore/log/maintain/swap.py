"""Removal and replacement of segments: a crash at any step leaves the old or the new ones.

`LocalLog.replaceSegments`, `LocalLog.deleteSegmentFiles`, `UnifiedLog.deleteProducerSnapshots`.
`load.interrupted_swaps` says what a load makes of each state that a crash can leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...layout.file_names import CLEANED_SUFFIX, DELETED_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX
from ..segment.log_segment import LogSegment
from ..state import LogState

FILE_DELETE_DELAY_MS = "file.delete.delay.ms"


def remove_segments(state: LogState, segments: Iterable[LogSegment], reason: str, now_ms: int) -> None:
    """Take segments out of the log, and rename their files to `.deleted` (`removeAndDeleteSegments`)."""
    for segment in segments:
        state.segments.remove(segment.base_offset)
        _delete_files(state, segment, reason, now_ms)


def delete_snapshots(state: LogState, segments: Iterable[LogSegment], now_ms: int) -> None:
    """Rename the snapshots at the base offsets of removed segments to `.deleted` (`deleteProducerSnapshots`)."""
    for segment in segments:
        name = state.producers.snapshots.pop(segment.base_offset, None)
        if name is not None:
            state.directory.rename(name, name + DELETED_SUFFIX, "belongs to a segment that was removed")
            state.deleted_files.add(name + DELETED_SUFFIX, now_ms, state.config[FILE_DELETE_DELAY_MS])


def replace_segments(
    state: LogState, cleaned_base_offset: int, old_segments: Sequence[LogSegment], now_ms: int
) -> LogSegment:
    """Replace `old_segments` by the complete and synced `.cleaned` segment; return it.

    `old_segments` ascend, and `cleaned_base_offset` is that of the first.
    """
    directory, reason = state.directory, f"cleaned from {[segment.base_offset for segment in old_segments]}"
    cleaned = LogSegment.open(directory, cleaned_base_offset, suffix=CLEANED_SUFFIX)
    cleaned.rename_files(SWAP_SUFFIX, reason)
    directory.sync()  # a crash that keeps the `.deleted` names must keep the `.swap` too
    # in memory first: a log that cannot rename a file is still read, and must have the old segments or the new one
    for segment in old_segments[1:]:
        state.segments.remove(segment.base_offset)
    state.segments.add(cleaned)
    for segment in old_segments:
        _delete_files(state, segment, reason, now_ms)
    cleaned.rename_files("", reason)
    directory.sync()
    delete_snapshots(state, old_segments[1:], now_ms)
    return cleaned


def _delete_files(state: LogState, segment: LogSegment, reason: str, now_ms: int) -> None:
    segment.rename_files(DELETED_SUFFIX, reason)
    for kind in SEGMENT_SUFFIXES:
        if segment.has(kind):
            state.deleted_files.add(segment.file_name(kind), now_ms, state.config[FILE_DELETE_DELAY_MS])
    segment.release()
