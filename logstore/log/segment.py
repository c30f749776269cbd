"""One segment as recovery sees it: its bytes up to a size, and its indexes (`LogSegment`).

Searches follow Kafka's step by step, so that a damaged index leads to the batch, or to the error, that it leads a
broker to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import BatchTable, scan_chunk
from ..columns.legacy import legacy_entry, read_legacy_records
from ..columns.record_table import DECOMPRESSED_SIZE_MAX
from ..disk.mapped import MappedFile
from ..errors import DataDirectoryError, InvalidRecordError, LogstoreError
from ..folds.segment_indexes import SegmentIndexes
from ..kernels import scan as fields
from ..layout import legacy
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
from .directory import PartitionDirectory

_MAGIC_V2 = 2
RELATIVE_OFFSET_MAX = 2**31 - 1  # offsets in a segment fit 31 bits above its base
ByteArray = npt.NDArray[np.uint8]


class BatchPlace(NamedTuple):
    """Where a batch is (`LogOffsetPosition`)."""

    base_offset: int
    position: int
    size: int


class Segment:
    """A segment of the directory.

    Attributes:
        base_offset: of the file names.
        size: bytes of the `.log` that count; the file may be longer until `cut`.
        offset_index, time_index, transaction_index: what the files hold; an absent file holds nothing.
        problem: why bytes behind `size` do not count; None for a torn tail, or if there are none.
    """

    def __init__(self, directory: PartitionDirectory, base_offset: int, suffix: str, size: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.problem: LogstoreError | None = None
        self._suffix = suffix
        self.offset_index: OffsetIndex = parse_offset_index(b"", base_offset=base_offset, path="")
        self.time_index: TimeIndex = parse_time_index(b"", base_offset=base_offset, path="")
        self.transaction_index: TransactionIndex = parse_transaction_index(b"", path="")
        self.read_indexes()

    @classmethod
    def open(cls, directory: PartitionDirectory, base_offset: int, *, suffix: str = "") -> Segment:
        """The segment with its indexes; a `.log` that is not there is made, empty.

        Raises:
            DataDirectoryError: a file cannot be read, or the `.log` is larger than a segment can be.
        """
        log_name = segment_file_name(base_offset, LOG_SUFFIX + suffix)
        if not directory.exists(log_name):
            directory.replace(log_name, b"", "there was no segment of this offset")
        with MappedFile(directory.file(log_name)) as log:
            size = log.size
        return cls(directory, base_offset, suffix, size)

    def file_name(self, kind: str) -> str:
        """The name of one of the segment's files."""
        return segment_file_name(self.base_offset, kind + self._suffix)

    def path(self, kind: str) -> str:
        """The path of one of the segment's files."""
        return self.directory.file(self.file_name(kind))

    def has(self, kind: str) -> bool:
        """Whether the segment has this file."""
        return self.directory.exists(self.file_name(kind))

    def read_indexes(self) -> None:
        """Take the indexes from their files."""
        self.offset_index = parse_offset_index(
            self._content(OFFSET_INDEX_SUFFIX), base_offset=self.base_offset, path=self.path(OFFSET_INDEX_SUFFIX)
        )
        self.time_index = parse_time_index(
            self._content(TIME_INDEX_SUFFIX), base_offset=self.base_offset, path=self.path(TIME_INDEX_SUFFIX)
        )
        self.transaction_index = parse_transaction_index(
            self._content(TRANSACTION_INDEX_SUFFIX), path=self.path(TRANSACTION_INDEX_SUFFIX)
        )

    @contextmanager
    def log_data(self) -> Iterator[ByteArray]:
        """The bytes of the `.log` that count, uint8[size], mapped; not to be kept."""
        with MappedFile(self.path(LOG_SUFFIX)) as log:
            if log.size < self.size:
                raise DataDirectoryError(
                    "A segment became shorter while it was read",
                    path=log.path,
                    expected=f"{self.size} bytes",
                    found=log.size,
                    advice="stop the process that writes to this directory",
                    java_class="java.io.EOFException",
                )
            yield log.data[: self.size]

    def can_hold(self, offset: int) -> bool:
        """Whether an index of this segment can express the offset."""
        return 0 <= offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def place_of(self, offset: int) -> BatchPlace | None:
        """The batch that a read of `offset` starts with, None behind the last one (`translateOffset`).

        Raises:
            CorruptRecordError, DataDirectoryError: there is no batch where the index leads.
        """
        _, position = self.offset_index.lookup(offset)
        with self.log_data() as data:
            return _search(data, offset, max(position, 0), self.path(LOG_SUFFIX))

    def next_offset(self) -> int:
        """The offset behind the last batch, the base offset if there is none (`readNextOffset`).

        Raises:
            CorruptRecordError, DataDirectoryError: as `place_of`; or the bytes behind the last batch are none.
        """
        index = self.offset_index
        last_indexed_offset = int(index.offsets[-1]) if index.entry_count else self.base_offset
        place = self.place_of(last_indexed_offset)
        if place is None:
            return self.base_offset
        with self.log_data() as data:
            for table in batch_tables(data, place.position, self.path(LOG_SUFFIX)):
                if len(table):
                    next_offset = int((table.last_offset[-1:] + np.int64(1))[0])  # wraps as in Java
        return next_offset

    def set_indexes(self, indexes: SegmentIndexes) -> None:
        """Take the indexes from a fold; the files stay as they are."""
        self.offset_index = parse_offset_index(
            indexes.offset_index_bytes(), base_offset=self.base_offset, path=self.path(OFFSET_INDEX_SUFFIX)
        )
        self.time_index = parse_time_index(
            indexes.time_index_bytes(), base_offset=self.base_offset, path=self.path(TIME_INDEX_SUFFIX)
        )

    def empty(self) -> int:
        """Let the segment begin anew, its indexes too; returns the bytes to be cut (`truncateTo(base)`).

        What stays are the batches before the one that the index gives for the base offset: none, unless that offset is
        there twice. Their largest timestamp goes to the time index, as when the log is closed.
        """
        place = self.place_of(self.base_offset)
        truncated_size = 0 if place is None else self.size - place.position
        self.size -= truncated_size
        kept = SegmentIndexes(self.base_offset)
        with self.log_data() as data:
            for table in batch_tables(data, 0, self.path(LOG_SUFFIX)):
                kept.raise_timestamp(table, 0, len(table))
        kept.finish()
        self.set_indexes(SegmentIndexes(self.base_offset))
        contents = {OFFSET_INDEX_SUFFIX: b"", TIME_INDEX_SUFFIX: kept.time_index_bytes(), TRANSACTION_INDEX_SUFFIX: b""}
        for kind, content in contents.items():
            if self.has(kind):
                self.directory.replace(self.file_name(kind), content, "offsets in the segment go back")
        self.transaction_index = parse_transaction_index(b"", path=self.path(TRANSACTION_INDEX_SUFFIX))
        return truncated_size

    def cut(self) -> None:
        """Make the `.log` as long as what counts, on the disk."""
        name = self.file_name(LOG_SUFFIX)
        size = self.directory.size(name)
        if size > self.size:
            why = "the last batch is cut off" if self.problem is None else self.problem.message
            self.directory.truncate(name, self.size, f"cut {size - self.size} bytes at byte {self.size}: {why}")
        else:
            self.directory.sync_file(name)

    def _content(self, kind: str) -> bytes:
        return self.directory.read(self.file_name(kind)) if self.has(kind) else b""


