"""Segment of a log that is written: its files may be renamed, get new indexes, or be deleted (`LogSegment`).

`active_segment` has the one that is appended to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray
from ...disk.file_range import became_shorter
from ...disk.mapped import FileInMemory, MappedFile
from ...errors import LogstoreError
from ...folds.segment_indexes import SegmentIndexes
from ...kernels.rules import RELATIVE_OFFSET_MAX
from ...layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SEGMENT_SUFFIXES, TIME_INDEX_SUFFIX, segment_file_name
from ...layout.offset_index import parse_offset_index
from ...layout.time_index import parse_time_index
from ...view.batch_search import batch_tables
from ...view.segment import Segment
from .unsynced_files import UnsyncedFiles
from .writable_folder import WritableFolder


class LogSegment(Segment):
    """A segment in a folder that this process writes.

    Attributes:
        problem: why bytes behind `size` do not count; None for a torn tail, or if there are none.
        unsynced: files that were written and may not be durable; None if all are.
        created_ms: when this process created or loaded it.
        roll_jitter_ms: how much earlier than after `segment.ms` it is full.
    """

    directory: WritableFolder
    _is_counted = True  # in the budget of open files
    _map_room = 0  # bytes

    def __init__(
        self,
        directory: WritableFolder,
        base_offset: int,
        suffix: str,
        size: int,
        *,
        known: LogSegment | None = None,
    ) -> None:
        super().__init__(directory, base_offset, suffix, size, known=known)
        self.problem: LogstoreError | None = None
        self.unsynced: UnsyncedFiles | None = None
        self.created_ms: int = 0 if known is None else known.created_ms
        self.roll_jitter_ms: int = 0 if known is None else known.roll_jitter_ms
        self._is_used = self._is_kept = False

    @classmethod
    def open(cls, directory: WritableFolder, base_offset: int, *, suffix: str = "") -> LogSegment:
        """Open the segment; a missing `.log` is created empty."""
        log_name = segment_file_name(base_offset, LOG_SUFFIX + suffix)
        if not directory.exists(log_name):
            directory.replace(log_name, b"", "there was no segment of this offset")
        return cls(directory, base_offset, suffix, directory.log_size(log_name))

    @property
    def data(self) -> ByteArray:
        """See `Segment`; the mapping counts in the budget of open files."""
        size, self._is_used = self.size, True
        mapped = self._mapped  # read once: the budget of open files may drop it at any time
        if mapped.size < size:
            if self._is_counted:
                self.directory.open_files.add(self)
            # a cleaning may give the name to another file between choosing and opening it
            with self._renaming:
                mapped = self._mapped
                if mapped.size < size:
                    mapped = self._mapped = self._map()
        return mapped[:size]

    @property
    def is_open(self) -> bool:
        """True if the `.log` is mapped, and can be mapped again."""
        return bool(self._mapped.size) and not self._is_kept

    def was_used(self) -> bool:
        was_used, self._is_used = self._is_used, False
        return was_used

    def close_idle(self) -> bool:
        """Unmap the `.log`; readers that have its bytes keep them. False while its files are renamed."""
        is_held = False
        try:
            is_held = self._renaming.acquire(blocking=False)
            if is_held and not self._is_kept:
                self.unmap()
        finally:
            if is_held:
                self._renaming.release()
        return is_held

    @property
    def is_synced(self) -> bool:
        """True if all files are durable."""
        return self.unsynced is None or self.unsynced.is_synced

    def release(self) -> None:
        """Close the files that wait for a sync, without it."""
        if self.unsynced is not None:
            self.unsynced.close()

    def unmap(self) -> None:
        """Drop the mapping of the `.log`: a deleted file frees its space only when nothing maps it."""
        self._mapped = np.empty(0, np.uint8)

    def keep_bytes(self) -> None:
        """Read the files now, for readers that hold this segment when other files take over the names."""
        with self._keeping_bytes():
            pass

    def rename_files(self, suffix: str, reason: str) -> None:
        """Change the suffix of all files (`changeFileSuffixes`).

        Readers that have the bytes of the `.log` keep them, and others may still map them through this segment.
        """
        with self._keeping_bytes():
            names = {kind: self.file_name(kind) for kind in filter(self.has, SEGMENT_SUFFIXES)}
            for kind, name in names.items():
                self.directory.rename(name, segment_file_name(self.base_offset, kind + suffix), reason)
            self._suffix = suffix
            if not suffix:  # a segment of the log from now on, which can be mapped by its name again
                self._is_kept = False
                self.unmap()

    def delete_files(self, reason: str) -> None:
        """Remove all files; readers of the segment go on, as with `rename_files`."""
        with self._keeping_bytes():
            for kind in SEGMENT_SUFFIXES:
                self.directory.delete(self.file_name(kind), reason)
        self.release()

    def holding_names(self) -> AbstractContextManager[object]:
        """Return a `with` block in which no reader maps the `.log`, or reads another file, by its name."""
        return self._renaming

    @contextmanager
    def _keeping_bytes(self) -> Iterator[None]:
        """`with` block that renames files: bytes and indexes are read before it, and no reader reads any inside it."""
        with self._renaming:
            self._is_kept = True  # first: the budget of open files must not drop it any more
            if self._mapped.size < self.size:
                self._mapped = self._map()
            self.offset_index, self.time_index, self.transaction_index  # noqa: B018 - read while they have their names
            yield

    def mapped_batches(self, position: int, size: int | None = None) -> Iterator[tuple[ByteArray, BatchTable]]:
        """Yield bytes of the `.log` and the next batches in them, see `batch_tables`; not to be kept.

        Args:
            position: byte of the first batch.
            size: bytes of the `.log` that are looked at; by default all that count.
        """
        with self.map_log() as log:
            data = log.data[: self.size if size is None else size]
            for table in batch_tables(data, position, self.path(LOG_SUFFIX)):
                yield data, table
                log.release(position, table.next_position)
                position = table.next_position

    def map_log(self, room: int = 0) -> MappedFile | FileInMemory:
        """Map the whole `.log`, of which `size` bytes count, and `room` behind it; raises DataDirectoryError."""
        return self.directory.map(self.file_name(LOG_SUFFIX), room)

    def can_hold(self, offset: int) -> bool:
        """Return whether an index of this segment can express the offset."""
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def forget_transaction_index(self) -> None:
        """Read the `.txnindex` anew when it is next needed: its file was replaced."""
        self._transaction_index = None

    def set_indexes(self, indexes: SegmentIndexes) -> tuple[bytes, bytes]:
        """Take the indexes from a fold; return the contents of their files, which the caller writes."""
        offsets, times = indexes.offset_index_bytes(), indexes.time_index_bytes()
        self._offset_index = parse_offset_index(
            offsets, base_offset=self.base_offset, path=self.path(OFFSET_INDEX_SUFFIX)
        )
        self._time_index = parse_time_index(times, base_offset=self.base_offset, path=self.path(TIME_INDEX_SUFFIX))
        return offsets, times

    def _map(self) -> ByteArray:
        with self.map_log(self._map_room) as log:
            if log.size < self.size:
                raise became_shorter(log.path, self.size, log.size)
            return log.data

    def _quick_end(self, offset: int) -> int | None:
        if self.directory.has_new_content(self.file_name(LOG_SUFFIX)):
            return None
        return super()._quick_end(offset)
