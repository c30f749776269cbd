"""The end of a log, for a reader that follows it: the few batches that were appended since its last read.

A read in general makes a view, maps the segment and decodes window by window, some hundred steps that a large read
does not feel. A tail takes one `pread`, from where the last one ended if a reader goes on there, and one kernel call.
What a tail is not, as far from the end, compressed or damaged, is for `records`: `read_tail` returns None.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from typing import Any

import numpy as np

from ..calls import alone_in_log
from ..columns.batch_table import BatchTable
from ..columns.decoded_records import Headers, Records, TailRecords, kind_of
from ..errors import LogstoreError
from ..folds import committed_filter
from ..folds.committed_filter import CommittedFilter
from ..kernels.decode import records as decode
from ..kernels.decode.tail import BATCH_CAPACITY, RECORD_CAPACITY, TailStruct, decode_tail
from ..kernels.scan import batches as scan
from ..layout.batch import MAGIC_V2
from ..model import FetchIsolation
from .state import LogState

SIZE_MAX = 64 * 1024  # bytes
_SPARE_COUNT_MAX = 4
_ANSWER = struct.Struct("=8q")
_ROW_COUNT, _NEXT_OFFSET, _END = 0, 3, 4
_ANSWER_POSITION = TailStruct.row_count.offset  # type: ignore[attr-defined]
_ROWS = np.arange(BATCH_CAPACITY)


class _Decoder:
    """Memory of a decode, bound to the kernel."""

    def __init__(self) -> None:
        tail = self.tail = TailStruct()
        tail.columns = self.columns = np.empty((scan.COLUMN_COUNT, BATCH_CAPACITY), np.int64)
        tail.state = np.zeros(decode.STATE_COUNT, np.int64)
        tail.records = self.records = np.empty((decode.COLUMN_COUNT, RECORD_CAPACITY), np.int64)
        self._words = self.records.data.cast("B").cast("q")
        tail.record_ends = self.record_ends = np.empty(BATCH_CAPACITY, np.int64)
        self.run = decode_tail.bound(tail).run

    def decode(self, data: bytes, start_offset: int, end_offset: int, *, check_crc: bool) -> tuple[int, ...] | None:
        """Return the result in `TailStruct`, from `row_count` on; None if the data is no tail."""
        tail = self.tail
        tail.size, tail.checks_crc = len(data), check_crc
        tail.start_offset, tail.end_offset = start_offset, end_offset
        return _ANSWER.unpack_from(tail, _ANSWER_POSITION) if self.run(data) == decode.OK else None

    def found(self, data: bytes, answer: tuple[int, ...], *, is_plain: bool) -> TailRecords | Records:
        """Return what was decoded; `is_plain` if all of it is for the reader."""
        row_count, first, count, next_offset, end, epoch, attributes, is_uniform = answer
        if row_count and is_uniform and is_plain:
            return TailRecords(self.to_lists(data, first, count, (attributes, epoch)), next_offset, end)
        return self.to_records(data)

    def to_lists(self, data: bytes, first: int, end: int, kind: tuple[int, int]) -> tuple[list[Any], ...]:
        """Return records as `Records.to_lists` does, if no record has headers and all batches are of one kind."""
        count = end - first
        # numpy takes longer than all else for one record
        one = count == 1
        matrix = (
            [[number] for number in self._words[first::RECORD_CAPACITY]] if one else self.records[:, first:end].tolist()
        )
        offsets, timestamps, _, key_starts, key_sizes, value_starts, value_sizes, _, _ = matrix
        keys = [None if n < 0 else data[i : i + n] for i, n in zip(key_starts, key_sizes, strict=True)]
        values = [None if n < 0 else data[i : i + n] for i, n in zip(value_starts, value_sizes, strict=True)]
        timestamp_type, leader_epoch = kind_of(MAGIC_V2, *kind)
        headers: list[Headers] = [[] for _ in offsets]
        return offsets, timestamps, [timestamp_type] * count, keys, values, headers, [leader_epoch] * count

    def to_records(self, data: bytes) -> Records:
        """Return the records as any other read does."""
        tail, row_count = self.tail, self.tail.row_count
        first, end = tail.first_record, tail.record_count
        ends = self.record_ends[:row_count].copy()
        return Records(
            np.frombuffer(data, np.uint8),
            self.records[:, first:end].copy(),
            end - first,
            BatchTable(self.columns[:, :row_count].copy(), row_count, scan.END, len(data)),
            _ROWS[:row_count],
            np.maximum(ends - first, 0) if first else ends,
            next_offset=tail.next_offset,
        )


_spare: deque[_Decoder] = deque(maxlen=_SPARE_COUNT_MAX)  # append and pop are atomic


def read_tail(
    state: LogState, start_offset: int, isolation: FetchIsolation, *, check_crc: bool, size_max: int
) -> TailRecords | Records | None:
    """Return all records from an offset to the end that `isolation` sets, or None if they are not for this reader.

    Args:
        size_max: bytes of a fetch.
    """
    with alone_in_log(), state.lock:
        if state.failure.is_cut_off:
            return None
        active = state.active
        is_committed = isolation is FetchIsolation.READ_COMMITTED
        end_offset = state.last_stable_offset if is_committed else state.struct.high_watermark
        if not max(active.base_offset, state.struct.log_start_offset) <= start_offset < end_offset:
            return None
        where = state.tail
        if where is not None and where[0] is active and where[1] == start_offset:
            position = where[2]
        else:
            _, position = active.offset_index.lookup(start_offset)
        size = active.size - position
        if state.failure.is_closed or position < 0 or not 0 < size <= min(SIZE_MAX, size_max):
            return None
        aborted = active.aborted.ended_from(start_offset) if is_committed else ()
        descriptor, open_count = active.descriptor, active.open_count
        # nobody writes the log now: read under the lock, where the file has this name
        data = active.read_file(position, size) if descriptor < 0 else None
    if data is None:
        try:
            data = os.pread(descriptor, size, position)
        except OSError:
            return None
        # a file that was closed meanwhile: its descriptor may be that of another
        if active.descriptor != descriptor or active.open_count != open_count:
            return None
    if len(data) != size:
        return None
    try:
        decoder = _spare.pop()
    except IndexError:
        decoder = _Decoder()
    answer = decoder.decode(data, start_offset, end_offset, check_crc=check_crc)
    found = None if answer is None else decoder.found(data, answer, is_plain=not aborted)
    _spare.append(decoder)
    if answer is not None and answer[_ROW_COUNT]:
        # one assignment, of where the next batch begins
        state.tail = active, answer[_NEXT_OFFSET], position + answer[_END]
    return _committed(found, aborted) if aborted and isinstance(found, Records) else found


def _committed(found: Records, aborted: list[tuple[int, int]]) -> Records | None:
    """Leave out the records of aborted transactions: (producer id, first offset) each."""
    batches = found.batches
    try:
        is_aborted = committed_filter.step(CommittedFilter(aborted), found.data, batches, 0, len(batches))
    except LogstoreError:  # a marker that cannot be read: `records` gives what is before it
        return None
    return found.select(~is_aborted[found.rows])
