"""One round of cleaning (`Cleaner.doClean`)."""

from __future__ import annotations

from collections.abc import Sequence

from ...config.topic import DEDUPE_BUFFER_SIZE, KAFKA_VERSION, SEGMENT_INDEX_BYTES, segment_size_max
from ...kernels.rules import RELATIVE_OFFSET_MAX
from ...layout import offset_index, time_index
from ..segment.log_segment import LogSegment
from ..state import LogState
from .aborting import require_going_on
from .choice import Cleanable, segments_between
from .cleaned_files import discard_cleaned_files
from .decisions import ActiveProducers, Round
from .map_building import build_offset_map
from .segment_cleaning import SegmentCleaning

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
