"""Records of a log as a consumer gets them (`CompletedFetch`), in offset order.

    reader = RecordReader(segments, bounds, start_offset, FetchIsolation.READ_COMMITTED)
    for chunk in reader.chunks():
        chunk.records.offset, chunk.columns(), chunk.to_records()
    reader.position                                            where to go on

Control batches are left out, with READ_COMMITTED batches of aborted transactions too. The position moves behind every
batch that was passed, left out or not, so gaps cost nothing and no reader waits at one.

Data stays where it is: keys and values of uncompressed batches are ranges of the mapped segment, those of compressed
ones of the decompressed stream. `read` says how long they are valid.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.arrow_batches import RecordBatch, record_batch
from ..columns.batch_table import BatchTable, Int64Array
from ..columns.header_columns import columns_of_table
from ..columns.in_order import in_order
from ..columns.record_columns import RecordColumns
from ..columns.record_table import RecordTable
from ..columns.record_windows import BadBatch
from ..columns.window_scan import PARALLEL_SIZE_MIN
from ..kernels.decode import records as fields
from ..kernels.scan import batches as scan
from ..layout.batch import LOG_APPEND_TIME_FLAG
from ..layout.legacy import timestamp_type
from ..layout.utf8 import java_utf8
from ..model import FetchIsolation, TimestampType
from .batch_checks import bad_batch, bad_window
from .read import INT_MAX, Fetched, ReadBounds, read
from .segment import Segment
from .segments import Segments
from .window_decoder import DecodedWindow, WindowDecoder

NO_LEADER_EPOCH = -1

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """One record as Python objects (`ConsumerRecord`); timestamp in ms, header keys as text."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, eq=False)
class RecordChunk:
    """Some consecutive records.

    records: one row each.
    batches, rows: int64[n], the row of `batches` that each record belongs to; positions there count in the data of the
        read, not in the segment.
    next_offset: where a reader goes on behind them.
    """

    records: RecordTable
    batches: BatchTable
    rows: Int64Array
    next_offset: int

    def __len__(self) -> int:
        return len(self.records)

    def columns(self) -> RecordColumns:
        """Return keys, values and timestamps, not copied; and the headers, if any record has one."""
        return columns_of_table(self.records, as_java=False)  # a copy of the log must have the same bytes

    def to_arrow(self, *, is_view: bool = False) -> RecordBatch:
        """Return a `pyarrow.RecordBatch`; `is_view` does not copy keys and values, see `columns.arrow_batches`."""
        return record_batch(self.records, is_view=is_view)

    def part(self, start: int, end: int) -> RecordChunk:
        """Return the records from row `start` to row `end`, exclusive; keys and values are not copied."""
        matrix = np.ascontiguousarray(self.records.matrix[:, start:end])
        next_offset = int(self.records.offset[end]) if end < len(self) else self.next_offset
        return RecordChunk(
            RecordTable(self.records.data, matrix, matrix.shape[1]), self.batches, self.rows[start:end], next_offset
        )

    def to_records(self) -> list[Record]:
        """Return all records as Python objects, copied."""
        return list(map(Record._make, zip(*self.to_lists(), strict=True)))

    @property
    def size(self) -> int:
        """Bytes from the first key to the last header, of some records."""
        table = self.records
        return int(table.matrix[fields.HEADERS_POSITION, len(table) - 1] - table.matrix[fields.KEY_POSITION, 0])

    def to_lists(self) -> tuple[list[Any], ...]:
        """Return the fields of `Record` as one list each, copied."""
        table, data = self.records, self.records.data.data
        columns = table.matrix[:, : table.count].tolist()
        offsets, timestamps, _, key_positions, key_sizes, value_positions, value_sizes, _, header_counts = columns
        rows, batches = self.rows, self.batches
        first = int(rows[0])
        of_batch = slice(first, int(rows[-1]) + 1)
        flags, magics = batches.attributes[of_batch].tolist(), batches.magic[of_batch].tolist()
        plain = TimestampType.CREATE_TIME
        types = [
            plain if magic and not flag & LOG_APPEND_TIME_FLAG else timestamp_type(magic, flag)
            for magic, flag in zip(magics, flags, strict=True)
        ]
        stored = batches.matrix[scan.PARTITION_LEADER_EPOCH, of_batch].tolist()
        epochs = [None if epoch == NO_LEADER_EPOCH else epoch for epoch in stored]
        if len(types) == 1:
            types, epochs = types * len(offsets), epochs * len(offsets)
        else:
            numbers = (rows - first).tolist()
            types, epochs = [types[number] for number in numbers], [epochs[number] for number in numbers]
        headers: list[Headers] = [[] for _ in offsets]
        if any(header_counts):
            for row in np.flatnonzero(table.header_count).tolist():
                headers[row] = [(java_utf8(key), value) for key, value in table.headers(row)]
        keys = [None if n < 0 else data[i : i + n].tobytes() for i, n in zip(key_positions, key_sizes, strict=True)]
        values = [
            None if n < 0 else data[i : i + n].tobytes() for i, n in zip(value_positions, value_sizes, strict=True)
        ]
        return offsets, timestamps, types, keys, values, headers, epochs


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

    def chunks(self) -> Iterator[RecordChunk]:
        """Yield the records from `position` on, about 30,000 at a time; may be called again after an error.

        Raises:
            OffsetOutOfRangeError: `position` is below the log's start, or above its end.
            CorruptRecordError, InvalidRecordError, DecompressionError, UnsupportedCompressionTypeError: a batch cannot
                be read. All records before it have been yielded, and `position` is at or before it.
            CorruptIndexError, DataDirectoryError: as `read`.
        """
        while self._end_offset is None or self.position < self._end_offset:
            fetched = read(self._segments, self._bounds, self.position, self._fetch_size, self._isolation)
            start = self.position
            if fetched.data.size:
                yield from self._fetched_chunks(fetched)
            if self.position <= start:
                return

    def _fetched_chunks(self, fetched: Fetched) -> Iterator[RecordChunk]:
        next_offset = self.position
        with closing(self._decoded(fetched)) as decoded:
            for part in decoded:
                table = part.table
                for window in part.windows:
                    if isinstance(window, BadBatch):
                        raise bad_window(fetched, part.kept, window, self.position)
                    chunk = self._within(RecordChunk(window.records, part.kept, window.rows, 0))
                    if len(chunk):
                        yield chunk
                        # after the yield: an error or a close meanwhile leaves the position at these records
                        self._pass(chunk.next_offset)
                if part.row_end:
                    next_offset = int(table.last_offset[part.row_end - 1]) + 1
                    self._pass(next_offset)
                if self.position == self._end_offset:
                    return
                error = part.error or bad_batch(fetched, table, part.row_end, self.position)
                if error is not None:
                    raise error
        self.position = next_offset  # lower than what was passed if damaged offsets go back

    def _decoded(self, fetched: Fetched) -> Generator[DecodedWindow]:
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

    def _within(self, chunk: RecordChunk) -> RecordChunk:
        """Return the records within position and end, without any that was returned before."""
        offsets = chunk.records.offset
        is_ascending = offsets[0] >= self.position and (offsets[1:] > offsets[:-1]).all()
        if is_ascending and (self._end_offset is None or offsets[-1] < self._end_offset):
            return replace(chunk, next_offset=int(offsets[-1]) + 1)
        is_wanted = offsets >= self.position
        # damaged offsets may go back: no record is returned twice
        is_wanted[1:] &= offsets[1:] > np.maximum.accumulate(offsets[:-1])
        if self._end_offset is not None:
            is_wanted &= offsets < self._end_offset
        matrix = np.ascontiguousarray(chunk.records.matrix[:, : len(chunk)][:, is_wanted])
        records = RecordTable(chunk.records.data, matrix, matrix.shape[1])
        next_offset = int(records.offset[-1]) + 1 if len(records) else self.position
        return RecordChunk(records, chunk.batches, chunk.rows[is_wanted], next_offset)

    def _pass(self, next_offset: int) -> None:
        if self._end_offset is not None:
            next_offset = min(next_offset, self._end_offset)
        self.position = max(self.position, next_offset)


def timestamp_types(batches: BatchTable) -> npt.NDArray[np.int64]:
    """Return the number of the `TimestampType` of each batch."""
    is_log_append_time = batches.attributes & LOG_APPEND_TIME_FLAG != 0
    types = np.where(is_log_append_time, int(TimestampType.LOG_APPEND_TIME), int(TimestampType.CREATE_TIME))
    return np.where(batches.magic == 0, int(TimestampType.NO_TIMESTAMP_TYPE), types)
