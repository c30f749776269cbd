"""Bytes of a log from an offset on, as a fetch gets them (`UnifiedLog.read`, `LocalLog.read`, `LogSegment.read`).

    fetched = read(segments, bounds, start_offset, max_size, FetchIsolation.READ_COMMITTED)

The result is a slice of one segment: mapped, or copied if another process writes the segment. It begins with the whole
batch that holds the offset, so earlier records may come first; it ends at the bound, the segment's end or `max_size`,
so its last batch may be cut off. Readers skip the former and leave the latter to the next read. A read of committed
data comes with the aborted transactions that may have data in it, and some more: the offset index tells only roughly
where the slice ends.

A slice stays valid when the log goes on, rolls, is cleaned, truncated or deleted: none of these cuts a file in place.
Only opening a log does, so slices of a closed log must not be used while it is opened as not cleanly closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..columns.batch_table import ByteArray, Int64Array
from ..errors import CorruptIndexError, OffsetMovedToTieredStorageError, OffsetOutOfRangeError, UsageError
from ..layout.file_names import LOG_SUFFIX
from ..layout.transaction_index import TransactionIndex
from ..model import FetchIsolation
from .batch_search import BatchPlace
from .segment import Segment
from .segments import Segments

INT_MAX = 2**31 - 1
_ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"


class ReadBounds(NamedTuple):
    """How far reads go at one moment.

    Attributes:
        topic_partition: for messages.
        log_start_offset, log_end_offset, high_watermark, last_stable_offset: the first is inclusive, the others
            exclusive.
        remote_start_offset: of records below the log's start that are in remote storage alone; None without any.
    """

    topic_partition: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    remote_start_offset: int | None = None


class OffsetMetadata(NamedTuple):
    """An offset and the place of its batch (`LogOffsetMetadata`).

    Attributes:
        message_offset: the first offset of the batch, which may be below the requested one.
        segment_base_offset: -1 if unknown.
        relative_position: byte in the segment; -1 if unknown.
    """

    message_offset: int
    segment_base_offset: int
    relative_position: int


class AbortedTransaction(NamedTuple):
    """A producer whose transactional batches from an offset on, up to its next ABORT marker, do not count."""

    producer_id: int
    first_offset: int


@dataclass(slots=True, eq=False)  # not frozen: that takes a tenth of a fetch
class Fetched:
    """Result of a read (`FetchDataInfo`), and the bounds it was read under.

    Attributes:
        data: uint8, 1-D, read-only: whole batches, but the last may be cut off; empty at the bound.
        start: where the data begins.
        path: of the `.log` that has the data; None without data.
        is_first_entry_incomplete: `max_size` is smaller than the first batch.
        aborted_transactions: in index order; None unless committed data was requested.
        bounds: those given to `read`.
    """

    data: ByteArray
    start: OffsetMetadata
    path: str | None
    is_first_entry_incomplete: bool
    aborted_transactions: list[AbortedTransaction] | None
    bounds: ReadBounds

    @property
    def position(self) -> int:
        """Byte of the segment where the data begins."""
        return self.start.relative_position


def read(
    segments: Segments[Segment],
    bounds: ReadBounds,
    start_offset: int,
    max_size: int,
    isolation: FetchIsolation,
    *,
    min_one_message: bool = True,
) -> Fetched:
    """Return data from the batch that holds `start_offset`, or the next one, up to the bound of `isolation`.

    Args:
        max_size: upper bound in bytes; with `min_one_message` a larger first batch comes whole.

    Raises:
        OffsetOutOfRangeError: the offset is below the log's start or above its end; at the end the data is empty.
        OffsetMovedToTieredStorageError: the record is in remote storage alone.
        UsageError: `max_size` is negative.
        CorruptRecordError, CorruptIndexError, DataDirectoryError: the files do not lead to the batch.
    """
    if bounds.remote_start_offset is not None and bounds.remote_start_offset <= start_offset < bounds.log_start_offset:
        raise OffsetMovedToTieredStorageError(
            f"Records of {bounds.topic_partition} below offset {bounds.log_start_offset} are in remote storage",
            offset=start_offset,
            advice="read them at a broker with remote.log.storage.system.enable",
        )
    if start_offset < bounds.log_start_offset:
        raise OffsetOutOfRangeError(
            f"Received request for offset {start_offset} for partition {bounds.topic_partition}, but we only have log "
            f"segments starting from offset: {bounds.log_start_offset}.",
            offset=start_offset,
        )
    is_committed = isolation is FetchIsolation.READ_COMMITTED
    if not len(segments) and start_offset == bounds.log_end_offset:  # another process has just created the directory
        return _nothing(OffsetMetadata(start_offset, -1, -1), bounds, [] if is_committed else None)
    end = _end_metadata(segments, bounds, isolation)
    segment = _segment_of(segments, bounds, start_offset)
    if start_offset >= end.message_offset:
        is_at_end = start_offset == end.message_offset
        start = end if is_at_end else offset_metadata(segments, bounds, start_offset)
        return _nothing(start, bounds, [] if is_committed else None)
    if max_size < 0:
        raise UsageError(
            f"Invalid max size {max_size} for log read from segment {_file_records_text(segment)}",
            java_class=_ILLEGAL_ARGUMENT,
        )
    found = segments.place_of(start_offset)
    if found is None:
        return _nothing(_log_end_metadata(segments, bounds), bounds, None)
    return _slice(segments, *found, start_offset, max_size, end, bounds, is_committed, min_one_message)


def offset_metadata(segments: Segments[Segment], bounds: ReadBounds, offset: int) -> OffsetMetadata:
    """Return the place of the batch that holds an offset, or of the next one (`convertToOffsetMetadataOrThrow`).

    Raises:
        OffsetOutOfRangeError: the offset is above the log's end, or below all segments.
        CorruptRecordError, DataDirectoryError: as `read`.
    """
    _segment_of(segments, bounds, offset)
    found = None if offset == bounds.log_end_offset else segments.place_of(offset)
    if found is None:
        return _log_end_metadata(segments, bounds)
    segment, place = found
    return OffsetMetadata(place.base_offset, segment.base_offset, place.position)


def _segment_of(segments: Segments[Segment], bounds: ReadBounds, offset: int) -> Segment:
    segment = segments.floor(offset)
    if offset > bounds.log_end_offset or segment is None:
        raise OffsetOutOfRangeError(
            f"Received request for offset {offset} for partition {bounds.topic_partition}, but we only have log "
            f"segments upto {bounds.log_end_offset}.",
            offset=offset,
        )
    return segment


def _end_metadata(segments: Segments[Segment], bounds: ReadBounds, isolation: FetchIsolation) -> OffsetMetadata:
    """Return where a read ends: at the beginning of the batch that holds the bound."""
    try:
        return offset_metadata(segments, bounds, isolation.end_offset(bounds))
    except OffsetOutOfRangeError:
        return OffsetMetadata(isolation.end_offset(bounds), -1, -1)


def _log_end_metadata(segments: Segments[Segment], bounds: ReadBounds) -> OffsetMetadata:
    active = segments.last
    if active is None:
        return OffsetMetadata(bounds.log_end_offset, -1, -1)
    return OffsetMetadata(bounds.log_end_offset, active.base_offset, active.size)


def _slice(
    segments: Segments[Segment],
    segment: Segment,
    place: BatchPlace,
    start_offset: int,
    max_size: int,
    end: OffsetMetadata,
    bounds: ReadBounds,
    is_committed: bool,
    min_one_message: bool,
) -> Fetched:
    adjusted_size = max(max_size, place.size) if min_one_message else max_size
    end_position = _end_position(segment, end)
    has_data = adjusted_size > 0 and end_position is not None
    size = min((end_position or 0) - place.position, adjusted_size) if has_data else 0
    if size < 0:
        raise CorruptIndexError(
            f"Invalid size: {size} in read from {_file_records_text(segment)}",
            path=segment.path(LOG_SUFFIX),
            offset=start_offset,
            expected=f"the batch of the offset before byte {end_position}",
            found=place.position,
            advice="recover the directory as not cleanly closed, which makes its indexes anew",
            java_class=_ILLEGAL_ARGUMENT,
        )
    data = segment.read(place.position, size)
    aborted = _aborted(segments, segment, place, start_offset, data.size, bounds) if is_committed else None
    return Fetched(
        data=data,
        start=OffsetMetadata(place.base_offset, segment.base_offset, place.position),
        path=segment.path(LOG_SUFFIX),
        is_first_entry_incomplete=has_data and adjusted_size < place.size,
        aborted_transactions=aborted,
        bounds=bounds,
    )


def _end_position(segment: Segment, end: OffsetMetadata) -> int | None:
    if segment.base_offset < end.segment_base_offset:
        return segment.size
    if segment.base_offset == end.segment_base_offset and end.relative_position >= 0:
        return end.relative_position
    return None


def _aborted(
    segments: Segments[Segment], segment: Segment, place: BatchPlace, start_offset: int, size: int, bounds: ReadBounds
) -> list[AbortedTransaction]:
    """Return the aborted transactions of a slice in marker order (`LocalLog.addAbortedTransactions`)."""
    end_offset = segment.offset_index.upper_bound_offset(place.position + size)
    if end_offset is None:
        higher = segments.higher(segment.base_offset)
        end_offset = bounds.log_end_offset if higher is None else higher.base_offset
    found: list[AbortedTransaction] = []
    for index, rows in aborted_entries(segments, segment, start_offset, end_offset):
        found += map(AbortedTransaction, index.producer_ids[rows].tolist(), index.first_offsets[rows].tolist())
    return found


def aborted_entries(
    segments: Segments[Any], segment: Segment | None, start_offset: int, end_offset: int
) -> Iterator[tuple[TransactionIndex, Int64Array]]:
    """Yield the indexes with entries of transactions that have data in [start_offset, end_offset), and their rows.

    Args:
        segment: the one that holds `start_offset`; markers are looked for in it and in those behind it.

    Raises:
        CorruptIndexError: an entry of an unknown version.
    """
    while segment is not None:
        index = segment.transaction_index
        if index.entry_count or index.unknown_version is not None:
            rows, is_complete = index.aborted_rows(fetch_offset=start_offset, upper_bound_offset=end_offset)
            yield index, rows
            if is_complete:
                return
        segment = segments.higher(segment.base_offset)


def _nothing(start: OffsetMetadata, bounds: ReadBounds, aborted: list[AbortedTransaction] | None) -> Fetched:
    return Fetched(np.empty(0, np.uint8), start, None, False, aborted, bounds)


def _file_records_text(segment: Segment) -> str:
    return f"FileRecords(size={segment.size}, file={segment.path(LOG_SUFFIX)}, start=0, end={INT_MAX})"
