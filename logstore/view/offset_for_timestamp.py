"""Search by time: the first record at or after a time, and special offsets (`UnifiedLog.fetchOffsetByTimestamp`).

    found = offset_for_timestamp(segments, bounds, epochs, timestamp_ms)                          in the whole log
    found = fetchable_offset_for_timestamp(segments, bounds, epochs, timestamp_ms, isolation)     as a consumer sees it

Times need not ascend in a log. The result is the first record, by offset, of the first segment that may have one: by
the segment's largest timestamp, or the modification time of its file if no record has a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import BatchTable, ByteArray
from ..columns.legacy import legacy_entry, read_legacy_records
from ..columns.record_table import BatchRecords
from ..errors import CorruptIndexError, LogstoreError
from ..folds.leader_epochs import LeaderEpochs
from ..kernels.scan import batches as scan
from ..layout.batch import MAGIC_V2, NO_TIMESTAMP
from ..layout.file_names import OFFSET_INDEX_SUFFIX
from ..model import FetchIsolation
from .read import ReadBounds
from .segment import Segment
from .segments import Segments

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
NO_OFFSET = -1
NO_EPOCH = -1
_FIRST_COUNT = 8  # batches scanned first: an index leads near


class TimestampAndOffset(NamedTuple):
    """A record, or an end of the log.

    Attributes:
        timestamp: of the record, ms; -1 for none.
        offset: -1 for none.
        leader_epoch: None if unknown; -1 where Kafka says so.
    """

    timestamp: int
    offset: int
    leader_epoch: int | None


def offset_for_timestamp(
    segments: Segments[Segment], bounds: ReadBounds, epochs: LeaderEpochs, timestamp: int, *, record_size_max: int = 0
) -> TimestampAndOffset | None:
    """Return the first record with this timestamp (ms) or a later one, or a special offset; None if there is none.

    The log has no tiered storage, so -5 and -6 give offset -1.

    Args:
        record_size_max: bytes; a larger record of a compressed batch on the way is an error. 0 for any size.
    """
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        earliest = next((epoch for epoch, start in epochs.entries[:1] if start <= bounds.log_start_offset), None)
        return TimestampAndOffset(NO_TIMESTAMP, bounds.log_start_offset, earliest)
    if timestamp == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, bounds.log_end_offset, epochs.latest_epoch)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return TimestampAndOffset(NO_TIMESTAMP, NO_OFFSET, NO_EPOCH)
    if timestamp == MAX_TIMESTAMP:
        return _first_of_max_timestamp(segments, record_size_max)
    for segment in segments:
        if segment.load_largest_timestamp() >= timestamp:
            _, indexed_offset = segment.time_index.lookup(timestamp)
            batches = _batches_from(segment, max(indexed_offset, bounds.log_start_offset))
            return first_record_in(batches, timestamp, bounds.log_start_offset, record_size_max=record_size_max)
    return None


def fetchable_offset_for_timestamp(
    segments: Segments[Segment],
    bounds: ReadBounds,
    epochs: LeaderEpochs,
    timestamp: int,
    isolation: FetchIsolation,
    *,
    record_size_max: int = 0,
) -> TimestampAndOffset | None:
    """Return `offset_for_timestamp` as a consumer gets it (`ListOffsets`): the log ends where `isolation` does."""
    end_offset = isolation.end_offset(bounds)
    if timestamp == LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, end_offset, epochs.latest_epoch)
    found = offset_for_timestamp(segments, bounds, epochs, timestamp, record_size_max=record_size_max)
    if found is None or timestamp in (EARLIEST, EARLIEST_LOCAL) or found.offset < end_offset:
        return found
    return None


def first_record_in(
    batches: Iterable[tuple[ByteArray, BatchTable]],
    timestamp: int,
    start_offset: int,
    *,
    record_size_max: int = 0,
    skips_damage: bool = False,
) -> TimestampAndOffset | None:
    """Return the first record from `start_offset` on with this timestamp or a later one.

    Args:
        batches: (data, table that was scanned from it), in offset order.
        record_size_max: as `offset_for_timestamp`.
        skips_damage: go on behind a batch that cannot be read, instead of raising.
    """
    for data, table in batches:
        for row in np.flatnonzero(table.max_timestamp >= timestamp).tolist():
            try:
                for found, offset in _records(data, table, row, timestamp, start_offset, record_size_max):
                    return TimestampAndOffset(found, offset, _epoch(table, row))
            except LogstoreError:
                if not skips_damage:
                    raise
    return None


def _batches_from(segment: Segment, offset: int) -> Iterator[tuple[ByteArray, BatchTable]]:
    """Yield bytes and batches from where the offset index leads; positions in a table count in the bytes beside it."""
    _, position = segment.offset_index.lookup(offset)
    if position < 0:
        raise CorruptIndexError(
            f"The file channel position cannot be negative, but it is {position}",
            path=segment.path(OFFSET_INDEX_SUFFIX),
            offset=offset,
            expected=f"a position up to {segment.size}",
            found=position,
            advice="recover the directory as not cleanly closed, which makes its indexes anew",
            java_class="java.lang.IllegalArgumentException",
        )
    for _, data, table in segment.batches(position, capacity=_FIRST_COUNT):
        yield data, table


def _records(
    data: ByteArray, table: BatchTable, row: int, timestamp: int, start_offset: int, record_size_max: int
) -> Iterator[tuple[int, int]]:
    """Yield (timestamp, offset) of the batch's records that are at or after both."""
    if table.magic[row] < MAGIC_V2:
        for record in read_legacy_records(legacy_entry(data, table, row)):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                yield record.timestamp, record.offset
        return
    for chunk in BatchRecords(data, table, row, record_size_max=record_size_max).chunks():
        is_wanted = (chunk.timestamp >= timestamp) & (chunk.offset >= start_offset)
        for index in np.flatnonzero(is_wanted).tolist():
            yield int(chunk.timestamp[index]), int(chunk.offset[index])


def _first_of_max_timestamp(segments: Segments[Segment], record_size_max: int) -> TimestampAndOffset | None:
    """Return the first record, by offset, with the largest timestamp of all, in the first batch whose header has it."""
    segment = max(segments, key=lambda segment: segment.max_timestamp_and_offset()[0], default=None)
    if segment is None:
        return None
    timestamp, offset = segment.max_timestamp_and_offset()
    for data, table in _batches_from(segment, offset):
        for row in np.flatnonzero(table.max_timestamp == timestamp).tolist():
            return _with_timestamp(data, table, row, timestamp, record_size_max)
    return None


def _with_timestamp(
    data: ByteArray, table: BatchTable, row: int, timestamp: int, record_size_max: int
) -> TimestampAndOffset | None:
    """Return the first record of a batch with exactly this timestamp; magic 0 has none (`offsetOfMaxTimestamp`)."""
    if table.magic[row] == 0:
        return None
    for found, offset in _records(data, table, row, timestamp, -(2**63), record_size_max):
        if found == timestamp:
            return TimestampAndOffset(timestamp, offset, _epoch(table, row))
    return None


def _epoch(table: BatchTable, row: int) -> int | None:
    epoch = int(table.matrix[scan.PARTITION_LEADER_EPOCH, row])
    return epoch if epoch >= 0 else None
