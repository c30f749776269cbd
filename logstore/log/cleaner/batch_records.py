"""Records of the batches of a table, in runs of whole batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...columns.batch_table import BatchTable, ByteArray, Int64Array
from ...columns.record_table import RecordTable
from ...columns.record_windows import BadBatch, record_windows
from ...kernels.decode import records as decode
from ...kernels.decode.batches import RECORDS_FULL, decode_batches
from ...layout.batch import CODEC_MASK, HEADER_SIZE, MAGIC_V2

_ROOM_MIN = 65_544  # records; columns of a power of two would share the cache's sets


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Consecutive batches with all their records; valid until the next run is requested.

    Attributes:
        rows: int64[n], rows of the batch table, ascending without a gap.
        ends: int64[n], the record behind each batch's last one.
    """

    rows: Int64Array
    records: RecordTable
    ends: Int64Array

    @property
    def starts(self) -> Int64Array:
        """int64[n], each batch's first record."""
        return np.concatenate([[0], self.ends[:-1]])

    @property
    def counts(self) -> Int64Array:
        """int64[n], the record count of each batch."""
        return np.diff(self.ends, prepend=0)


class BatchReader:
    """Reads runs into buffers that are reused."""

    def __init__(self) -> None:
        self._matrix = np.empty((decode.COLUMN_COUNT, _ROOM_MIN), np.int64)
        self._state = np.zeros(decode.STATE_COUNT, np.int64)

    def runs(self, data: ByteArray, table: BatchTable, is_wanted: npt.NDArray[np.bool_]) -> Iterator[BatchRun]:
        """Yield the records of the wanted rows in order: uncompressed batches as many at once as there is room for.

        Args:
            data: uint8, what `table` was scanned from.
            is_wanted: bool[len(table)].

        Raises:
            InvalidRecordError, DecompressionError, …: a batch that does not parse; in Kafka's words.
        """
        is_plain = (table.magic >= MAGIC_V2) & (table.attributes & CODEC_MASK == 0)
        rows = np.flatnonzero(is_wanted)
        # a compressed batch, or one of magic 0 or 1, is a run of its own
        begins = (np.diff(rows) != 1) | ~is_plain[rows[1:]] | ~is_plain[rows[:-1]]
        for run in np.split(rows, np.flatnonzero(begins) + 1):
            if run.size and is_plain[run[0]]:
                yield from self._plain(data, table, int(run[0]), int(run[-1]) + 1)
            elif run.size:
                yield _other(data, table, run)

    def _plain(self, data: ByteArray, table: BatchTable, row: int, row_end: int) -> Iterator[BatchRun]:
        record_rows = np.empty(table.capacity + 1, np.int64)
        while row < row_end:
            room = self._matrix.shape[1]
            status = decode_batches(
                *(data, *table.record_bounds(row, row_end), decode.PLAIN, table.matrix, table.capacity),
                *(row, row_end, self._state, self._matrix, room, record_rows),
            )
            stop = int(self._state[decode.ROW_COUNT])
            if status not in (decode.OK, RECORDS_FULL):
                # the error is that of reading the batch alone
                yield _other(data, table, np.array([stop]))
            if stop == row:
                self._make_room(table, row)
                continue
            records = RecordTable(data, self._matrix, int(record_rows[stop]))
            yield BatchRun(np.arange(row, stop), records, record_rows[row + 1 : stop + 1])
            row = stop

    def _make_room(self, table: BatchTable, row: int) -> None:
        room = min(int(table.record_count[row]), int(table.size[row]) - HEADER_SIZE + 1)
        self._matrix = np.empty((decode.COLUMN_COUNT, max(room, 2 * self._matrix.shape[1])), np.int64)


def _other(data: ByteArray, table: BatchTable, row: Int64Array) -> BatchRun:
    """Read one batch of any kind."""
    parts: list[RecordTable] = []
    for window in record_windows(data, table, row):
        if isinstance(window, BadBatch):
            error = window.error
            error.position, error.offset = int(table.position[row[0]]), int(table.base_offset[row[0]])
            raise error
        parts.append(window.records)
    count = sum(map(len, parts))
    # all chunks of one batch lie in the same buffer
    buffer = parts[0].data if parts else data
    matrix = np.concatenate([part.matrix[:, : part.count] for part in parts], axis=1) if parts else _NO_RECORDS
    return BatchRun(row, RecordTable(buffer, matrix, count), np.array([count]))


_NO_RECORDS = np.empty((decode.COLUMN_COUNT, 0), np.int64)
