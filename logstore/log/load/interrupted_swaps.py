"""Leftovers of an interrupted cleaning or deletion, the first part of a load (`LogLoader.load`).

The cleaner writes `.cleaned` files; when all are complete it renames them to `.swap`, the highest base offset first,
removes the segments they replace, and drops the suffix. So a `.swap` file at or above a `.cleaned` one belongs to a
swap that must be undone, and any other `.swap` file to one that must be finished.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...disk.directory import offset_in_name
from ...layout.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    KRAFT_DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
)
from ...view.follower import offset_of
from ..segment.log_segment import LogSegment
from ..segment.writable_folder import WritableFolder


def finish_left_overs(directory: WritableFolder) -> None:
    """Remove deleted and incomplete files, and finish a swap that had begun.

    Safe to run again after a crash: swaps are judged before the files that they are judged by are removed, and a `.log`
    gets its name before its indexes do.

    Raises:
        InvalidNameError: a `.cleaned` or `.swap` file without an offset in its name.
        DataDirectoryError, CorruptRecordError: a `.log.swap` cannot be read to its end.
    """
    swaps = _remove_unfinished(directory)
    _remove_replaced(directory, swaps)
    # a `.log` without an index is recovered; an index without its `.log` would be deleted
    logs_first = sorted(swaps, key=lambda name: not name.endswith(LOG_SUFFIX + SWAP_SUFFIX))
    for name in logs_first:
        directory.note_replaced(name.removesuffix(SWAP_SUFFIX))  # one without a batch replaces only its namesake
        directory.rename(name, name.removesuffix(SWAP_SUFFIX), "finished an interrupted swap")
    if swaps:
        directory.sync()


def _remove_unfinished(directory: WritableFolder) -> list[str]:
    """Delete `.deleted` and `.cleaned` files, and `.swap` files of a swap that had not begun; return the others."""
    names = directory.names()
    for name in names:
        if name.endswith(DELETED_SUFFIX) and not name.endswith(KRAFT_DELETED_SUFFIX):
            directory.delete(name, "was to be deleted")
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    first_cleaned_offset = min((offset_in_name(directory.file(name)) for name in cleaned), default=None)
    valid_swaps = []
    for name in swaps:
        if first_cleaned_offset is not None and offset_in_name(directory.file(name)) >= first_cleaned_offset:
            directory.delete(name, f"belongs to an unfinished cleaning from offset {first_cleaned_offset}")
        else:
            valid_swaps.append(name)
    if cleaned:  # swaps are judged by these, so they go last
        directory.sync()
        for name in cleaned:
            directory.delete(name, "belongs to an unfinished cleaning")
        directory.sync()
    return valid_swaps


def _remove_replaced(directory: WritableFolder, swaps: Iterable[str]) -> None:
    """Delete the files of the segments that the swapped ones replace, producer snapshots included."""
    segments = [
        LogSegment.open(directory, offset_in_name(directory.file(name)), suffix=SWAP_SUFFIX)
        for name in swaps
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)
    ]
    if not segments:
        return
    start = min(segment.base_offset for segment in segments)
    end = max(segment.next_offset() for segment in segments)
    for name in directory.names():
        offset = offset_of(name) if "." in name and not name.endswith(SWAP_SUFFIX) else None
        if offset is not None and start <= offset < end:
            directory.note_replaced(name)
            directory.delete(name, f"was replaced by cleaned segments of offsets {start} to {end}")
    directory.sync()
