"""One round of cleaning (`Cleaner.doClean`).

The keys of the dirty part go into an offset map, as far as it has room (`Cleaner.buildOffsetMap`). Then groups of
segments are each rewritten into one that replaces them (`Cleaner.cleanSegments`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray
from ...columns.decoded_records import Records
from ...columns.record_windows import whole_batch_windows
from ...config.topic import DEDUPE_BUFFER_SIZE, KAFKA_VERSION, SEGMENT_INDEX_BYTES, segment_size_max
from ...errors import LogCleaningAbortedError, OffsetOverflowError
from ...errors.error import naming_path
from ...kernels.rules import RELATIVE_OFFSET_MAX
from ...layout import offset_index, time_index
from ...layout.file_names import LOG_SUFFIX
from ..load.split import split_overflowed_segment
from ..maintain.flush import flush_beside
from ..maintain.swap import delete_snapshots, replace_segments
from ..segment.log_segment import LogSegment
from ..state import LogState
from .choice import Cleanable, reading, require_going_on, require_unchanged, segments_between
from .cleaned_files import CleanedFiles, discard_cleaned_files
from .offset_map import OffsetMap
from .rewriting import ActiveProducers, Round, TableCleaning, retention
from .segment_batches import CleanedTransactions, aborted_transactions, record_count_max, require_record_sizes, tables

DELETE_RETENTION_MS = "delete.retention.ms"


def clean(state: LogState, chosen: Cleanable, now_ms: int, *, buffer_size: int = DEDUPE_BUFFER_SIZE) -> int:
    """Clean what was chosen, as far as the map has room for its keys; one round of a log at a time.

    Appends go on meanwhile: the log's lock is held only while a segment replaces others.

    Args:
        chosen: of `choice.cleanable`.
        now_ms: the time of the round; a new delete horizon is `delete.retention.ms` later.
        buffer_size: bytes of the map, `log.cleaner.dedupe.buffer.size`.

    Returns:
        The offset below which the log is clean now: the next first dirty offset for `cleaner-offset-checkpoint`.

    Raises:
        LogCleaningAbortedError: the log lost segments meanwhile; segments replaced before stay replaced.
        KafkaStorageError: the log cannot be written.
        LogstoreError: see `SegmentCleaning.clean_group`; likewise.
    """
    if not chosen.cleanable_size:
        return chosen.first_dirty_offset
    with state.cleaning_lock:
        return _clean(state, chosen, now_ms, buffer_size)


def _clean(state: LogState, chosen: Cleanable, now_ms: int, buffer_size: int) -> int:
    with state.lock:
        require_going_on(state)
        state.failure.require_writable()  # a swap that was cut off must not be touched: the next load finishes it
        discard_cleaned_files(state.directory)
        clean_segments = segments_between(state, 0, chosen.first_dirty_offset)
        horizon_ms = 0
        if clean_segments:
            horizon_ms = clean_segments[-1].modified_ms - state.config[DELETE_RETENTION_MS]
    offset_map, checked = build_offset_map(
        state,
        chosen.first_dirty_offset,
        chosen.first_uncleanable_offset,
        buffer_size=buffer_size,
    )
    to_high_watermark = state.config[KAFKA_VERSION].cleans_to_high_watermark
    round_ = Round(
        offset_map=offset_map,
        end_offset=state.high_watermark if to_high_watermark else chosen.first_uncleanable_offset,
        now_ms=now_ms,
        delete_retention_ms=state.config[DELETE_RETENTION_MS],
        producers=ActiveProducers(state),
    )
    end_offset = offset_map.latest_offset + 1
    # a value goes because of a newer one: that must not be lost by a crash which the older one would have outlived, nor
    # the marker that committed it, which may be in the active segment
    with reading(state, ()):
        flush_beside(state)
    with state.lock:
        require_going_on(state)
        groups = group_segments(
            segments_between(state, 0, end_offset),
            size_max=segment_size_max(state.config),
            index_size_max=state.config[SEGMENT_INDEX_BYTES],
            first_uncleanable_offset=chosen.first_uncleanable_offset,
        )
    cleaning = SegmentCleaning(state, round_, horizon_ms, checked)
    for group in groups:
        cleaning.clean_group(group)
    return end_offset


def group_segments(
    segments: Sequence[LogSegment], *, size_max: int, index_size_max: int, first_uncleanable_offset: int
) -> list[list[LogSegment]]:
    """Group segments that are cleaned into one (`Cleaner.groupSegmentsBySize`).

    A group is a run that even uncleaned is no larger than one segment may be, and whose offsets one segment can hold.

    Args:
        segments: ascending, closed.
        size_max, index_size_max: bytes of a `.log`, and of each of its indexes.
        first_uncleanable_offset: no segment reaches it.
    """
    groups: list[list[LogSegment]] = []
    sizes = index_sizes = time_index_sizes = 0
    for number, segment in enumerate(segments):
        size = segment.size
        index_size = segment.offset_index.entry_count * offset_index.ENTRY_SIZE
        time_index_size = segment.time_index.entry_count * time_index.ENTRY_SIZE
        is_last = number + 1 == len(segments)
        end_offset = first_uncleanable_offset if is_last else segments[number + 1].base_offset
        fits = (
            bool(groups)
            and sizes + size <= size_max
            and index_sizes + index_size <= index_size_max
            and time_index_sizes + time_index_size <= index_size_max
            and (size == 0 or end_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if not fits:
            groups.append([])
            sizes = index_sizes = time_index_sizes = 0
        groups[-1].append(segment)
        sizes += size
        index_sizes += index_size
        time_index_sizes += time_index_size
    return groups


def build_offset_map(
    state: LogState, start_offset: int, end_offset: int, *, buffer_size: int
) -> tuple[OffsetMap, set[int]]:
    """Map the keys of the data records in [start_offset, end_offset) that no aborted transaction wrote.

    Returns:
        The map, whose `latest_offset` is `end_offset` - 1, or less if the map became full; and the base offsets of the
        segments whose checksums were all verified.

    Raises:
        LogCleaningAbortedError: the log lost segments meanwhile.
        LogstoreError: a batch that cannot be read; as `whole_batch_windows`.
    """
    transactions = CleanedTransactions()
    with state.lock:
        require_going_on(state)
        segments = segments_between(state, start_offset, end_offset)
        if not segments:
            raise LogCleaningAbortedError(
                f"Log {state.topic_partition} lost the segments that were to be cleaned",
                path=state.directory.path,
                expected=f"segments with offsets {start_offset} to {end_offset}",
                found=state.segments.base_offsets,
                advice="choose anew what is to be cleaned",
            )
        transactions.add_aborted(aborted_transactions(state, start_offset, end_offset))
    with reading(state, segments):
        return _read_into_map(state, segments, transactions, start_offset, end_offset, buffer_size=buffer_size)


def _read_into_map(
    state: LogState,
    segments: Sequence[LogSegment],
    transactions: CleanedTransactions,
    start_offset: int,
    end_offset: int,
    *,
    buffer_size: int,
) -> tuple[OffsetMap, set[int]]:
    offset_map = OffsetMap(
        sum(map(record_count_max, segments)),
        buffer_size=buffer_size,
        first_offset=start_offset,
        end_offset=end_offset,
    )
    checked: set[int] = set()
    ends = [*(segment.base_offset for segment in segments[1:]), end_offset]
    for segment, segment_end_offset in zip(segments, ends, strict=True):
        # only the first segment begins below `start_offset`; the others are read whole
        _, position = segment.offset_index.lookup(start_offset)
        with naming_path(segment.path(LOG_SUFFIX)):
            for data, table in tables(segment, position=max(position, 0)):
                require_going_on(state)
                if not put_table(offset_map, transactions, data, table, start_offset, state.rules.record_size_max):
                    return offset_map, checked
        # the segment is done, even if its last batches were cleaned away before
        offset_map.latest_offset = segment_end_offset - 1
        if position <= 0:
            checked.add(segment.base_offset)
    return offset_map, checked


def put_table(
    offset_map: OffsetMap,
    transactions: CleanedTransactions,
    data: ByteArray,
    table: BatchTable,
    start_offset: int,
    record_size_max: int = 0,
) -> bool:
    """Put the records of a table; return False if the map became full before its end."""
    offset_map.begin_table(table)
    is_wanted = ~transactions.discardable(data, table) & ~table.is_control
    for window in whole_batch_windows(data, table, np.flatnonzero(is_wanted)):
        done_count = offset_map.put(window)
        require_record_sizes(data, table, window.batch_rows[window.batch_starts <= done_count], record_size_max)
        if done_count < window.count:
            offset_map.latest_offset = _latest_offset(offset_map, table, window, done_count, start_offset)
            return False
    passed = table.last_offset[table.last_offset >= start_offset]
    if passed.size:
        offset_map.latest_offset = int(passed[-1])
    return True


def _latest_offset(
    offset_map: OffsetMap, table: BatchTable, window: Records, done_count: int, start_offset: int
) -> int:
    """Return the last offset in the map, after a batch that found it full."""
    batch = int(np.searchsorted(window.batch_ends, done_count, side="right"))
    last = offset_map.last_put
    if last is not None and last[0] >= window.batch_starts[batch]:
        return last[1]
    passed = table.last_offset[: window.batch_rows[batch]]
    passed = passed[passed >= start_offset]
    return int(passed[-1]) if passed.size else offset_map.latest_offset


class SegmentCleaning:
    """The groups of one round, in order."""

    def __init__(self, state: LogState, round_: Round, legacy_delete_horizon_ms: int, checked: set[int]) -> None:
        """Prepare a round's cleaning of segments.

        Args:
            legacy_delete_horizon_ms: tombstones of magic 0 and 1 stay in files modified after it.
            checked: base offsets of segments whose checksums were verified.
        """
        self._state = state
        self._round = round_
        self._legacy_delete_horizon_ms = legacy_delete_horizon_ms
        self._checked = checked
        self._transactions = CleanedTransactions()

    def clean_group(self, group: Sequence[LogSegment]) -> None:
        """Clean closed segments, ascending, into one.

        Raises:
            LogCleaningAbortedError: the log lost segments meanwhile, or one had to be split: its offsets were too high.
            DataDirectoryError: nothing was replaced; a KafkaStorageError if a part was.
            LogstoreError: a batch cannot be read or built; nothing was replaced.
        """
        with reading(self._state, group):
            cleaned = self._write(group)
        self._replace(cleaned, group)

    def _write(self, group: Sequence[LogSegment]) -> CleanedFiles:
        state, current = self._state, group[0]
        cleaned = CleanedFiles(state.directory, group[0].base_offset, state.config)
        try:
            for number, current in enumerate(group):
                following = group[number + 1] if number + 1 < len(group) else None
                end_offset = current.next_offset() if following is None else following.base_offset
                self._clean_segment(current, end_offset, cleaned)
            cleaned.finish(group[-1].modified_ms)
        except OffsetOverflowError as error:
            cleaned.discard()
            self._split(current)
            raise LogCleaningAbortedError(
                f"Caught segment overflow error during cleaning: {error.message}",
                path=current.path(LOG_SUFFIX),
                found="offsets that one segment cannot hold; it is split now",
                advice="clean the log again",
            ) from error
        except BaseException:
            cleaned.discard()
            raise
        return cleaned

    def _clean_segment(self, segment: LogSegment, end_offset: int, cleaned: CleanedFiles) -> None:
        transactions = self._transactions
        with self._state.lock:
            require_unchanged(self._state, [segment])
            transactions.add_aborted(aborted_transactions(self._state, segment.base_offset, end_offset))
        keeps_legacy_tombstones = segment.modified_ms > self._legacy_delete_horizon_ms
        with naming_path(segment.path(LOG_SUFFIX)):
            for data, table in tables(segment, is_checked=segment.base_offset in self._checked):
                require_going_on(self._state)
                is_discardable = transactions.discardable(data, table)
                retained = retention(
                    self._round, table, is_discardable, keeps_legacy_tombstones=keeps_legacy_tombstones
                )
                is_read = ~retained.is_discarded
                require_record_sizes(data, table, np.flatnonzero(is_read), self._state.rules.record_size_max)
                cleaned.add(TableCleaning(self._round, data, table, retained).pieces())
                cleaned.add_aborted(transactions.take_needed())

    def _replace(self, cleaned: CleanedFiles, group: Sequence[LogSegment]) -> None:
        state = self._state
        with state.lock:
            # checked under the lock that the swap holds too: retention cannot come between
            try:
                require_unchanged(state, group)
            except LogCleaningAbortedError:
                cleaned.discard()
                raise
            with state.failure.poisoned_by("Error while replacing segments of"):
                replace_segments(state, cleaned.base_offset, group, self._round.now_ms)

    def _split(self, segment: LogSegment) -> None:
        state = self._state
        with state.lock:
            require_unchanged(state, [segment])
            with state.failure.poisoned_by("Error while splitting a segment of"):
                if not split_overflowed_segment(state.segments, segment, state.config):
                    delete_snapshots(state, [segment], self._round.now_ms)
