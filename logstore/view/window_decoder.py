"""Decoding of fetched data, window by window: which batches count, their checksums, their records.

Which batches count is found for one window after the other, as a transaction may end in a later window than it began
in. The rest is independent, so threads share it. Checksums of uncompressed batches are computed while they are decoded,
so their bytes come from memory once.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
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
from .batch_checks import first_bad_row, located
from .read import Fetched

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
