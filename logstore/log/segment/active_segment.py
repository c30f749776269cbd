"""The active segment of a log: its `.log` is open while it is written, and its indexes grow in memory (`LogSegment`).

    active = ActiveSegment.create(directory, base_offset, config, …)      # empty
    active = ActiveSegment.resume(segment, config, …)                     # loaded
    active.open_file()                                                    # before the first append, and after
    active.append(data, table)
    active.close_file()                                                   # for the budget of open files
    active.close()                                                        # writes the indexes

`.index` and `.timeindex` are written on close only: a segment that was not closed is recovered on load, which builds
both from the log. A `.txnindex` entry is written at once, for readers in other processes.
"""

from __future__ import annotations

from ...columns.batch_table import BatchTable, ByteArray, Int64Array
from ...config.topic import INDEX_INTERVAL_BYTES, SEGMENT_INDEX_BYTES, LogConfig, segment_size_max
from ...disk.file_range import FileRange
from ...disk.reserved_space import ReservedSpace, is_reserved
from ...folds import aborted_transactions, segment_indexes
from ...folds.aborted_transactions import AbortedTransactions
from ...folds.segment_indexes import SegmentIndexes
from ...kernels.append.structs import LogStruct
from ...kernels.scan import batches as fields
from ...layout.batch import NO_TIMESTAMP
from ...layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from .log_segment import LogSegment
from .unsynced_files import UnsyncedFiles
from .writable_folder import WritableFolder

_PREALLOCATE = "preallocate"
_CLOSED = -1  # no descriptor
_UNREAD = -2  # a first timestamp that was not loaded yet
_KEPT_IN_STRUCT = ("segment_size", "first_timestamp", "is_timestamp_known")


