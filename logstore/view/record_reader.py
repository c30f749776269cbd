"""Records of a log as a consumer gets them (`CompletedFetch`), in offset order.

    reader = RecordReader(segments, bounds, start_offset, FetchIsolation.READ_COMMITTED)
    for chunk in reader.chunks():
        chunk.offset, chunk.columns(), chunk.to_records()
    reader.position                                            where to go on

Control batches are left out, with READ_COMMITTED batches of aborted transactions too. The position moves behind every
batch that was passed, left out or not, so gaps cost nothing and no reader waits at one.

Data is decoded window by window. Which batches count is found for one window after the other, as a transaction may end
in a later window than it began in. The rest is independent, so threads share it. Checksums of uncompressed batches are
computed while they are decoded, so their bytes come from memory once.

Data stays where it is: keys and values of uncompressed batches are ranges of the mapped segment, those of compressed
ones of the decompressed stream. `read` says how long they are valid.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, BoolArray, compute_is_valid, headers
from ..columns.decoded_records import Records
from ..columns.record_windows import record_windows
from ..errors import LogstoreError
from ..folds import committed_filter
from ..folds.committed_filter import CommittedFilter
from ..kernels.decode.batches import TO_CHECK
from ..layout.batch import CODEC_MASK, HEADER_SIZE, MAGIC_V2
from ..model import FetchIsolation, OfOneProcess
from .batch_checks import bad_batch, bad_window, first_bad_row, located
from .parallel_scan import PARALLEL_SIZE_MIN, in_order
from .read import INT_MAX, Fetched, ReadBounds, read
from .segment import Segment
from .segments import Segments


class RecordReader(OfOneProcess):
    """Reads a log once, up to where it ended when the reader was made.

    Attributes:
        position: the next offset to read.
    """

    def __init__(
        self,
        segments: Segments[Segment],
        bounds: ReadBounds,
        start_offset: int,
        isolation: FetchIsolation,
        *,
        end_offset: int | None = None,
        check_crc: bool = True,
        fetch_size: int = INT_MAX,
    ) -> None:
        """Keep the arguments; nothing is read yet.

        Args:
            end_offset: exclusive; None for the bound of `isolation`.
            check_crc: compute the checksums of all batches that are passed (`check.crcs`).
            fetch_size: bytes read at a time, unless a single batch is larger. Much data is decoded ahead by helper
                threads: a caller that wants little at a time gives a small size.
        """
        self.position = start_offset
        self._segments = segments
        self._bounds = bounds
        self._isolation = isolation
        self._end_offset = end_offset
        self._check_crc = check_crc
        self._fetch_size = fetch_size

    def __repr__(self) -> str:
        return f"<RecordReader {self._bounds.topic_partition}: at {self.position}>"

    def chunks(self) -> Iterator[Records]:
        """Yield the records from `position` on, about 30,000 at a time; may be called again after an error.

        Raises:
            OffsetOutOfRangeError: `position` is below the log's start, or above its end.
            CorruptRecordError, InvalidRecordError, DecompressionError, UnsupportedCompressionTypeError: a batch cannot
                be read. All records before it have been yielded, and `position` is at or before it.
            CorruptIndexError, DataDirectoryError: as `read`.
        """
        while self._end_offset is None or self.position < self._end_offset:
            fetched = read(self._segments, self._bounds, self.position, self._size(), self._isolation)
            start = self.position
            if fetched.data.size:
                yield from self._fetched_chunks(fetched)
            if self.position <= start:
                return

    def _size(self) -> int:
        """Return how many bytes to read next: not many more than reach the end, where the offset index tells."""
        segment = self._segments.floor(self.position)
        if self._end_offset is None or self._fetch_size == INT_MAX or segment is None:
            return self._fetch_size
        index = segment.offset_index
        # an entry has the last offset of its batch: the batch before the end begins at or before this entry
        row = int(np.searchsorted(index.offsets, self._end_offset - 1)) + 1
        if row >= index.entry_count:
            return self._fetch_size
        size = index.positions.item(row) - index.lookup(self.position)[1]
        return min(size, self._fetch_size) if size > 0 else self._fetch_size

    def _fetched_chunks(self, fetched: Fetched) -> Iterator[Records]:
        next_offset = self.position
        with closing(self._decoded(fetched)) as windows:
            for table, _, row_end, window_error, found in windows:
                for records in found:
                    if records.error is not None:
                        raise bad_window(fetched, records, self.position)
                    chunk = self._within(records)
                    if len(chunk):
                        yield chunk
                        # after the yield: an error or a close meanwhile leaves the position at these records
                        self._pass(chunk.next_offset)
                if row_end:
                    next_offset = int(table.last_offset[row_end - 1]) + 1
                    self._pass(next_offset)
                if self.position == self._end_offset:
                    return
                error = window_error or bad_batch(fetched, table, row_end, self.position)
                if error is not None:
                    raise error
        self.position = next_offset  # lower than what was passed if damaged offsets go back

    def _decoded(self, fetched: Fetched) -> Generator[Window]:
        """Decode the data, with helper threads if there is enough of it."""
        decoder = WindowDecoder(
            fetched,
            self.position,
            self._end_offset,
            is_committed=self._isolation is FetchIsolation.READ_COMMITTED,
            check_crc=self._check_crc,
        )
        if fetched.data.size >= PARALLEL_SIZE_MIN:
            return in_order(decoder.next_window, decoder.decode)
        return decoder.decoded()

    def _within(self, records: Records) -> Records:
        """Return the records within position and end, without any that was returned before."""
        offsets = records.offset
        is_ascending = offsets[0] >= self.position and (offsets[1:] > offsets[:-1]).all()
        if not is_ascending or (self._end_offset is not None and offsets[-1] >= self._end_offset):
            is_wanted = offsets >= self.position
            # damaged offsets may go back: no record is returned twice
            is_wanted[1:] &= offsets[1:] > np.maximum.accumulate(offsets[:-1])
            if self._end_offset is not None:
                is_wanted &= offsets < self._end_offset
            records = records.select(is_wanted)
        records.next_offset = int(records.offset[-1]) + 1 if len(records) else self.position
        return records

    def _pass(self, next_offset: int) -> None:
        if self._end_offset is not None:
            next_offset = min(next_offset, self._end_offset)
        self.position = max(self.position, next_offset)


WINDOW_SIZE_MIN, WINDOW_SIZE_MAX = 1024 * 1024, 8 * 1024 * 1024  # bytes of a window, which one thread works on
WINDOW_COUNT_MIN = 8  # of a large fetch: each thread gets some, and the last one is short to wait for
ROW_COUNT_MAX = 1000  # of a window: memory for so many rows is reused, for more it is mapped anew
RECORD_COUNT_MAX = 24_584  # of a table: with fewer, more of Python runs in between, with cold caches
STREAMS_AHEAD_SIZE = 16 * 1024 * 1024  # decompressed bytes of a window that are made ahead


class Window(NamedTuple):
    """Batches, and the records that the reader gets from the first `row_end` of them.

    Attributes:
        is_kept: bool[row_end], which batches have records for the reader.
        error: of the batch behind those, if already known.
        records: in order, once decoded; nothing counts behind an error.
    """

    table: BatchTable
    is_kept: BoolArray
    row_end: int
    error: LogstoreError | None
    records: Iterable[Records] = ()


class WindowDecoder:
    """One pass over the data of a fetch."""

    def __init__(
        self, fetched: Fetched, start_offset: int, end_offset: int | None, *, is_committed: bool, check_crc: bool
    ) -> None:
        """Prepare a pass; batches may yield records before `start_offset` or behind `end_offset` too."""
        self._fetched = fetched
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._is_committed = is_committed
        self._check_crc = check_crc
        size = fetched.data.size
        window_size = min(max(size // WINDOW_COUNT_MIN, WINDOW_SIZE_MIN), WINDOW_SIZE_MAX)
        self._tables = headers(fetched.data, capacity=ROW_COUNT_MAX, window_size=window_size)
        self._filter = CommittedFilter(fetched.aborted_transactions or ())

    def decoded(self) -> Generator[Window]:
        """Yield all windows; records are decoded when asked for."""
        while (window := self.next_window()) is not None:
            yield self._checked(window)

    def next_window(self) -> Window | None:
        """Return the next batches; None after the last. Not for two threads at a time."""
        table = next(self._tables, None)
        if table is None:
            return None
        if not self._is_committed:
            return Window(table, self._has_records(table, len(table)), len(table), None)
        is_aborted, error = self._step_filter(table)
        row_end = is_aborted.size
        return Window(table, self._has_records(table, row_end) & ~is_aborted, row_end, error)

    def decode(self, window: Window) -> Window:
        """Decode the records of a window, except streams that grow too large; for several threads."""
        checked = self._checked(window)
        later = iter(checked.records)
        ready: list[Records] = []
        size = 0
        for records in later:
            ready.append(records)
            if records.data is not self._fetched.data:
                size += records.data.size
            if size > STREAMS_AHEAD_SIZE:
                break
        return checked._replace(records=chain(ready, later))

    def _checked(self, window: Window) -> Window:
        table, row_end = window.table, window.row_end
        if self._check_crc:
            self._check_others(table, self._checked_with_records(window))
        bad_row = first_bad_row(self._fetched, table, self._start_offset, check_crc=self._check_crc)
        error = window.error if row_end <= bad_row else None
        row_end = min(row_end, bad_row)
        kept = _rows_of(table, window.is_kept[:row_end])
        records = record_windows(self._fetched.data, kept, np.arange(len(kept)), RECORD_COUNT_MAX)
        return Window(table, window.is_kept, row_end, error, records)

    def _step_filter(self, table: BatchTable) -> tuple[BoolArray, LogstoreError | None]:
        """Return which batches belong to aborted transactions, up to one that cannot be read, and its error."""
        data = self._fetched.data
        try:
            return committed_filter.step(self._filter, data, table, 0, len(table)), None
        except LogstoreError as error:
            compute_is_valid(data, table)
            row = int(np.searchsorted(table.position, error.position or 0))
            wrong = np.flatnonzero(table.is_valid[: row + 1] == 0)
            row_end = int(wrong[0]) if wrong.size else row
            is_aborted = committed_filter.step(self._filter, data, table, 0, row_end)
            if wrong.size:
                return is_aborted, None  # a wrong checksum is the error to report
            return is_aborted, located(error, self._fetched, int(table.position[row]), int(table.base_offset[row]))

    def _has_records(self, table: BatchTable, row_end: int) -> BoolArray:
        """Return bool[row_end]: batches in reach that are no control batches."""
        is_v2 = table.magic[:row_end] >= MAGIC_V2
        has_records: BoolArray = ~table.is_control[:row_end]
        has_records &= table.last_offset[:row_end] >= self._start_offset
        if self._end_offset is not None:
            has_records &= (table.base_offset[:row_end] < self._end_offset) | ~is_v2
        return has_records

    def _checked_with_records(self, window: Window) -> BoolArray:
        """Return bool[count]: batches whose checksums are computed while decoding; they are marked for it."""
        table = window.table
        is_marked = np.zeros(len(table), np.bool_)
        is_marked[: window.row_end] = window.is_kept
        is_marked &= (table.magic >= MAGIC_V2) & (table.attributes & CODEC_MASK == 0) & (table.size >= HEADER_SIZE)
        is_marked &= table.is_valid < 0
        table.is_valid[is_marked] = TO_CHECK
        return is_marked

    def _check_others(self, table: BatchTable, is_marked: BoolArray) -> None:
        """Compute the checksums of the other rows."""
        if is_marked.all():
            return
        others = _rows_of(table, ~is_marked)
        compute_is_valid(self._fetched.data, others)
        table.is_valid[~is_marked] = others.is_valid


def _rows_of(table: BatchTable, is_wanted: BoolArray) -> BatchTable:
    """Return some of the first rows as a table, for one kernel call; the table itself if these are all rows."""
    if is_wanted.all() and is_wanted.size == len(table):
        return table
    return table.taken(np.flatnonzero(is_wanted))
