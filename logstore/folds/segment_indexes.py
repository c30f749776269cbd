"""Offset index and time index of one segment: one rule adds to both (`LogSegment.append`, `LogSegment.recover`).

    state = SegmentIndexes(base_offset)             # a new segment, or one to recover from position 0
    state = SegmentIndexes.resume(base_offset, …)   # a loaded segment that is appended to
    step(state, table, first_row, row_end)          # these batches are in the segment
    state.finish()                                  # the segment rolls, closes, or is recovered to its end
    state.offset_index_bytes(), state.time_index_bytes()

A batch gets an entry if it lies more than `index_interval_bytes` behind the start of the interval. That is the batch of
the last entry or, before the first, where writing began: 0 in a new or recovered segment, the file's size in a loaded
or truncated one. So a reopened segment gets other entries than a recovered one. The offset entry is (last offset of the
batch, its position). The time entry is (largest timestamp so far, last offset of its batch), added only if the
timestamp is above the last entry's.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from ..columns.batch_table import BatchTable, Int64Array
from ..errors import IndexFullError, InvalidOffsetError, LogstoreError, OffsetOverflowError
from ..kernels.fold import indexes as kernel
from ..layout import offset_index, time_index
from ..layout.batch import NO_TIMESTAMP

INDEX_INTERVAL_BYTES = 4096  # index.interval.bytes
INDEX_SIZE_MAX = 10 * 1024 * 1024  # segment.index.bytes
_ROOM_MIN = 16
_CHANGED = (
    "indexed_position",
    "largest_timestamp",
    "largest_timestamp_offset",
    "offset_entry_count",
    "time_entry_count",
)
_CHANGED_OF = attrgetter(*_CHANGED)


class SegmentIndexes:
    """Entries of both indexes of the segment at `base_offset`, and the state that decides on the next ones.

    Attributes:
        base_offset: of the segment.
        struct: for the kernels; an array in it is replaced when it grows.
    """

    __slots__ = ("base_offset", "struct")

    def __init__(
        self,
        base_offset: int,
        *,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        index_size_max: int = INDEX_SIZE_MAX,
    ) -> None:
        """Begin an empty segment; the arguments are `index.interval.bytes` and `segment.index.bytes`."""
        self.base_offset = base_offset
        self.struct = kernel.IndexStruct()
        self.struct.base_offset = base_offset
        self.struct.interval = index_interval_bytes
        self.struct.offset_entry_count_max = index_size_max // offset_index.ENTRY_SIZE
        self.struct.time_entry_count_max = index_size_max // time_index.ENTRY_SIZE
        self._set_buffers(np.empty((0, 2), np.int64), np.empty((0, 2), np.int64))
        self._set_largest_timestamp(NO_TIMESTAMP, base_offset)

    @classmethod
    def resume(
        cls,
        offset_entries: offset_index.OffsetIndex,
        time_entries: time_index.TimeIndex,
        position: int,
        *,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        index_size_max: int = INDEX_SIZE_MAX,
    ) -> SegmentIndexes:
        """Continue a loaded segment of `position` bytes, with the entries of its files.

        As in Kafka the largest timestamp comes from the last time entry, and the log is not read.
        """
        state = cls(
            offset_entries.base_offset, index_interval_bytes=index_interval_bytes, index_size_max=index_size_max
        )
        state._set_buffers(
            np.stack([offset_entries.offsets, offset_entries.positions], axis=1),
            np.stack([time_entries.timestamps, time_entries.offsets], axis=1),
        )
        state.struct.offset_entry_count = offset_entries.entry_count
        state.struct.time_entry_count = time_entries.entry_count
        state._set_largest_timestamp(*state._last_time_entry())
        state.struct.indexed_position = position
        return state

    @property
    def offset_entries(self) -> Int64Array:
        """int64[n, 2]: last offset and position of the indexed batches; not copied."""
        return self.struct.offset_entries[: self.struct.offset_entry_count]

    @property
    def time_entries(self) -> Int64Array:
        """int64[n, 2]: timestamp in ms and offset; not copied."""
        return self.struct.time_entries[: self.struct.time_entry_count]

    @property
    def largest_timestamp(self) -> int:
        """Largest timestamp so far in ms, -1 without one (`maxTimestampSoFar`)."""
        return self.struct.largest_timestamp

    @property
    def largest_timestamp_offset(self) -> int:
        """Last offset of the batch with it (`shallowOffsetOfMaxTimestampSoFar`)."""
        return self.struct.largest_timestamp_offset

    @property
    def is_full(self) -> bool:
        """True if an index has no room for an entry, so that the segment must roll."""
        struct = self.struct
        return bool(
            struct.offset_entry_count >= struct.offset_entry_count_max
            or struct.time_entry_count >= struct.time_entry_count_max - 1
        )

    def finish(self) -> None:
        """Add the last time entry (`onBecomeInactiveSegment`); raise InvalidOffsetError if offsets go back."""
        timestamp, offset = self.largest_timestamp, self.largest_timestamp_offset
        last_timestamp, last_offset = self._last_time_entry()
        if self.struct.time_entry_count and offset < last_offset:
            raise self._refusal(kernel.TIME_OFFSET_SMALLER, offset)
        if timestamp > last_timestamp:
            self.reserve(1)
            self.struct.time_entries[self.struct.time_entry_count] = timestamp, offset
            self.struct.time_entry_count += 1

    def raise_timestamp(self, table: BatchTable) -> None:
        """Note timestamps of batches that are in the segment already (`readLargestTimestamp`)."""
        timestamps = table.max_timestamp
        if timestamps.size and int(timestamps.max()) > self.largest_timestamp:
            row = int(timestamps.argmax())
            self._set_largest_timestamp(int(timestamps[row]), int(table.last_offset[row]))

    def to_offset_index(self, path: str) -> offset_index.OffsetIndex:
        """Return the entries as an index of the file at `path`, which need not exist.

        Not copied: a writer's lock is held meanwhile, and entries are only added behind these.
        """
        return offset_index.OffsetIndex(path, self.base_offset, 0, *self.offset_entries.T)

    def to_time_index(self, path: str) -> time_index.TimeIndex:
        """Return the time index as `to_offset_index` does; without the entry that `finish` adds."""
        return time_index.TimeIndex(path, self.base_offset, 0, *self.time_entries.T)

    def offset_index_bytes(self, first_entry: int = 0) -> bytes:
        """Return the bytes of the `.index` from entry `first_entry` on."""
        entries = self.offset_entries[first_entry:]
        stored = np.empty(len(entries), offset_index.ENTRY_DTYPE)
        stored["relative_offset"] = entries[:, 0] - self.base_offset
        stored["position"] = entries[:, 1]
        return stored.tobytes()

    def time_index_bytes(self, first_entry: int = 0) -> bytes:
        """Return the bytes of the `.timeindex` from entry `first_entry` on."""
        entries = self.time_entries[first_entry:]
        stored = np.empty(len(entries), time_index.ENTRY_DTYPE)
        stored["timestamp"] = entries[:, 0]
        stored["relative_offset"] = entries[:, 1] - self.base_offset
        return stored.tobytes()

    def reserve(self, count: int) -> None:
        """Make room for `count` more entries in both indexes."""
        self._set_buffers(
            _with_room(self.struct.offset_entries, self.struct.offset_entry_count + count),
            _with_room(self.struct.time_entries, self.struct.time_entry_count + count),
        )

    def mark(self) -> Any:
        """Return all numbers that a step changes; entries need no copy, as steps only append. See `go_back`."""
        return _CHANGED_OF(self.struct)

    def go_back(self, mark: Any) -> None:
        """Restore the indexes at the mark: the batches stepped since did not get into the segment."""
        for name, number in zip(_CHANGED, mark, strict=True):
            setattr(self.struct, name, number)

    def _set_buffers(self, offset_entries: Int64Array, time_entries: Int64Array) -> None:
        """Replace the arrays, and only then tell the kernel their size."""
        self.struct.offset_entries, self.struct.time_entries = offset_entries, time_entries
        self.struct.offset_entry_room, self.struct.time_entry_room = len(offset_entries), len(time_entries)

    def fold(self, table: BatchTable, first_row: int, row_end: int) -> int:
        """Run the kernel on the rows, enlarging full arrays; return its last status."""
        while True:
            status = kernel.fold_indexes(table.matrix, table.capacity, first_row, row_end, self.struct)
            if status != kernel.NO_ROOM:
                return status
            first_row = self.struct.stop_row
            self.reserve(1)

    def refusal(self, status: int, table: BatchTable) -> LogstoreError:
        """Return the error for a kernel status at the row where it stopped, in Kafka's words."""
        row = self.struct.stop_row
        error = self._refusal(status, int(table.last_offset[row]))
        error.position, error.offset = int(table.position[row]), int(table.last_offset[row])
        return error

    def _refusal(self, status: int, offset: int) -> LogstoreError:
        struct = self.struct
        if status == kernel.OFFSET_OVERFLOW:
            return OffsetOverflowError(f"Detected offset overflow at offset {offset} in segment {self.base_offset}")
        if status == kernel.OFFSET_INDEX_FULL:
            count = struct.offset_entry_count
            return IndexFullError(f"Attempt to append to a full index (size = {count}).")
        if status == kernel.TIME_INDEX_FULL:
            return IndexFullError(f"Attempt to append to a full time index (size = {struct.time_entry_count}).")
        if status == kernel.OFFSET_NOT_LARGER:
            return InvalidOffsetError(
                f"Attempt to append an offset {offset} to position {struct.offset_entry_count} no larger than "
                f"the last offset appended ({self.offset_entries[-1, 0]})"
            )
        return InvalidOffsetError(
            f"Attempt to append an offset ({self.largest_timestamp_offset}) to slot {struct.time_entry_count} "
            f"no larger than the last offset appended ({self._last_time_entry()[1]})"
        )

    def _last_time_entry(self) -> tuple[int, int]:
        """Return timestamp and offset of the last time entry; (-1, base offset) without one."""
        if not len(self.time_entries):
            return NO_TIMESTAMP, self.base_offset
        timestamp, offset = self.time_entries[-1].tolist()
        return timestamp, offset

    def _set_largest_timestamp(self, timestamp: int, offset: int) -> None:
        self.struct.largest_timestamp = timestamp
        self.struct.largest_timestamp_offset = offset


def step(state: SegmentIndexes, table: BatchTable, first_row: int, row_end: int) -> None:
    """Step both indexes by rows `first_row` … `row_end` - 1, batches with their positions in the file.

    Raises, with `position` and `offset` of the batch, after stepping the rows before it:
        OffsetOverflowError: a last offset below the base offset, or more than 2^31 - 1 above it.
        InvalidOffsetError: an entry whose offset is not above the last one's.
        IndexFullError: no room by `segment.index.bytes`.
    """
    if first_row >= row_end:
        return
    status = state.fold(table, first_row, row_end)
    if status != kernel.OK:
        raise state.refusal(status, table)


def _with_room(entries: Int64Array, count: int) -> Int64Array:
    if count <= len(entries):
        return entries
    larger = np.empty((max(count, 2 * len(entries), _ROOM_MIN), 2), np.int64)
    larger[: len(entries)] = entries
    return larger
