"""Recovery of one segment: find the good part of its `.log`, and rebuild its indexes from it (`LogSegment.recover`).

Batches are taken until one is invalid; the rest is to be cut. The old indexes are not read. Files change only when all
is known, the `.log` last and by the caller: until it is cut, an interrupted recovery that runs again finds the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray
from ...columns.legacy import valid_row_count
from ...config.topic import INDEX_INTERVAL_BYTES, SEGMENT_INDEX_BYTES, LogConfig
from ...disk.mapped import FileInMemory, MappedFile
from ...errors import (
    CorruptIndexError,
    CorruptRecordError,
    InvalidOffsetError,
    InvalidRecordError,
    LogstoreError,
    OffsetOverflowError,
)
from ...folds import aborted_transactions, leader_epochs, producer_update, segment_indexes
from ...folds.aborted_transactions import AbortedTransactions
from ...folds.leader_epochs import LeaderEpochs
from ...folds.producer_state import ProducerState
from ...folds.segment_indexes import SegmentIndexes
from ...kernels.scan import batches as fields
from ...layout.batch import HEADER_SIZE
from ...layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from ...layout.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from ...layout.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ...view.parallel_scan import scan_windows
from ..segment.log_segment import LogSegment

_INDEX_ENTRY_SIZES = {OFFSET_INDEX_SUFFIX: OFFSET_ENTRY_SIZE, TIME_INDEX_SUFFIX: TIME_ENTRY_SIZE}
# errors that end a segment at the batch; any other keeps a broker from starting
_BATCH_FAILURES = (CorruptRecordError.java_class, InvalidRecordError.java_class)


@dataclass(slots=True)
class _Scan:
    """The result of reading a segment's good batches.

    Attributes:
        valid_size: bytes up to the end of the last good batch.
        problem: why the scan stopped there; None at a proper end, and for a batch that the end of the file cuts off.
    """

    indexes: SegmentIndexes
    aborted: AbortedTransactions
    valid_size: int = 0
    problem: LogstoreError | None = None


def recover_segment(
    segment: LogSegment,
    producers: ProducerState,
    epochs: LeaderEpochs,
    config: LogConfig,
    write_epochs: Callable[[], None],
) -> int:
    """Rebuild the segment's indexes, and step producers and epochs by its batches; return the bytes to be cut.

    `segment.size` becomes that of the good part and `segment.problem` the reason for the cut; the file itself is cut
    by `cut`.

    Args:
        write_epochs: called before files change (`LeaderEpochFileCache.assign`): a load that finds good indexes does
            not look for the epochs that were found because they were not.

    Raises:
        OffsetOverflowError: an offset that the segment cannot hold; the indexes are those of the batches before.
        InvalidOffsetError: offsets go back, so no index can be built; likewise.
        InvalidTxnStateError, …: batches that keep a broker from starting.
    """
    scan = _Scan(_empty_indexes(segment, config), AbortedTransactions())
    try:
        with segment.map_log() as log:
            _scan(log, segment, scan, producers, epochs)
        truncated_size = segment.size - scan.valid_size
        segment.size = scan.valid_size
        scan.indexes.finish()
    except (OffsetOverflowError, InvalidOffsetError):
        segment.set_indexes(scan.indexes)
        raise
    write_epochs()
    _write_indexes(segment, scan)
    segment.problem = scan.problem
    segment.is_timestamp_known = scan.indexes.largest_timestamp >= 0
    return truncated_size


def empty_segment(segment: LogSegment) -> int:
    """Empty the segment and its indexes; return the bytes to be cut (`truncateTo(base)`).

    The batches before the one that the index gives for the base offset stay: none, unless that offset is there twice.
    Their largest timestamp goes into the time index, as when a log is closed.
    """
    place = segment.place_of(segment.base_offset)
    truncated_size = 0 if place is None else segment.size - place.position
    segment.size -= truncated_size
    kept = SegmentIndexes(segment.base_offset)
    for _, table in segment.mapped_batches(0):
        kept.raise_timestamp(table)
    kept.finish()
    segment.set_indexes(SegmentIndexes(segment.base_offset))
    contents = {OFFSET_INDEX_SUFFIX: b"", TIME_INDEX_SUFFIX: kept.time_index_bytes(), TRANSACTION_INDEX_SUFFIX: b""}
    for kind, content in contents.items():
        if segment.has(kind):
            segment.directory.replace(segment.file_name(kind), content, "offsets in the segment go back")
    segment.forget_transaction_index()
    return truncated_size


def cut(segment: LogSegment) -> None:
    """Truncate the `.log` to the part that counts, and sync it."""
    directory, name = segment.directory, segment.file_name(LOG_SUFFIX)
    size = directory.size(name)
    if size > segment.size:
        why = "the last batch is cut off" if segment.problem is None else segment.problem.message
        directory.truncate(name, segment.size, f"cut {size - segment.size} bytes at byte {segment.size}: {why}")
    else:
        directory.sync_file(name)


def index_segment(segment: LogSegment, table: BatchTable, config: LogConfig) -> SegmentIndexes:
    """Return the indexes of a rolled segment that holds these batches at the table's positions."""
    indexes = _empty_indexes(segment, config)
    segment_indexes.step(indexes, table, 0, len(table))
    indexes.finish()
    return indexes


