"""One segment: the bytes of its `.log` up to a size, and its indexes (`LogSegment`).

Searches follow Kafka's step by step, so that a damaged index leads to the same batch, or error, as in a broker.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from ..columns.batch_table import CHUNK_ROW_COUNT, BatchTable, ByteArray
from ..disk.file_range import FileRange
from ..folds.aborted_transactions import AbortedTransactions
from ..folds.segment_indexes import SegmentIndexes
from ..layout.batch import NO_TIMESTAMP
from ..layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from ..layout.offset_index import OffsetIndex, parse_offset_index
from ..layout.time_index import TimeIndex, parse_time_index
from ..layout.transaction_index import TransactionIndex, parse_transaction_index
from .batch_search import (
    SEARCH_COUNT,
    BatchPlace,
    batch_tables,
    quick_end,
    quick_search,
    read_batch_tables,
    search,
)
from .folder import PartitionFolder

_TAIL_SIZE_MAX = 1 << 16  # bytes


class Segment:
    """A segment in a directory.

    Attributes:
        base_offset: of the file names.
        size: bytes of the `.log` that count; the file may be longer until `segment_recovery.cut`.
        is_timestamp_known: the largest timestamp is known, from recovery, an append, or a request
            (`maxTimestampSoFar`).
        indexes, aborted: of the batches that are read or written here; `indexes` is None where the files count.
    """

    def __init__(
        self,
        directory: PartitionFolder,
        base_offset: int,
        suffix: str,
        size: int,
        *,
        known: Segment | None = None,
        file: FileRange | None = None,
    ) -> None:
        """Take the indexes from `known`, a segment of the same files; else they are read when they are first needed.

        Args:
            file: the `.log` of a segment that another process writes; it is read, never mapped.
        """
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.is_timestamp_known = False
        self.indexes: SegmentIndexes | None = None
        self.aborted = AbortedTransactions()
        self._suffix = suffix
        self._file: FileRange | None = file if known is None else known._file
        self._mapped = np.empty(0, np.uint8)
        self._renaming = threading.RLock()  # held while files are renamed, and to read one by its name
        self._max_timestamp_and_offset: tuple[int, int] | None = None  # None: the last entry of the time index
        self._offset_index: OffsetIndex | None = None if known is None else known.offset_index
        self._time_index: TimeIndex | None = None if known is None else known.time_index
        self._transaction_index: TransactionIndex | None = None if known is None else known.transaction_index

    @property
    def offset_index(self) -> OffsetIndex:
        """Entries of the known batches, else of the file; none without one. Raises DataDirectoryError, as others do."""
        stepped, index = self.indexes, self._offset_index
        if stepped is not None and (index is None or index.entry_count != len(stepped.offset_entries)):
            index = self._offset_index = stepped.to_offset_index(self.path(OFFSET_INDEX_SUFFIX))
        if index is None:
            with self._renaming:
                index = self._offset_index = self._offset_index or self._read_offset_index()
        return index

    @property
    def time_index(self) -> TimeIndex:
        """As `offset_index`, without the entry that a writer adds when it closes the segment."""
        stepped, index = self.indexes, self._time_index
        if stepped is not None and (index is None or index.entry_count != len(stepped.time_entries)):
            index = self._time_index = stepped.to_time_index(self.path(TIME_INDEX_SUFFIX))
        if index is None:
            with self._renaming:
                index = self._time_index = self._time_index or self._read_time_index()
        return index

    @property
    def transaction_index(self) -> TransactionIndex:
        """The aborted transactions whose marker is in the segment; as `offset_index`."""
        index = self._transaction_index
        if index is None:
            with self._renaming:
                index = self._transaction_index = self._transaction_index or self._read_transaction_index()
        if self.indexes is not None and index.entry_count != self.aborted.entry_count:
            path = self.path(TRANSACTION_INDEX_SUFFIX)
            index = self._transaction_index = parse_transaction_index(self.aborted.to_bytes(), path=path)
        return index

    def load_largest_timestamp(self) -> int:
        """Return the largest timestamp of the records, ms (`LogSegment.largestTimestamp`).

        If no record is known to have one, it is the modification time of the file.
        """
        self.is_timestamp_known = True
        timestamp, _ = self.max_timestamp_and_offset()
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        """Modification time of the `.log`, ms; 0 without the file."""
        return self.directory.modified_ms(self.file_name(LOG_SUFFIX))

    def load_first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch in ms, -1 without a batch (`loadFirstBatchTimestamp`)."""
        _, _, table = next(self.batches(0, capacity=1))
        return int(table.max_timestamp[0]) if len(table) else NO_TIMESTAMP

    @property
    def data(self) -> ByteArray:
        """Bytes of the `.log` that count, uint8[size], mapped, or copied as `read` does; kept as long as needed."""
        return self._mapped[: self.size] if self._file is None else self.read(0, self.size)

    def read(self, position: int, size: int) -> ByteArray:
        """Return bytes of the `.log`, uint8[size], read-only: mapped, or copied if another process may cut the file."""
        if self._file is None:
            return self.data[position : position + size]
        return self._file.read_exactly(position, size)

    def batches(self, position: int, *, capacity: int = CHUNK_ROW_COUNT) -> Iterator[tuple[int, ByteArray, BatchTable]]:
        """Yield the batches from `position` to the end, see `batch_tables`: byte, bytes from there on, table.

        Positions in the table count in those bytes. Checksums are not computed.

        Raises:
            CorruptRecordError: batches end before the segment does; in Kafka's words.
            DataDirectoryError: as `read`.
        """
        path = self.path(LOG_SUFFIX)
        if self._file is not None:
            yield from read_batch_tables(self.read, position, self.size, path, capacity=capacity)
            return
        data = self.data
        for table in batch_tables(data, position, path, first_capacity=capacity):
            yield 0, data, table

    def view(self) -> Segment:
        """Return the segment as it is now, for readers while appends go on.

        Its bytes are mapped, or its file is open, so the file may be renamed or removed.
        """
        view = Segment(self.directory, self.base_offset, self._suffix, self.size, known=self)
        if self._file is None:
            view._mapped = self.data
        view._max_timestamp_and_offset = self.max_timestamp_and_offset()
        return view

    def file_name(self, kind: str) -> str:
        """Return the name of one of the segment's files."""
        return segment_file_name(self.base_offset, kind + self._suffix)

    def path(self, kind: str) -> str:
        """Return the path of one of the segment's files."""
        return self.directory.file(self.file_name(kind))

    def has(self, kind: str) -> bool:
        """Return whether the segment has this file."""
        return self.directory.exists(self.file_name(kind))

    def _read_offset_index(self) -> OffsetIndex:
        content = self._content(OFFSET_INDEX_SUFFIX)
        return parse_offset_index(content, base_offset=self.base_offset, path=self.path(OFFSET_INDEX_SUFFIX))

    def _read_time_index(self) -> TimeIndex:
        content = self._content(TIME_INDEX_SUFFIX)
        return parse_time_index(content, base_offset=self.base_offset, path=self.path(TIME_INDEX_SUFFIX))

    def _read_transaction_index(self) -> TransactionIndex:
        return parse_transaction_index(
            self._content(TRANSACTION_INDEX_SUFFIX),
            path=self.path(TRANSACTION_INDEX_SUFFIX),
            version_size=self.directory.kafka.transaction_index_version_size,
        )

    def place_of(self, offset: int) -> BatchPlace | None:
        """Return the batch that a read of `offset` starts with, None behind the last one (`translateOffset`).

        Raises CorruptRecordError or DataDirectoryError if there is no batch where the index leads.
        """
        _, position = self.offset_index.lookup(offset)
        position = max(position, 0)
        if self._file is None and (found := quick_search(self.data, offset, position)).is_answer:
            return found.place
        return search(self.batches(position, capacity=SEARCH_COUNT), offset)

    def next_offset(self) -> int:
        """Return the offset behind the last batch, the base offset without one (`readNextOffset`)."""
        return self.highest_end()[0]

    def highest_end(self) -> tuple[int, int, int]:
        """Return `next_offset`, the size of the batches up to there, and the offset behind the highest batch.

        The highest from the last index entry on; it is another one where the last batch goes back.
        """
        index = self.offset_index
        last_indexed_offset = int(index.offsets[-1]) if index.entry_count else self.base_offset
        quick = self._quick_end(last_indexed_offset)
        if quick is not None:
            return quick, self.size, quick
        place = self.place_of(last_indexed_offset)
        next_offset = highest = self.base_offset
        position = 0
        if place is not None:
            for start, _, table in self.batches(place.position, capacity=SEARCH_COUNT):
                position = start + table.next_position
                if len(table):
                    next_offset = int((table.last_offset[-1:] + np.int64(1))[0])  # wraps around as in Java
                    highest = max(highest, int(table.last_offset.max()) + 1)
        return next_offset, position, highest

    def _quick_end(self, offset: int) -> int | None:
        """Compute it with `quick_end`: little lies behind the last index entry, and is read faster than mapped."""
        _, position = self.offset_index.lookup(offset)
        size = self.size - position
        if position < 0 or not 0 < size <= _TAIL_SIZE_MAX:
            return None
        with FileRange(self.path(LOG_SUFFIX)) as log:
            tail = log.read(position, size)
        return quick_end(tail, offset) if tail.size == size else None

    def max_timestamp_and_offset(self) -> tuple[int, int]:
        """Return the largest timestamp (ms) and the last offset of its batch; (-1, base offset) without one.

        A segment that is not written has its largest timestamp in the index (`readMaxTimestampAndOffsetSoFar`).
        """
        if self.indexes is not None:
            return self.indexes.largest_timestamp, self.indexes.largest_timestamp_offset
        if self._max_timestamp_and_offset is not None:
            return self._max_timestamp_and_offset
        index = self.time_index
        if not index.entry_count:
            return NO_TIMESTAMP, self.base_offset
        return int(index.timestamps[-1]), int(index.offsets[-1])

    def _content(self, kind: str) -> bytes:
        return self.directory.read(self.file_name(kind)) if self.has(kind) else b""
