"""Fetched data to records, window after window: which batches have some for the reader, their checksums, their records.

Which batches count is found one window after the other, because a transaction may end in a later one than it began
in. The rest needs nothing of other windows. Checksums of plain batches are computed as they are decoded, so that their
bytes come from memory once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, BoolArray, compute_is_valid
from ..columns.record_windows import BadBatch, RecordWindow, record_windows
from ..columns.window_scan import walker
from ..errors import LogstoreError
from ..folds import committed_filter
from ..folds.committed_filter import CommittedFilter
from ..kernels.decode.batches import TO_CHECK
from ..kernels.scan import batches as scan
from ..layout.batch import CODEC_MASK, HEADER_SIZE, MAGIC_V2
from .batch_checks import first_bad_row, located
from .read import Fetched

WINDOW_SIZE_MIN, WINDOW_SIZE_MAX = 1024 * 1024, 8 * 1024 * 1024  # bytes; what a thread works on beside the other
WINDOW_COUNT_MIN = 8  # of what is large enough: both threads are to have some, and the last one little to wait for
ROW_COUNT_MAX = 1000  # of a window: a table of so many is memory that is at hand, a larger one is mapped anew
RECORD_COUNT_MAX = 24_584  # of a table: with fewer there is more of Python in between, whose memory has left the cache
STREAMS_AHEAD_SIZE = 16 * 1024 * 1024  # decompressed bytes of a window that are made before they are asked for


class Window(NamedTuple):
    """Batches, and which of the first `row_end` have records for the reader; `error`: of the batch behind those."""

    table: BatchTable
    is_kept: BoolArray
    row_end: int
    error: LogstoreError | None


class DecodedWindow(NamedTuple):
    """Batches, and the records of those of the first `row_end` that the reader gets.

    Attributes:
        kept: these batches alone: the ones that the rows of `windows` count in.
        windows: in order; a `BadBatch` is the last one that counts.
        error: of the batch behind those, if it is known already.
    """

    table: BatchTable
    kept: BatchTable
    windows: Iterable[RecordWindow | BadBatch]
    row_end: int
    error: LogstoreError | None


class WindowDecoder:
    """One pass over the data of a fetch."""

    def __init__(
        self, fetched: Fetched, start_offset: int, end_offset: int | None, *, is_committed: bool, check_crc: bool
    ) -> None:
        """Records before `start_offset` may be given as well, and behind `end_offset`, in batches that have others."""
        self._fetched = fetched
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._is_committed = is_committed
        self._check_crc = check_crc
        size = fetched.data.size
        window_size = min(max(size // WINDOW_COUNT_MIN, WINDOW_SIZE_MIN), WINDOW_SIZE_MAX)
        self._walk = walker(fetched.data, 0, size, capacity=ROW_COUNT_MAX, window_size=window_size)
        self._filter = CommittedFilter(fetched.aborted_transactions or ())

    def decoded(self) -> Generator[DecodedWindow]:
        """All windows, one after the other; records are decoded when they are asked for."""
        while (window := self.next_window()) is not None:
            yield self._checked(window)

    def next_window(self) -> Window | None:
        """The next batches; None after the last. Not for two threads at a time."""
        table = self._walk()
        if table is None:
            return None
        if not self._is_committed:
            return Window(table, self._has_records(table, len(table)), len(table), None)
        is_aborted, error = self._step_filter(table)
        row_end = is_aborted.size
        return Window(table, self._has_records(table, row_end) & ~is_aborted, row_end, error)

    def decode(self, window: Window) -> DecodedWindow:
        """The records of a window, decoded but for those of streams that grow and grow; for several threads."""
        checked = self._checked(window)
        later = iter(checked.windows)
        ready: list[RecordWindow | BadBatch] = []
        size = 0
        for each in later:
            ready.append(each)
            if isinstance(each, RecordWindow) and each.records.data is not self._fetched.data:
                size += each.records.data.size
            if size > STREAMS_AHEAD_SIZE:
                break
        return checked._replace(windows=chain(ready, later))

    def _checked(self, window: Window) -> DecodedWindow:
        table, row_end = window.table, window.row_end
        if self._check_crc:
            self._check_others(table, self._checked_with_records(window))
        bad_row = first_bad_row(self._fetched, table, self._start_offset, check_crc=self._check_crc)
        error = window.error if row_end <= bad_row else None
        row_end = min(row_end, bad_row)
        kept = _rows_of(table, window.is_kept[:row_end])
        windows = record_windows(self._fetched.data, kept, np.arange(len(kept)), RECORD_COUNT_MAX)
        return DecodedWindow(table, kept, windows, row_end, error)

    def _step_filter(self, table: BatchTable) -> tuple[BoolArray, LogstoreError | None]:
        """Which batches are of aborted transactions, up to one that cannot be read, and what is wrong with that."""
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
                return is_aborted, None  # what is in a batch with a wrong checksum does not matter
            return is_aborted, located(error, self._fetched, int(table.position[row]), int(table.base_offset[row]))

    def _has_records(self, table: BatchTable, row_end: int) -> BoolArray:
        """Batches in reach that are no control batches: bool[row_end]."""
        is_v2 = table.magic[:row_end] >= MAGIC_V2
        has_records: BoolArray = ~table.is_control[:row_end]
        has_records &= table.last_offset[:row_end] >= self._start_offset
        if self._end_offset is not None:
            has_records &= (table.base_offset[:row_end] < self._end_offset) | ~is_v2
        return has_records

    def _checked_with_records(self, window: Window) -> BoolArray:
        """The batches whose checksums are computed as they are decoded; they are marked: bool[count]."""
        table = window.table
        is_marked = np.zeros(len(table), np.bool_)
        is_marked[: window.row_end] = window.is_kept
        is_marked &= (table.magic >= MAGIC_V2) & (table.attributes & CODEC_MASK == 0) & (table.size >= HEADER_SIZE)
        is_marked &= table.is_valid < 0
        table.is_valid[is_marked] = TO_CHECK
        return is_marked

    def _check_others(self, table: BatchTable, is_marked: BoolArray) -> None:
        """Compute the checksums of the rest."""
        if is_marked.all():
            return
        others = _rows_of(table, ~is_marked)
        compute_is_valid(self._fetched.data, others)
        table.is_valid[~is_marked] = others.is_valid


def _rows_of(table: BatchTable, is_wanted: BoolArray) -> BatchTable:
    """Some of the first rows alone, so that one call works on all of them; the table itself if it is all rows."""
    if is_wanted.all() and is_wanted.size == len(table):
        return table
    matrix = table.matrix[:, : is_wanted.size].compress(is_wanted, axis=1)
    return BatchTable(matrix, matrix.shape[1], scan.END, table.next_position)