def _empty_indexes(segment: LogSegment, config: LogConfig) -> SegmentIndexes:
    indexes = SegmentIndexes(
        segment.base_offset,
        index_interval_bytes=config[INDEX_INTERVAL_BYTES],
        index_size_max=config[SEGMENT_INDEX_BYTES],
    )
    indexes.reserve(segment.size // max(config[INDEX_INTERVAL_BYTES], HEADER_SIZE))  # untouched memory costs nothing
    return indexes


def _scan(
    log: MappedFile | FileInMemory,
    segment: LogSegment,
    scan: _Scan,
    producers: ProducerState,
    epochs: LeaderEpochs,
) -> None:
    data = log.data[: segment.size]
    for table in scan_windows(data, 0, data.size, release=log.release):
        valid_count = valid_row_count(data, table)
        row_end, failure = _step_producers(data, table, valid_count, scan, producers)
        _step_indexes(scan.indexes, epochs, table, row_end)
        if failure is not None and failure.java_class not in _BATCH_FAILURES:
            raise failure
        if row_end:
            scan.valid_size = int(table.position[row_end - 1] + table.size[row_end - 1])
        if failure is not None:
            scan.problem = failure
        elif valid_count < len(table):
            scan.problem = _invalid_batch(segment, table, valid_count)
        else:
            scan.problem = table.error(segment.path(LOG_SUFFIX), data.size)
        if scan.problem is not None:
            return


def _step_producers(
    data: ByteArray, table: BatchTable, row_end: int, scan: _Scan, producers: ProducerState
) -> tuple[int, LogstoreError | None]:
    """Step the producers; return the end of the rows that count, and why the next ones do not.

    As in Kafka a batch whose marker cannot be read stays in the log and is indexed; those behind it are cut.
    """
    failure: LogstoreError | None = None
    try:
        completed = producer_update.step(producers, data, table, 0, row_end)
    except LogstoreError as error:
        if error.position is None:
            raise
        failure, row_end = error, int(np.searchsorted(table.position, error.position)) + 1
        completed = producers.buffers.take_completed()
    try:
        aborted_transactions.step(scan.aborted, completed)
    except CorruptIndexError as error:  # an index may refuse a batch before it
        failure, row_end = error, int(np.flatnonzero(table.base_offset[:row_end] == error.offset)[-1]) + 1
    return row_end, failure


def _step_indexes(indexes: SegmentIndexes, epochs: LeaderEpochs, table: BatchTable, row_end: int) -> None:
    try:
        segment_indexes.step(indexes, table, 0, row_end)
    except (OffsetOverflowError, InvalidOffsetError) as error:
        leader_epochs.step_recovered(epochs, table, 0, int(np.searchsorted(table.position, error.position or 0)))
        raise
    leader_epochs.step_recovered(epochs, table, 0, row_end)


def _invalid_batch(segment: LogSegment, table: BatchTable, row: int) -> CorruptRecordError:
    return CorruptRecordError(
        f"Record is corrupt (stored crc = {int(table.matrix[fields.CRC, row])})",
        path=segment.path(LOG_SUFFIX),
        position=int(table.position[row]),
        offset=int(table.base_offset[row]),
    )


def _write_indexes(segment: LogSegment, scan: _Scan) -> None:
    offset_index, time_index = segment.set_indexes(scan.indexes)
    contents = {OFFSET_INDEX_SUFFIX: offset_index, TIME_INDEX_SUFFIX: time_index}
    if scan.aborted.entry_count or segment.has(TRANSACTION_INDEX_SUFFIX):
        contents[TRANSACTION_INDEX_SUFFIX] = scan.aborted.to_bytes()
    if not segment.has(OFFSET_INDEX_SUFFIX):
        # A missing offset index comes last: after a crash before it, the next load finds it missing again.
        contents[OFFSET_INDEX_SUFFIX] = contents.pop(OFFSET_INDEX_SUFFIX)
    for kind, content in contents.items():
        segment.directory.replace(segment.file_name(kind), content, "made anew from the log")
    segment.forget_transaction_index()


def has_sane_indexes(segment: LogSegment) -> bool:
    """Check the indexes as little as a load does (`LogSegment.sanityCheck`); False if they must be rebuilt."""
    if not segment.has(OFFSET_INDEX_SUFFIX):
        return False
    if not segment.has(TIME_INDEX_SUFFIX):
        segment.directory.replace(segment.file_name(TIME_INDEX_SUFFIX), b"", "was missing; lookups scan instead")
    try:
        segment.transaction_index.sanity_check(segment.base_offset)
    except CorruptIndexError as error:
        if error.java_class != CorruptIndexError.java_class:
            raise
        return False
    return True


def require_index_room(active: LogSegment, config: LogConfig) -> None:
    """Check that the active segment's indexes fit the configured size (`AbstractIndex.resize`)."""
    size_max = config[SEGMENT_INDEX_BYTES]
    for kind, entry_count in (
        (OFFSET_INDEX_SUFFIX, active.offset_index.entry_count),
        (TIME_INDEX_SUFFIX, active.time_index.entry_count),
    ):
        entry_size = _INDEX_ENTRY_SIZES[kind]
        limit = size_max // entry_size * entry_size
        if entry_count * entry_size > limit:
            raise CorruptIndexError(
                f"newPosition > limit: ({entry_count * entry_size} > {limit})",
                path=active.path(kind),
                expected=f"at most {limit} bytes by {SEGMENT_INDEX_BYTES}",
                found=entry_count * entry_size,
                advice=f"give a larger {SEGMENT_INDEX_BYTES}, or recover the directory as not cleanly closed",
                java_class="java.lang.IllegalArgumentException",
            )


def trim_indexes(segment: LogSegment) -> None:
    """Cut index files behind the last whole entry (`AbstractIndex.trimToValidSize`)."""
    directory = segment.directory
    for kind, entry_size in _INDEX_ENTRY_SIZES.items():
        name = segment.file_name(kind)
        odd_size = directory.size(name) % entry_size
        if odd_size:
            directory.truncate(name, directory.size(name) - odd_size, "cut behind the last whole entry")