class ActiveSegment(LogSegment):
    """The segment that is written; not usable after `close`.

    Its size and times are in a struct that the kernel moves too: its log's once it has entered it.

    Attributes:
        indexes: the entries so far, and the state that decides on the next ones.
        space: the disk space reserved for the `.log`; appends go on up to its `end`.
        write_address, descriptor: for the kernel that writes, see `Seam.write_address`; -1 while the file is not open.
        open_count: how often the file was opened.
    """

    _is_counted = False  # in the budget: the log counts it, with its descriptor
    _map_room = 1 << 20  # bytes: else the first view after each append would map the file anew
    space: ReservedSpace

    def __init__(
        self,
        directory: WritableFolder,
        base_offset: int,
        size: int,
        config: LogConfig,
        *,
        is_durable: bool,
        known: LogSegment | None = None,
    ) -> None:
        self._struct = LogStruct()
        super().__init__(directory, base_offset, "", size, known=known)
        self.unsynced = self._files = UnsyncedFiles(directory.seam)
        self.aborted = AbortedTransactions.resume(self.transaction_index)
        self.indexes: SegmentIndexes = SegmentIndexes.resume(
            self.offset_index,
            self.time_index,
            size,
            index_interval_bytes=config[INDEX_INTERVAL_BYTES],
            index_size_max=config[SEGMENT_INDEX_BYTES],
        )
        self._offset_entry_count_on_disk = self.offset_index.entry_count
        self._time_entry_count_on_disk = self.time_index.entry_count
        self._struct.first_timestamp = _UNREAD if size else NO_TIMESTAMP
        self._is_preallocated = config[_PREALLOCATE]
        self._size_max = segment_size_max(config)
        self.descriptor, self.open_count = _CLOSED, 0
        # what an earlier process wrote may not be durable; from `open_file` on that is for the syncs of the open file
        self._is_durable = not size or is_durable
        self.write_address = directory.seam.write_address()

    @classmethod
    def create(cls, directory: WritableFolder, base_offset: int, config: LogConfig) -> ActiveSegment:
        """Create an empty segment and its files; they are durable after `sync` and `WritableFolder.sync`."""
        for kind in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            directory.seam.close(directory.create(segment_file_name(base_offset, kind)))
        active = cls(directory, base_offset, 0, config, is_durable=True)
        active.preallocate()
        return active

    @classmethod
    def resume(cls, segment: LogSegment, config: LogConfig, *, is_durable: bool) -> ActiveSegment:
        """Open a loaded segment for appends behind its last batch; `is_durable` if all of it is on the disk."""
        directory, base_offset, size = segment.directory, segment.base_offset, segment.size
        active = cls(directory, base_offset, size, config, is_durable=is_durable, known=segment)
        active.is_timestamp_known = segment.is_timestamp_known
        return active

    def enter(self, struct: LogStruct) -> None:
        """Keep size and times in another struct from now on: that of the log whose active segment this is."""
        for name in _KEPT_IN_STRUCT:
            setattr(struct, name, getattr(self._struct, name))
        self._struct = struct

    def preallocate(self) -> None:
        """Extend the `.log` of a new segment with zeros to its full size, if `preallocate` is set."""
        if self._is_preallocated:
            self.open_file()
            self.directory.seam.truncate(self.descriptor, self._size_max)

    def open_file(self) -> None:
        """Open the `.log` for appends, if it is not open; the caller counts it in the budget of open files."""
        if self.descriptor == _CLOSED:
            seam = self.directory.seam
            self._files.require_sound()
            self.open_count += 1
            descriptor = self._files.get(LOG_SUFFIX)  # of an `open_file` that was interrupted
            if descriptor is None:
                descriptor = self._files.add(LOG_SUFFIX, seam.open_at(self.path(LOG_SUFFIX), self.size))
            self.space = ReservedSpace(seam, descriptor, self.size, self._size_max)
            self._is_durable = True
            self.descriptor = descriptor  # last: then it is open

    def close_file(self) -> None:
        """Sync and close the files until the next append opens them; raise DataDirectoryError if a sync fails."""
        if self.descriptor != _CLOSED:
            if not self._is_preallocated:
                self.space.give_back(self.size)
            self.descriptor = _CLOSED
            self._files.finish()

    @property
    def size(self) -> int:
        """Bytes of the `.log` that count."""
        return int(self._struct.segment_size)

    @size.setter
    def size(self, size: int) -> None:
        """Set it in the struct of the log, where the kernel moves it too."""
        self._struct.segment_size = size

    @property
    def is_timestamp_known(self) -> bool:
        """See `LogSegment`."""
        return bool(self._struct.is_timestamp_known)

    @is_timestamp_known.setter
    def is_timestamp_known(self, is_known: bool) -> None:
        """Set it in the struct of the log, where the kernel sets it too."""
        self._struct.is_timestamp_known = is_known

    def load_first_timestamp(self) -> int:
        """See `LogSegment`."""
        if self._struct.first_timestamp == _UNREAD:
            self._struct.first_timestamp = max(super().load_first_timestamp(), NO_TIMESTAMP)
        return int(self._struct.first_timestamp)

    def append(self, data: ByteArray, table: BatchTable) -> None:
        """Write and index batches; they are unfinished until the log counts them.

        Args:
            data: uint8[n], the batches and nothing else.
            table: of `data`; its positions become those in the segment.

        Raises:
            OffsetOverflowError, InvalidOffsetError, IndexFullError: the indexes refuse them; nothing is written.
            DataDirectoryError: the write failed; a part may be on the disk.
        """
        count = table.count
        table.matrix[fields.POSITION, :count] += self.size
        mark = self.indexes.mark()
        try:
            segment_indexes.step(self.indexes, table, 0, count)
            self.space.extend(self.size, data.size)
            # before the write: an interrupt inside it puts the state aside
            self._struct.unfinished_size = data.size
            self.directory.seam.write(self.descriptor, data.data)
        except BaseException:
            self.indexes.go_back(mark)
            raise
        if not self.size:
            self._struct.first_timestamp = int(table.max_timestamp[0])
        self.is_timestamp_known = True
        self.size += data.size

    def read_file(self, position: int, size: int) -> bytes:
        """Return bytes of the `.log` while it is not open, fewer at its end; raise DataDirectoryError."""
        with FileRange(self.path(LOG_SUFFIX)) as log:
            return log.read(position, size).tobytes()

    def add_aborted(self, completed: Int64Array) -> None:
        """Append the aborted ones of these transactions to the `.txnindex`, which the first one creates."""
        entry_count = self.aborted.entry_count
        try:
            aborted_transactions.step(self.aborted, completed)
        # an entry whose successor is refused is in memory already, so it must be in the file too
        finally:
            if self.aborted.entry_count > entry_count:
                self._write_behind(TRANSACTION_INDEX_SUFFIX, self.aborted.to_bytes(entry_count))

    def sync(self) -> None:
        """Sync the `.log`, from any thread; a closed one is left alone.

        The side files need no sync: a load after a crash recovers the segment that holds the recovery point, which is
        this one, and builds them anew.
        """
        if self._is_durable:
            self._files.sync(LOG_SUFFIX)
        else:
            self.directory.sync_file(self.file_name(LOG_SUFFIX))

    @property
    def is_untouched(self) -> bool:
        """True if all files are durable as they are, and `close` would change none."""
        is_as_loaded = self._is_durable and not self.open_count and not self.is_timestamp_known
        return is_as_loaded and not self._is_preallocated and not is_reserved(self.path(LOG_SUFFIX), self.size)

    def close(self) -> LogSegment:
        """Write the indexes with their last entry; return the segment as a closed one.

        Nothing is synced and no running sync is waited for: the files stay open until `sync_segment`.
        """
        if self.is_timestamp_known:
            self.indexes.finish()
        self._write_indexes()
        # a killed process may have left reserved space
        if self._is_preallocated or not self._is_durable or is_reserved(self.path(LOG_SUFFIX), self.size):
            self.open_file()
        if self._is_preallocated:
            self.directory.seam.truncate(self.descriptor, self.size)
        elif self.descriptor != _CLOSED:
            self.space.give_back(self.size)
        self.descriptor = _CLOSED
        closed = LogSegment(self.directory, self.base_offset, "", self.size, known=self)
        closed.is_timestamp_known = True  # as in Kafka when a segment becomes inactive
        closed.unsynced = self.unsynced
        return closed

    def release(self) -> None:
        """Close the files without writing anything; waits for a running sync."""
        self.descriptor = _CLOSED  # the caller invalidates the fast path, which has it too
        super().release()

    def _write_indexes(self) -> None:
        offset_entries = self.indexes.offset_index_bytes(self._offset_entry_count_on_disk)
        time_entries = self.indexes.time_index_bytes(self._time_entry_count_on_disk)
        self._write_behind(OFFSET_INDEX_SUFFIX, offset_entries)
        self._write_behind(TIME_INDEX_SUFFIX, time_entries)
        if self.has(TRANSACTION_INDEX_SUFFIX):
            self._write_behind(TRANSACTION_INDEX_SUFFIX, b"")  # opens it, so that it is synced with the others

    def _write_behind(self, kind: str, data: bytes) -> None:
        """Append bytes to a side file, which stays open until it is synced."""
        descriptor = self._files.get(kind)
        if descriptor is None:
            descriptor = self._files.add(kind, self.directory.open_end(self.file_name(kind)))
        if data:
            self.directory.seam.write(descriptor, data)


def sync_segment(segment: LogSegment) -> None:
    """Sync all files of a closed segment; raise DataDirectoryError, also if an earlier sync failed."""
    if segment.unsynced is not None:
        segment.unsynced.finish()
