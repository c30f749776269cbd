"""The last segment of a log, which is written: its `.log` is open, and its indexes grow in memory (`LogSegment`).

    active = ActiveSegment.create(directory, base_offset, config, …)      empty
    active = ActiveSegment.resume(segment, config, …)                     loaded
    active.append(data, table)
    active.close()                                                        all is written, and no more will be

The entries of `.index` and `.timeindex` are written on close only: a segment that was not closed is recovered on load,
and gets both anew from its log. A `.txnindex` entry is written at once, for readers in other processes.
"""

from __future__ import annotations

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray
from ..disk.reserved_space import ReservedSpace
from ..disk.seam import Writable
from ..folds import aborted_transactions, segment_indexes
from ..folds.aborted_transactions import AbortedTransactions
from ..folds.open_transactions import CompletedTransactions
from ..folds.segment_indexes import SegmentIndexes
from ..kernels import append_slots
from ..kernels import scan as fields
from ..layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from ..layout.offset_index import OffsetIndex
from ..layout.time_index import TimeIndex
from ..layout.transaction_index import TransactionIndex, parse_transaction_index
from .batch_search import batch_tables
from .config import INDEX_INTERVAL_BYTES, SEGMENT_INDEX_BYTES, LogConfig, segment_size_max
from .directory import PartitionDirectory
from .segment import Segment
from .unsynced_files import UnsyncedFiles

_PREALLOCATE = "preallocate"
_CLOSED = -1  # no descriptor


