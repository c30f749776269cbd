"""From the bounds of the options to the offsets that are read of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from logstore.columns.batch_table import BatchTable, ByteArray
from logstore.columns.record_windows import RecordWindow, record_windows
from logstore.disk.mapped import MappedFile
from logstore.disk.side_files import read_time_index
from logstore.errors import CorruptIndexError, CorruptRecordError, DataDirectoryError, UsageError
from logstore.layout.batch import TRANSACTIONAL_FLAG
from logstore.view.partition_reader import PartitionReader

from .committed import CommittedView, fold_committed, follow_committed
from .directories import ListedPartition, relist
from .options import EARLIEST, LATEST, READ_COMMITTED, Bound, Mode, Options
from .segments import PlannedSegment, plan_segments

LISTING_COUNT_MAX = 5
SCANNED_SIZE_MAX = 1 << 20  # bytes of a segment whose headers are all scanned when a query is planned


@dataclass(frozen=True)
class PartitionRange:
    """What is read of one partition.

    Attributes:
        first_offset, end_offset: end exclusive.
        log_end_offset: behind the last whole batch of the last segment.
        committed: what read_committed leaves out; None for read_uncommitted.
    """

    partition: ListedPartition
    segments: Sequence[PlannedSegment]
    first_offset: int
    end_offset: int
    log_end_offset: int
    committed: CommittedView | None = None


class PartitionBounds:
    """Where a partition begins and ends, looked up once; see `find_bounds`."""

    def __init__(self, partition: ListedPartition, isolation_level: str, readers: dict[str, PartitionReader]) -> None:
        self.partition = partition
        self.segments = plan_segments(partition)
        first = self.segments[0].files.base_offset if self.segments else 0
        self.start_offset = max(partition.log_start_offset, first)
        tail = _scan_tail(self.segments[-1]) if self.segments else _ScannedEnd(0, False, False)
        self.log_end_offset = max(self.start_offset, tail.end_offset)
        self.committed: CommittedView | None = None
        self.end_offset = self.log_end_offset
        if isolation_level == READ_COMMITTED:
            if tail.is_whole:
                self.committed = fold_committed(
                    partition,
                    self.segments[-1],
                    self.start_offset,
                    self.log_end_offset,
                    has_transactions=tail.has_transactions,
                )
            if self.committed is None:
                self.committed = follow_committed(partition.files.path, readers)  # behind the listing: it may know more
            self.end_offset = max(self.start_offset, min(self.committed.last_stable_offset, self.log_end_offset))

    def range(self, first_offset: int, end_offset: int, mode: Mode) -> PartitionRange:
        """Return the offsets from `first_offset` to `end_offset`, exclusive.

        Raises:
            CorruptRecordError: FAILFAST, and damage hides what behind `end_offset` is decided.
        """
        known = self.log_end_offset if self.committed is None else self.committed.known_end_offset
        if known < self.log_end_offset and mode is Mode.FAILFAST and end_offset >= self.end_offset:
            raise CorruptRecordError(
                "damage hides what is decided of the transactions behind it",
                path=self.partition.files.path,
                offset=known,
                expected=f"whole batches to offset {self.log_end_offset}",
                found=f"none that can be followed at offset {known}",
                advice="look with `logstore verify`; mode PERMISSIVE reads what was decided before",
            )
        return PartitionRange(
            self.partition, self.segments, first_offset, end_offset, self.log_end_offset, self.committed
        )

    def offset_at(self, timestamp: int) -> int | None:
        """Of the first record that is not older than `timestamp`, ms; None without one (`offsetsForTimes`)."""
        for segment in self.segments:
            found = _offset_in_segment(segment, timestamp, self.start_offset)
            if found is not None:
                return found
        return None


def find_bounds(
    partition: ListedPartition, isolation_level: str, readers: dict[str, PartitionReader] | None = None
) -> PartitionBounds:
    """The bounds of a partition as it is now; listed anew where a file is gone since it was listed.

    Args:
        readers: by path, of partitions that were followed the last time.

    Raises:
        DataDirectoryError: it changes faster than it can be listed, or is gone.
        LogstoreError: read_committed, and the transactions cannot be followed.
    """
    readers = {} if readers is None else readers
    for _ in range(LISTING_COUNT_MAX - 1):
        try:
            return PartitionBounds(partition, isolation_level, readers)
        except DataDirectoryError:  # retention or the cleaner took a file away
            partition = relist(partition)
    return PartitionBounds(partition, isolation_level, readers)


def find_range(partition: ListedPartition, options: Options) -> PartitionRange:
    """The offsets of a partition that the options ask for.

    Raises:
        UsageError: a bound outside of the log (`failOnDataLoss`), a partition that a bound does not name, or a
            starting time that no record reaches (`startingOffsetsByTimestampStrategy`).
    """
    bounds = find_bounds(partition, options.isolation_level)
    first = resolve(options.starting, bounds, options, is_start=True)
    end = resolve(options.ending, bounds, options, is_start=False)
    return bounds.range(first, max(first, end), options.mode)


def resolve(bound: Bound, bounds: PartitionBounds, options: Options, *, is_start: bool) -> int:
    """The offset that a bound means in a partition."""
    key = bounds.partition.key
    place = bound.place
    if bound.offsets is not None:
        place = _named(bound.offsets, key)
    if bound.timestamp is not None or bound.timestamps is not None:
        timestamp = bound.timestamp if bound.timestamps is None else _named(bound.timestamps, key)
        assert timestamp is not None
        return _at_time(bounds, timestamp, options, is_start=is_start)
    if place == EARLIEST:
        return bounds.start_offset
    if place == LATEST:
        return bounds.end_offset
    assert place is not None
    found = _within(bounds, place, options)
    return found if is_start else min(found, bounds.end_offset)


def _at_time(bounds: PartitionBounds, timestamp: int, options: Options, *, is_start: bool) -> int:
    found = bounds.offset_at(timestamp)
    if found is not None:
        return found if is_start else min(found, bounds.end_offset)
    if is_start and options.starting_without_match == "error":
        raise UsageError(
            f"{_name(bounds.partition)} has no record as young as the starting timestamp",
            found=timestamp,
            advice="set startingOffsetsByTimestampStrategy to latest to read nothing of such a partition",
        )
    return bounds.end_offset


def _within(bounds: PartitionBounds, offset: int, options: Options) -> int:
    """The offset, which must be in the log: others were there once, or are yet to come."""
    if bounds.start_offset <= offset <= bounds.log_end_offset:
        return offset
    if options.fail_on_data_loss:
        raise UsageError(
            f"{_name(bounds.partition)} does not hold offset {offset}",
            expected=f"{bounds.start_offset} to {bounds.log_end_offset}",
            found=offset,
            advice="set failOnDataLoss to false to read what is there",
        )
    return min(max(offset, bounds.start_offset), bounds.log_end_offset)


def _named(numbers: dict[tuple[str, int], int] | object, key: tuple[str, int]) -> int:
    assert isinstance(numbers, dict)
    if key not in numbers:
        raise UsageError(
            f"the bound names no {key[0]}-{key[1]}",
            expected="a number for each partition that is read",
            advice="-2 is the earliest offset, -1 the latest; or choose partitions with assign",
        )
    found: int = numbers[key]
    return found


def _name(partition: ListedPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


class _ScannedEnd(NamedTuple):
    """The last segment of a log.

    Attributes:
        end_offset: behind its last whole batch.
        is_whole: the headers of all of its bytes were scanned.
        has_transactions: some of those are of transactions.
    """

    end_offset: int
    is_whole: bool
    has_transactions: bool


def _scan_tail(last: PlannedSegment) -> _ScannedEnd:
    end, scanned_size, has_transactions = last.files.base_offset, 0, False
    with MappedFile(last.files.log) as log:
        is_small = last.size <= SCANNED_SIZE_MAX  # all of its headers are sooner scanned than its index is read
        for table in last.tables(log, 0 if is_small else last.entries.position_at_or_before(log, 2**63 - 1)):
            if len(table):
                end = int(table.last_offset[-1]) + 1
                scanned_size += int(table.size.sum())
                has_transactions |= bool((table.attributes & TRANSACTIONAL_FLAG).any())
    return _ScannedEnd(end, scanned_size == last.size, has_transactions)


def _offset_in_segment(segment: PlannedSegment, timestamp: int, start_offset: int) -> int | None:
    near = _offset_near(segment, timestamp)
    if near is None:
        return None
    with MappedFile(segment.files.log) as log:
        position = segment.entries.position_at_or_before(log, max(near, start_offset))
        for table in segment.tables(log, position):
            may_hold = (table.max_timestamp >= timestamp) & (table.last_offset >= start_offset)
            for row in np.flatnonzero(may_hold).tolist():
                found = _offset_in_batch(log.data, table, row, timestamp, start_offset)
                if found is not None:
                    return found
    return None


def _offset_near(segment: PlannedSegment, timestamp: int) -> int | None:
    """An offset from which on to look; None where the time index says that all of a segment is older."""
    if segment.files.time_index is None:
        return segment.files.base_offset
    index = read_time_index(segment.files.time_index)
    try:
        index.sanity_check()
    except CorruptIndexError:
        return segment.files.base_offset  # a hint less: the log itself tells
    if not segment.is_last and index.entry_count and int(index.timestamps[-1]) < timestamp:
        return None
    return index.lookup(timestamp)[1]


def _offset_in_batch(data: ByteArray, table: BatchTable, row: int, timestamp: int, start_offset: int) -> int | None:
    for window in record_windows(data, table, np.array([row])):
        if isinstance(window, RecordWindow):
            fits = (window.records.timestamp >= timestamp) & (window.records.offset >= start_offset)
            if fits.any():
                return int(window.records.offset[fits.argmax()])
    return None
