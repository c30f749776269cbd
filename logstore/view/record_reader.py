"""Records of a log as a consumer gets them (`CompletedFetch`), in offset order.

    reader = RecordReader(segments, bounds, start_offset, FetchIsolation.READ_COMMITTED)
    for chunk in reader.chunks():
        chunk.offset, chunk.columns(), chunk.to_records()
    reader.position                                            where to go on

Control batches are left out, with READ_COMMITTED batches of aborted transactions too. The position moves behind every
batch that was passed, left out or not, so gaps cost nothing and no reader waits at one.

Data stays where it is: keys and values of uncompressed batches are ranges of the mapped segment, those of compressed
ones of the decompressed stream. `read` says how long they are valid.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import numpy as np

from ..columns.decoded_records import Records
from ..model import FetchIsolation
from .batch_checks import bad_batch, bad_window
from .parallel_scan import PARALLEL_SIZE_MIN, in_order
from .read import INT_MAX, Fetched, ReadBounds, read
from .segment import Segment
from .segments import Segments
from .window_decoder import Window, WindowDecoder


class RecordReader:
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
