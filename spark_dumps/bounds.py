"""The bounds of a partition, its last stable offset, and the offsets that the options ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from logstore.columns.batch_table import Int64Array
from logstore.disk.loaded import LoadedFile
from logstore.disk.side_files import read_producer_snapshot, read_time_index, read_transaction_index, topic_id_of
from logstore.disk.system_errors import is_missing
from logstore.errors import (
    CorruptIndexError,
    CorruptRecordError,
    CorruptSnapshotError,
    DataDirectoryError,
    LogstoreError,
    UsageError,
)
from logstore.errors.error import naming_path
from logstore.folds import aborted_transactions, producer_update
from logstore.folds.aborted_transactions import AbortedTransactions
from logstore.folds.producer_state import ProducerState
from logstore.layout.batch import TRANSACTIONAL_FLAG
from logstore.layout.file_names import directory_name
from logstore.layout.producer_snapshot import ProducerSnapshot
from logstore.layout.transaction_index import TransactionIndex
from logstore.view.offset_for_timestamp import first_record_in
from logstore.view.partition_reader import PartitionReader

from .directories import Unlisted
from .listed_partition import ListedPartition, relist
from .options import EARLIEST, LATEST, READ_COMMITTED, Bound, Mode, Options
from .segments import PlannedSegment, plan_segments

LISTING_COUNT_MAX = 5
SCANNED_SIZE_MAX = 1 << 20  # bytes; planning scans all headers of a last segment up to this size
_OFFSET_MAX = 2**63 - 1
_NONE_ABORTED: Int64Array = np.empty((0, 3), np.int64)

Readers = dict[str, PartitionReader]
T = TypeVar("T")


class PartitionBounds:
    """The bounds of a partition at one moment; see `find_bounds`.

    Attributes:
        start_offset: log start offset.
        log_end_offset: behind the last whole batch of the last segment.
        end_offset: exclusive end for a consumer with the isolation level.
        aborted: int64[n, 3], with read_committed: producer id, first offset, and offset of the ABORT marker.
        known_end_offset: behind the last batch that read_committed has followed; damage may follow.
    """

    def __init__(
        self, partition: ListedPartition, isolation_level: str, readers: Readers, *, is_open_ended: bool
    ) -> None:
        self.partition = partition
        self.segments = plan_segments(partition)
        first = self.segments[0].files.base_offset if self.segments else 0
        self.start_offset = max(partition.log_start_offset, first)
        tail = _ScannedEnd(_OFFSET_MAX if is_open_ended else first, True, False)
        if self.segments and not is_open_ended:
            tail = _scan_tail(self.segments[-1])
        self.log_end_offset = self.known_end_offset = max(self.start_offset, tail.end_offset)
        self.end_offset = self.log_end_offset
        self.aborted = _NONE_ABORTED
        if isolation_level == READ_COMMITTED and self.segments and not self._fold(tail):
            self._follow(readers)

    def aborted_between(self, start_offset: int, end_offset: int) -> Int64Array:
        """Return the aborted transactions that have offsets in [start_offset, end_offset)."""
        if not len(self.aborted):
            return self.aborted
        has_some = (self.aborted[:, 2] >= start_offset) & (self.aborted[:, 1] < end_offset)
        return self.aborted[has_some]

    def offset_at(self, timestamp: int) -> int | None:
        """Return the offset of the first record at or after `timestamp`, ms; None without one (`offsetsForTimes`)."""
        for segment in self.segments:
            following = segment.following
            is_whole = following is not None and self.partition.is_durable_below(following)
            found = _offset_in_segment(segment, timestamp, self.start_offset, is_index_whole=is_whole)
            if found is not None:
                return found
        return None

    def _fold(self, tail: _ScannedEnd) -> bool:
        """Find end offset and aborted transactions with the last segment alone; return False if that is not possible.

        It is the fast path of planning, for a last segment that is small and undamaged: the directory is not listed
        again. Transactions that are open from older segments stand in the producer snapshot at its start.
        """
        *before, last = self.partition.files.segments
        if before and not self.partition.is_durable_below(last.base_offset):
            return False
        snapshot = _read_snapshot(self.partition.files.producer_snapshots.get(last.base_offset)) if before else None
        if not tail.is_whole or (before and snapshot is None):
            return False
        paths = [segment.transaction_index for segment in before if segment.transaction_index is not None]
        aborted = _aborted_in(map(read_transaction_index, paths))
        if tail.has_transactions or (snapshot is not None and (snapshot.current_txn_first_offsets >= 0).any()):
            if self.start_offset > last.base_offset or (before and self.start_offset == last.base_offset):
                return False  # the log start has removed batches that the snapshot or the segment have
            state, found = ProducerState(self.partition.name), AbortedTransactions()
            state.start_at(last.base_offset)
            if snapshot is not None:
                state.load(snapshot, last.base_offset, None)  # expired producers have no open transaction
            with LoadedFile(last.log) as log, naming_path(last.log):
                for table in self.segments[-1].tables(log, 0, check_crc=True):
                    if (table.is_valid != 1).any():
                        return False
                    aborted_transactions.step(found, producer_update.step(state, log.data, table, 0, len(table)))
            aborted = np.concatenate([aborted, found.entries[:, :3]])
            stable = state.transactions.last_stable_offset(self.log_end_offset, self.start_offset)
            self.end_offset = max(self.start_offset, stable)
        self.aborted = aborted
        return True

    def _follow(self, readers: Readers) -> None:
        """Take the last stable offset of a reader, which is behind the listing: it may know more.

        Raises:
            InvalidTxnStateError, InvalidRecordError: batches of the last segment cannot be followed.
            CorruptIndexError: a `.txnindex` of an unknown version.
            DataDirectoryError: a file cannot be read.
        """
        path, log_start_offset = self.partition.files.path, self.partition.log_start_offset
        if path in readers:
            readers[path].refresh(log_start_offset)
        else:
            readers[path] = PartitionReader(path, holds_files=False, log_start_offset=log_start_offset)
        view = readers[path].view()
        self.aborted = _aborted_in(segment.transaction_index for segment in view.segments)
        self.known_end_offset = view.bounds.log_end_offset
        self.end_offset = max(self.start_offset, min(view.bounds.last_stable_offset, self.log_end_offset))


class _ScannedEnd(NamedTuple):
    """The result of scanning the last segment of a log.

    Attributes:
        end_offset: behind its last whole batch.
        is_whole: all of its headers were scanned, without damage.
        has_transactions: a scanned batch is transactional.
    """

    end_offset: int
    is_whole: bool
    has_transactions: bool


@dataclass(frozen=True)
class PartitionRange:
    """The offsets of one partition that are read: `first_offset` to `end_offset`, exclusive."""

    bounds: PartitionBounds
    first_offset: int
    end_offset: int

    def require_known(self) -> None:
        """Raise CorruptRecordError if damage hides whether transactions behind the known end are decided."""
        bounds, known = self.bounds, self.bounds.known_end_offset
        if known < bounds.log_end_offset and self.end_offset >= bounds.end_offset:
            raise CorruptRecordError(
                "damage hides whether the transactions behind it are decided",
                path=bounds.partition.files.path,
                offset=known,
                expected=f"whole batches to offset {bounds.log_end_offset}",
                found=f"damage at offset {known}",
                advice="see `logstore verify`; mode PERMISSIVE reads up to the last decided offset",
            )


def find_bounds(
    partition: ListedPartition, isolation_level: str, readers: Readers | None = None, *, is_open_ended: bool = False
) -> PartitionBounds:
    """Return the bounds of a partition now; list it again if a file is gone since it was listed.

    Args:
        readers: by path, kept between calls, so that a partition that was followed before is read from there on.
        is_open_ended: with read_uncommitted, take all that the files have as they are now, and open none of them: the
            end offset is the largest there is.

    Raises:
        DataDirectoryError: the partition changes faster than it can be listed, or is gone.
        LogstoreError: with read_committed, its transactions cannot be followed.
    """
    readers = {} if readers is None else readers
    for _ in range(LISTING_COUNT_MAX - 1):
        try:
            return PartitionBounds(partition, isolation_level, readers, is_open_ended=is_open_ended)
        except DataDirectoryError:  # retention or the cleaner took a file away
            partition = relist(partition)
    return PartitionBounds(partition, isolation_level, readers, is_open_ended=is_open_ended)


def while_files_go(plan: Callable[[], T]) -> T:
    """Return the result of `plan`; call it again if retention or the cleaner took a file away since it was listed.

    Raises DataDirectoryError if the directory changes faster than it can be planned.
    """
    for _ in range(LISTING_COUNT_MAX - 1):
        try:
            return plan()
        except DataDirectoryError as error:
            if not is_missing(error):
                raise
    return plan()


def find_ranges(partitions: Iterable[ListedPartition], options: Options) -> tuple[list[PartitionRange], list[Unlisted]]:
    """Return the offsets of partitions that the options ask for, and the damage that hides some of them.

    Raises:
        LogstoreError: damage, with mode FAILFAST.
        UsageError: a bound is outside the log (`failOnDataLoss`) or does not name the partition, the start is above the
            end, or no record is as young as the starting timestamp (`startingOffsetsByTimestampStrategy`).
    """
    is_open_ended = options.isolation_level != READ_COMMITTED and options.reads_everything
    ranges, hidden = list[PartitionRange](), list[Unlisted]()
    for partition in partitions:
        try:
            ranges.append(_find_range(partition, options, is_open_ended))
            ranges[-1].require_known()
        except (DataDirectoryError, UsageError):
            raise
        except LogstoreError as error:
            if options.mode is Mode.FAILFAST:
                raise
            hidden.append(Unlisted(*partition.key, error))
    return ranges, hidden


def _find_range(partition: ListedPartition, options: Options, is_open_ended: bool) -> PartitionRange:
    bounds = find_bounds(partition, options.isolation_level, is_open_ended=is_open_ended)
    first, end = resolve(options.starting, bounds, options), resolve(options.ending, bounds, options, is_start=False)
    if first is None:
        first = end = bounds.end_offset  # the user said to read nothing of such a partition
    elif end is not None and first > end:
        raise UsageError(
            f"the start of {partition.name} is above its end",
            expected=f"at most offset {end}",
            found=f"offset {first}",
            advice="exchange the bounds, or leave the partition out with assign",
        )
    end = bounds.end_offset if end is None else min(end, bounds.end_offset)
    return PartitionRange(bounds, first, max(first, end))


def require_named(bound: Bound, keys: Iterable[tuple[str, int]]) -> None:
    """Raise UsageError for a bound that names a partition which is not chosen (`validateTopicPartitions`)."""
    if isinstance(bound.number, int):
        return
    unknown = sorted(set(bound.number).difference(keys))
    if unknown:
        raise UsageError(
            f"the bound names {', '.join(directory_name(*key) for key in unknown)}, which is not read",
            expected="a number for each partition that is read, and for no other",
            advice="see subscribe and assign, and the names of the topics in table topics",
        )


def resolve(bound: Bound, bounds: PartitionBounds, options: Options, *, is_start: bool = True) -> int | None:
    """Return the offset of a bound in a partition; None for the latest offset, at a time for that of no record."""
    number = bound.number if isinstance(bound.number, int) else _named(bound, bounds.partition)
    files = bounds.partition.files
    wanted = bound.topic_ids.get(files.topic)
    if wanted is not None and (found := topic_id_of(files.path)) not in (None, wanted):
        raise UsageError(
            f"the offset of {bounds.partition.name} is of another topic of the name",
            expected=f"topic id {wanted}",
            found=found,
            advice="leave the topicId out to begin there in this topic",
        )
    if bound.is_time:
        return _at_time(bounds, number, options, is_start=is_start)
    if number in (EARLIEST, LATEST):
        return bounds.start_offset if number == EARLIEST else None
    return _within(bounds, number, options)


def _at_time(bounds: PartitionBounds, timestamp: int, options: Options, *, is_start: bool) -> int | None:
    found = bounds.offset_at(timestamp)
    if found is None and is_start and options.starting_without_match == "error":
        raise UsageError(
            f"{bounds.partition.name} has no record as young as the starting timestamp",
            found=timestamp,
            advice="set startingOffsetsByTimestampStrategy to latest to read nothing of such a partition",
        )
    return found


def _within(bounds: PartitionBounds, offset: int, options: Options) -> int:
    """Return the offset, or the nearest one in the log; raises UsageError for one outside it (`failOnDataLoss`)."""
    if bounds.start_offset <= offset <= bounds.log_end_offset:
        return offset
    if options.fail_on_data_loss:
        raise UsageError(
            f"{bounds.partition.name} does not hold offset {offset}",
            expected=f"{bounds.start_offset} to {bounds.log_end_offset}",
            found=offset,
            advice="set failOnDataLoss to false to read the offsets that are there",
        )
    return min(max(offset, bounds.start_offset), bounds.log_end_offset)


def _named(bound: Bound, partition: ListedPartition) -> int:
    assert not isinstance(bound.number, int)
    if partition.key not in bound.number:
        ends = "0 is before all times" if bound.is_time else "-2 is the earliest offset, -1 the latest"
        raise UsageError(
            f"the bound names no {partition.name}",
            expected="a number for each partition that is read",
            advice=f"{ends}; or choose partitions with assign",
        )
    return bound.number[partition.key]


def _scan_tail(last: PlannedSegment) -> _ScannedEnd:
    end, scanned_size, has_transactions = last.files.base_offset, 0, False
    with LoadedFile(last.files.log) as log:
        is_small = last.size <= SCANNED_SIZE_MAX  # scanning its headers is faster than reading its index
        for table in last.tables(log, 0 if is_small else last.entries.position_at_or_before(log, _OFFSET_MAX)):
            if len(table):
                end = int(table.last_offset[-1]) + 1
                scanned_size += int(table.size.sum())
                has_transactions |= bool((table.attributes & TRANSACTIONAL_FLAG).any())
    return _ScannedEnd(end, scanned_size == last.size, has_transactions)


def _read_snapshot(path: str | None) -> ProducerSnapshot | None:
    try:
        return None if path is None else read_producer_snapshot(path)
    except CorruptSnapshotError:
        return None  # following the log finds an older one


def _aborted_in(indexes: Iterable[TransactionIndex]) -> Int64Array:
    found = [_NONE_ABORTED]
    for index in indexes:
        index.require_all()
        found.append(np.stack([index.producer_ids, index.first_offsets, index.last_offsets], axis=1))
    return np.concatenate(found)


def _offset_in_segment(
    segment: PlannedSegment, timestamp: int, start_offset: int, *, is_index_whole: bool
) -> int | None:
    near = _offset_near(segment, timestamp, is_index_whole=is_index_whole)
    if near is None:
        return None
    with LoadedFile(segment.files.log) as log:
        position = segment.entries.position_at_or_before(log, max(near, start_offset))
        batches = ((log.data, table) for table in segment.tables(log, position))
        found = first_record_in(batches, timestamp, start_offset, skips_damage=True)
    return None if found is None else found.offset


def _offset_near(segment: PlannedSegment, timestamp: int, *, is_index_whole: bool) -> int | None:
    """Return an offset from which to search; None if the time index says that the whole segment is older."""
    if segment.files.time_index is None:
        return segment.files.base_offset
    index = read_time_index(segment.files.time_index)
    try:
        index.sanity_check()
    except CorruptIndexError:
        return segment.files.base_offset  # the index is only a hint: search the whole segment
    if is_index_whole and index.entry_count and int(index.timestamps[-1]) < timestamp:
        return None
    return index.lookup(timestamp)[1]
