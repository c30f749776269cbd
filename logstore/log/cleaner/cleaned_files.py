"""`.cleaned` files of the segment that a cleaning writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray, scan
from ...config.topic import INDEX_INTERVAL_BYTES, SEGMENT_INDEX_BYTES, LogConfig, segment_size_max
from ...disk.reserved_space import ReservedSpace
from ...errors import CorruptRecordError, LogstoreError
from ...folds import segment_indexes
from ...folds.aborted_transactions import AbortedTransactions
from ...folds.segment_indexes import SegmentIndexes
from ...kernels.scan import batches as fields
from ...layout.file_names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from ..segment.writable_folder import WritableFolder
from .segment_batches import AbortedEntry

_PIECES_MAX = 4  # above it, joining the pieces and writing once is quicker
_DATED = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


class CleanedFiles:
    """One segment as it is written; ended by `finish` or `discard`.

    Attributes:
        base_offset: of the file names.
        size: bytes of the `.log` so far.
    """

    def __init__(self, directory: WritableFolder, base_offset: int, config: LogConfig) -> None:
        """Create an empty `.log`, replacing what another cleaning left."""
        self.base_offset = base_offset
        self.size = 0
        self._directory = directory
        self._indexes = SegmentIndexes(
            base_offset, index_interval_bytes=config[INDEX_INTERVAL_BYTES], index_size_max=config[SEGMENT_INDEX_BYTES]
        )
        self._aborted = AbortedTransactions()
        self._log: int | None = None
        self.discard()
        self._log = directory.create(self._name(LOG_SUFFIX))
        self._space = ReservedSpace(directory.seam, self._log, 0, segment_size_max(config))

    def add(self, pieces: Sequence[ByteArray]) -> None:
        """Write and index batches.

        Raises:
            OffsetOverflowError, InvalidOffsetError, IndexFullError: the indexes refuse them.
            DataDirectoryError: they cannot be written.
        """
        assert self._log is not None, "a segment that is finished takes no more"
        for data in pieces if len(pieces) <= _PIECES_MAX else [np.concatenate(pieces)]:
            table = _whole_batches(data)
            table.matrix[fields.POSITION, : len(table)] += self.size
            try:
                segment_indexes.step(self._indexes, table, 0, len(table))
            except LogstoreError as error:
                error.position = None  # in the new file, which goes; the offset leads to the batch
                raise
            self._space.extend(self.size, data.size)
            self._directory.seam.write(self._log, data.data)
            self.size += data.size

    def add_aborted(self, transactions: Iterable[AbortedEntry]) -> None:
        """Add entries to the `.txnindex`; raises CorruptIndexError for offsets that go back."""
        for entry in transactions:
            self._aborted.add([entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset])

    def finish(self, modified_ms: int) -> None:
        """Write the indexes, sync all files, and date them like the newest source segment."""
        assert self._log is not None, "a segment is finished once"
        self._indexes.finish()
        self._space.give_back(self.size)
        log, self._log = self._log, None
        self._close(log)
        self._write(OFFSET_INDEX_SUFFIX, self._indexes.offset_index_bytes())
        self._write(TIME_INDEX_SUFFIX, self._indexes.time_index_bytes())
        if self._aborted.entry_count:
            self._write(TRANSACTION_INDEX_SUFFIX, self._aborted.to_bytes())
        for kind in _DATED:
            self._directory.set_modified_ms(self._name(kind), modified_ms)

    def discard(self) -> None:
        """Remove the files."""
        if self._log is not None:
            self._directory.seam.close(self._log)
            self._log = None
        for kind in SEGMENT_SUFFIXES:
            self._directory.delete(self._name(kind), "belongs to an unfinished cleaning")

    def _name(self, kind: str) -> str:
        return segment_file_name(self.base_offset, kind + CLEANED_SUFFIX)

    def _write(self, kind: str, content: bytes) -> None:
        descriptor = self._directory.create(self._name(kind))
        if content:
            self._directory.seam.write(descriptor, content)
        self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        try:
            self._directory.seam.sync(descriptor)
        finally:
            self._directory.seam.close(descriptor)


def discard_cleaned_files(directory: WritableFolder) -> None:
    """Remove what an interrupted round left: a load undoes every swap at or above a `.cleaned` file."""
    for name in directory.names():
        if name.endswith(CLEANED_SUFFIX):
            directory.delete(name, "belongs to an unfinished cleaning")


def _whole_batches(data: ByteArray) -> BatchTable:
    """Scan built batches again before they are written: they must be whole."""
    table = scan(data)
    if table.next_position != data.size:
        raise CorruptRecordError(
            "What was cleaned does not end with a whole batch", position=table.next_position, found=data.size
        )
    return table