def batch_tables(data: ByteArray, position: int, path: str) -> Iterator[BatchTable]:
    """The batches from `position` to the end, without checksums.

    Raises:
        CorruptRecordError: the batches do not go on to the end, in Kafka's words.
    """
    while True:
        table = scan_chunk(data, position, data.size)
        yield table
        error = table.error(path, data.size)
        if error is not None:
            raise error
        if table.status != fields.MORE:
            return
        position = table.next_position


def _search(data: ByteArray, offset: int, position: int, path: str) -> BatchPlace | None:
    """`FileRecords.searchForOffsetFromPosition`."""
    previous: BatchPlace | None = None
    previous_last_offset = -1
    for table in batch_tables(data, position, path):
        row = _first_row_from(data, table, offset)
        if row:
            previous = _place(data, table, row - 1)
            previous_last_offset = int(table.last_offset[row - 1])
        if row < len(table):
            place = _place(data, table, row)
            if place.base_offset != offset and previous is not None and previous_last_offset >= offset:
                return previous
            return place
    return previous if previous_last_offset >= offset else None


def _first_row_from(data: ByteArray, table: BatchTable, offset: int) -> int:
    """The first row whose batch begins at `offset` or above; as many as there are rows if none does."""
    is_wrapper = _is_wrapper(table)
    plain = np.flatnonzero((table.base_offset >= offset) & ~is_wrapper)
    end = int(plain[0]) if plain.size else len(table)
    for row in np.flatnonzero(is_wrapper[:end]).tolist():
        if _base_offset(data, table, row) >= offset:
            return int(row)
    return end


def _place(data: ByteArray, table: BatchTable, row: int) -> BatchPlace:
    base_offset = _base_offset(data, table, row) if _is_wrapper(table)[row] else int(table.base_offset[row])
    return BatchPlace(base_offset, int(table.position[row]), int(table.size[row]))


def _is_wrapper(table: BatchTable) -> npt.NDArray[np.bool_]:
    """Whether a row is a compressed message set, whose first offset only its content tells."""
    is_wrapper: npt.NDArray[np.bool_] = (table.magic < _MAGIC_V2) & (
        (table.column(fields.ATTRIBUTES) & legacy.CODEC_MASK) != 0
    )
    return is_wrapper


def _base_offset(data: ByteArray, table: BatchTable, row: int) -> int:
    entry = legacy_entry(data, int(table.position[row]), int(table.size[row]))
    if entry.magic not in (0, 1):
        raise InvalidRecordError(f"Invalid wrapper magic found in legacy deep record iterator {entry.magic}")
    return next(read_legacy_records(entry, DECOMPRESSED_SIZE_MAX)).offset