class ActiveSegment(Segment):
    """The segment that is written; not to be used any more after `close`.

    Attributes:
        indexes: the entries, and what decides on the next ones.
        space: what the disk has set aside for the `.log`; writing goes on up to its `end`.
        file: int64[FILE_SLOT_COUNT] of `append_slots`, for a kernel that writes; who calls it adds to `size`.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        base_offset: int,
        size: int,
        config: LogConfig,
        *,
        created_ms: int,
        roll_jitter_ms: int,
        known: Segment | None = None,
    ) -> None:
        super().__init__(directory, base_offset, "", size, known=known)
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.unsynced = self._files = UnsyncedFiles(directory.seam)
        self.indexes = SegmentIndexes.resume(
            self._offset_index,
            self._time_index,
            size,
            index_interval_bytes=config[INDEX_INTERVAL_BYTES],
            index_size_max=config[SEGMENT_INDEX_BYTES],
        )
        self._aborted = AbortedTransactions.resume(self._transaction_index)
        self._offset_entry_count_on_disk = self._offset_index.entry_count
        self._time_entry_count_on_disk = self._time_index.entry_count
        self._first_batch_timestamp: int | None = None
        self._is_preallocated = config[_PREALLOCATE]
        self._descriptor = self._files.add(LOG_SUFFIX, directory.seam.open_at(self.path(LOG_SUFFIX), size))
        self.space = ReservedSpace(directory.seam, self._descriptor, size, segment_size_max(config))
        self.file = np.array([directory.seam.write_address(), self._descriptor], np.int64)

    @classmethod
    def create(
        cls,
        directory: PartitionDirectory,
        base_offset: int,
        config: LogConfig,
        *,
        created_ms: int,
        roll_jitter_ms: int,
    ) -> ActiveSegment:
        """An empty segment, its files made; they are on the disk after `sync` and `PartitionDirectory.sync`."""
        for kind in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            directory.seam.close(directory.create(segment_file_name(base_offset, kind), "a new segment begins"))
        active = cls(directory, base_offset, 0, config, created_ms=created_ms, roll_jitter_ms=roll_jitter_ms)
        active.preallocate(config)
        return active

    @classmethod
    def resume(cls, segment: Segment, config: LogConfig) -> ActiveSegment:
        """A loaded or closed segment, to be written on behind its last batch."""
        active = cls(
            segment.directory,
            segment.base_offset,
            segment.size,
            config,
            created_ms=segment.created_ms,
            roll_jitter_ms=segment.roll_jitter_ms,
            known=segment,
        )
        active.is_timestamp_known = segment.is_timestamp_known
        return active

    def preallocate(self, config: LogConfig) -> None:
        """Let the `.log` of a new segment be as long as one may become, with zeros, if the topic is configured so."""
        if self._is_preallocated:
            self.directory.seam.truncate(self._descriptor, segment_size_max(config))

    @property
    def offset_index(self) -> OffsetIndex:
        """As of now."""
        return self._stepped_offset_index(self.indexes)

    @property
    def time_index(self) -> TimeIndex:
        """As of now; without the entry that closing adds."""
        return self._stepped_time_index(self.indexes)

    @property
    def transaction_index(self) -> TransactionIndex:
        """As of now."""
        if self._transaction_index.entry_count != self._aborted.entry_count:
            self._transaction_index = parse_transaction_index(
                self._aborted.to_bytes(), path=self.path(TRANSACTION_INDEX_SUFFIX)
            )
        return self._transaction_index

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp of the batches in ms, -1 without one (`maxTimestampSoFar`)."""
        self.is_timestamp_known = True
        return self.indexes.largest_timestamp

    def max_timestamp_and_offset(self) -> tuple[int, int]:
        """The same in ms, with the last offset of its batch; (-1, base offset) without one."""
        return self.indexes.largest_timestamp, self.indexes.largest_timestamp_offset

    @property
    def first_batch_timestamp(self) -> int | None:
        """Largest timestamp of the first batch in ms, None without a batch (`loadFirstBatchTimestamp`)."""
        if self._first_batch_timestamp is None and self.size:
            table = next(batch_tables(self.data, 0, self.path(LOG_SUFFIX)))
            self._first_batch_timestamp = int(table.max_timestamp[0]) if len(table) else None
        return self._first_batch_timestamp

    def append(self, data: ByteArray, table: BatchTable) -> None:
        """Write batches, and index them.

        Args:
            data: uint8[n], the batches and nothing else.
            table: of `data`; its positions become those in the segment.

        Raises:
            OffsetOverflowError, InvalidOffsetError, IndexFullError: the indexes cannot take them; nothing is written.
            DataDirectoryError: a part of them may be written.
        """
        count = table.count
        table.matrix[fields.POSITION, :count] += self.size
        slots = self.indexes.slots.copy()
        try:
            segment_indexes.step(self.indexes, table, 0, count)
            self.write(data.data)
        except BaseException:
            self.indexes.slots[:] = slots
            raise

    def write(self, data: memoryview) -> None:
        """Write batches, bytes, that are indexed already; raises DataDirectoryError."""
        self.space.extend(self.size, len(data))
        self.directory.seam.write(self._descriptor, data)
        self.is_timestamp_known = True
        self.size += len(data)

    def add_aborted(self, completed: CompletedTransactions) -> None:
        """Write the aborted ones of these transactions to the `.txnindex`, which is made for the first."""
        entry_count = self._aborted.entry_count
        try:
            aborted_transactions.step(self._aborted, completed)
        finally:
            if self._aborted.entry_count > entry_count:
                data = self._aborted.to_bytes(entry_count)
                self._write_behind(TRANSACTION_INDEX_SUFFIX, data, "a transaction was aborted")

    def truncated_to(self, offset: int, config: LogConfig, now_ms: int) -> ActiveSegment:
        """This segment without the batches from the one that holds `offset` on (`LogSegment.truncateTo`).

        The files are replaced, not cut: readers may go on with what they have mapped. This object is not to be used
        any more.
        """
        place = self.place_of(offset)
        size = self.size if place is None else place.position
        was_known = self.is_timestamp_known and self.largest_timestamp >= 0
        self.indexes.truncate_to(offset, size)
        self._aborted.truncate_to(offset)
        if was_known or self.largest_timestamp >= 0:
            _, position = self.offset_index.lookup(self.indexes.largest_timestamp_offset)
            for table in batch_tables(self.data[:size], position, self.path(LOG_SUFFIX)):
                self.indexes.raise_timestamp(table, 0, len(table))
        self.release()
        self._replace_files(size, f"the log is truncated to offset {offset}")
        cut = ActiveSegment(
            self.directory,
            self.base_offset,
            size,
            config,
            created_ms=self.created_ms if size else now_ms,
            roll_jitter_ms=self.roll_jitter_ms,
        )
        cut.indexes = self.indexes
        cut.is_timestamp_known = True
        return cut

    def _replace_files(self, size: int, reason: str) -> None:
        contents: dict[str, Writable] = {
            OFFSET_INDEX_SUFFIX: self.indexes.offset_index_bytes(),
            TIME_INDEX_SUFFIX: self.indexes.time_index_bytes(),
            LOG_SUFFIX: self.data[:size].data,
        }
        if self.has(TRANSACTION_INDEX_SUFFIX):
            contents[TRANSACTION_INDEX_SUFFIX] = self._aborted.to_bytes()
        for kind, content in contents.items():
            self.directory.replace(self.file_name(kind), content, reason)

    def sync(self) -> None:
        """Put the `.log` on the disk, unless it is closed as it was; of any thread.

        What is beside it, the `.txnindex` too, is made anew should the segment not be closed: the recovery point, at
        the log's end, is in this segment, and a load that is not clean recovers the one that holds it.
        """
        self._files.sync(LOG_SUFFIX)

    def close(self) -> Segment:
        """Write the indexes with their last entry; the segment as one that is only read.

        Nothing of it is synced, and nothing waits for a sync that goes on: its files stay open until `sync_segment`.
        """
        if self.is_timestamp_known:
            self.indexes.finish()
        self._write_indexes()
        self.space.give_back(self.size)
        if self._is_preallocated:
            self.directory.seam.truncate(self._descriptor, self.size)
        self._end_writing()
        closed = Segment(self.directory, self.base_offset, "", self.size, known=self)
        closed.is_timestamp_known = True  # as when a segment becomes inactive
        closed.unsynced = self.unsynced
        closed.created_ms, closed.roll_jitter_ms = self.created_ms, self.roll_jitter_ms
        return closed

    def release(self) -> None:
        """Close the files as they are; waits for a sync that goes on."""
        self._end_writing()
        super().release()

    def _end_writing(self) -> None:
        """Let nobody, a kernel neither, write to the descriptor any more."""
        self._descriptor = self.file[append_slots.DESCRIPTOR] = _CLOSED

    def _write_indexes(self) -> None:
        reason = "entries of a segment that is closed"
        offset_entries = self.indexes.offset_index_bytes(self._offset_entry_count_on_disk)
        time_entries = self.indexes.time_index_bytes(self._time_entry_count_on_disk)
        self._write_behind(OFFSET_INDEX_SUFFIX, offset_entries, reason)
        self._write_behind(TIME_INDEX_SUFFIX, time_entries, reason)
        if self.has(TRANSACTION_INDEX_SUFFIX):
            self._write_behind(TRANSACTION_INDEX_SUFFIX, b"", reason)  # to be synced with the others

    def _write_behind(self, kind: str, data: bytes, reason: str) -> None:
        """Add bytes to a file beside the `.log`; it stays open, to be synced."""
        descriptor = self._files.get(kind)
        if descriptor is None:
            descriptor = self._files.add(kind, self.directory.open_end(self.file_name(kind), reason))
        if data:
            self.directory.seam.write(descriptor, data)


def sync_segment(segment: Segment) -> None:
    """Put all files of a closed segment on the disk; raises DataDirectoryError, also if that failed before."""
    if segment.unsynced is not None:
        segment.unsynced.finish()
