"""Removal and replacement of segments: a crash at any step leaves the old or the new ones.

`LocalLog.replaceSegments`, `LocalLog.deleteSegmentFiles`, `UnifiedLog.deleteProducerSnapshots`.
`load.interrupted_swaps` says what a load makes of each state that a crash can leave.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import DataDirectoryError
from ...layout.file_names import CLEANED_SUFFIX, DELETED_SUFFIX, SEGMENT_SUFFIXES, SWAP_SUFFIX
from ..segment.log_segment import LogSegment
from ..segment.writable_folder import WritableFolder

if TYPE_CHECKING:
    from ..partition_log import PartitionLog

FILE_DELETE_DELAY_MS = "file.delete.delay.ms"


class DeletedFiles:
    """`.deleted` files in the order of their renaming; they are removed some time later.

    A reader that opened one goes on for `file.delete.delay.ms`. Files that remain when the log is closed are removed
    when it is opened again.
    """

    def __init__(self) -> None:
        self._due: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, names: Iterable[str], due_ms: int) -> None:
        """Add files that are to be removed at `due_ms` or later."""
        self._due.extend((due_ms, name) for name in names)

    def remove_due(self, directory: WritableFolder, now_ms: int) -> list[str]:
        """Remove the files that are due by `now_ms`; return their names.

        Raises:
            DataDirectoryError: of the first file that cannot be removed; it stays due, and all were tried.
        """
        removed, failure = [], None
        for due_ms, name in list(self._due):
            if due_ms <= now_ms:
                try:
                    directory.delete(name, "was to be deleted")
                except DataDirectoryError as error:
                    failure = failure or error
                    continue
                self._due.remove((due_ms, name))
                removed.append(name)
        if failure is not None:
            raise failure
        return removed


def remove_segments(log: PartitionLog, segments: Iterable[LogSegment], reason: str, now_ms: int) -> None:
    """Take segments out of the log, and rename their files to `.deleted` (`removeAndDeleteSegments`).

    Raises:
        DataDirectoryError: a file cannot be renamed.
    """
    for segment in segments:
        log.segments.remove(segment.base_offset)
        _delete_files(log, segment, reason, now_ms)


def delete_snapshots(log: PartitionLog, segments: Iterable[LogSegment], now_ms: int) -> None:
    """Rename the snapshots at the base offsets of removed segments to `.deleted` (`deleteProducerSnapshots`)."""
    for segment in segments:
        name = log.producers.snapshots.pop(segment.base_offset, None)
        if name is not None:
            log.directory.rename(name, name + DELETED_SUFFIX, "belongs to a segment that was removed")
            log.deleted_files.add([name + DELETED_SUFFIX], _due_ms(log, now_ms))


def replace_segments(
    log: PartitionLog, cleaned_base_offset: int, old_segments: Sequence[LogSegment], now_ms: int
) -> LogSegment:
    """Replace `old_segments` by the complete and synced `.cleaned` segment; return it.

    `old_segments` ascend, and `cleaned_base_offset` is that of the first.

    Raises:
        DataDirectoryError: a file cannot be renamed.
    """
    directory, reason = log.directory, f"cleaned from {[segment.base_offset for segment in old_segments]}"
    cleaned = LogSegment.open(directory, cleaned_base_offset, suffix=CLEANED_SUFFIX)
    cleaned.rename_files(SWAP_SUFFIX, reason)
    directory.sync()  # a crash that keeps the `.deleted` names must keep the `.swap` too
    for segment in old_segments:
        if segment.base_offset != cleaned_base_offset:
            log.segments.remove(segment.base_offset)
        _delete_files(log, segment, reason, now_ms)
    cleaned.rename_files("", reason)
    log.segments.add(cleaned)
    directory.sync()
    delete_snapshots(log, old_segments[1:], now_ms)
    return cleaned


def _delete_files(log: PartitionLog, segment: LogSegment, reason: str, now_ms: int) -> None:
    segment.rename_files(DELETED_SUFFIX, reason)
    names = [segment.file_name(kind) for kind in SEGMENT_SUFFIXES if segment.has(kind)]
    log.deleted_files.add(names, _due_ms(log, now_ms))
    segment.release()


def _due_ms(log: PartitionLog, now_ms: int) -> int:
    delay_ms: int = log.config[FILE_DELETE_DELAY_MS]
    return now_ms + delay_ms
