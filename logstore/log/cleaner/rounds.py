"""One round of cleaning of a log (`Cleaner.doClean`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...layout.file_names import LOG_SUFFIX
from ..config import DEDUPE_BUFFER_SIZE, SEGMENT_INDEX_BYTES, segment_size_max
from .aborting import AbortCheck
from .choice import Cleanable, segments_between
from .cleaned_files import discard_cleaned_files
from .decisions import ActiveProducers, Round
from .grouping import group_segments
from .map_building import build_offset_map
from .offset_map import LOAD_FACTOR
from .segment_cleaning import SegmentCleaning
from .statistics import CleaningStatistics

if TYPE_CHECKING:
    from ..partition_log import PartitionLog

DELETE_RETENTION_MS = "delete.retention.ms"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a round did.

    Attributes:
        end_offset: what is below is clean now: the next first dirty offset, for `cleaner-offset-checkpoint`.
    """

    end_offset: int
    statistics: CleaningStatistics


def clean(
    log: PartitionLog,
    chosen: Cleanable,
    now_ms: int,
    *,
    buffer_size: int = DEDUPE_BUFFER_SIZE,
    load_factor: float = LOAD_FACTOR,
) -> Cleaned:
    """Clean what was chosen, as far as the map of its keys has room; one round of a log at a time.

    Appends go on meanwhile; the log's lock is held only while a segment takes the place of others.

    Args:
        chosen: of `choice.cleanable`.
        now_ms: the time of the round; a delete horizon is delete.retention.ms behind it.
        buffer_size: bytes of the map, log.cleaner.dedupe.buffer.size.
        load_factor: log.cleaner.io.buffer.load.factor.

    Raises:
        LogCleaningAbortedError: the log was truncated or lost segments since it was chosen; segments cleaned before
            that stay so.
        LogstoreError: see `SegmentCleaning.clean_group`; likewise.
    """
    if not chosen.cleanable_size:
        return Cleaned(chosen.first_dirty_offset, CleaningStatistics())
    with log.cleaning_lock:
        return _clean(log, chosen, now_ms, buffer_size, load_factor)


def _clean(log: PartitionLog, chosen: Cleanable, now_ms: int, buffer_size: int, load_factor: float) -> Cleaned:
    with log.lock:
        check = AbortCheck(log, chosen)
        discard_cleaned_files(log.directory)
        clean_segments = segments_between(log, 0, chosen.first_dirty_offset)
        horizon_ms = 0
        if clean_segments:
            modified_ms = log.directory.modified_ms(clean_segments[-1].file_name(LOG_SUFFIX))
            horizon_ms = modified_ms - log.config[DELETE_RETENTION_MS]
    offset_map, checked = build_offset_map(
        log,
        check,
        chosen.first_dirty_offset,
        chosen.first_uncleanable_offset,
        buffer_size=buffer_size,
        load_factor=load_factor,
    )
    round_ = Round(
        offset_map=offset_map,
        end_offset=chosen.first_uncleanable_offset,
        now_ms=now_ms,
        delete_retention_ms=log.config[DELETE_RETENTION_MS],
        producers=ActiveProducers(log),
    )
    end_offset = offset_map.latest_offset + 1
    with log.lock:
        check.require_unchanged()
        groups = group_segments(
            segments_between(log, 0, end_offset),
            size_max=segment_size_max(log.config),
            index_size_max=log.config[SEGMENT_INDEX_BYTES],
            first_uncleanable_offset=chosen.first_uncleanable_offset,
        )
    cleaning = SegmentCleaning(log, check, round_, horizon_ms, checked)
    for group in groups:
        cleaning.clean_group(group)
    statistics = cleaning.statistics
    statistics.map_entry_count = offset_map.entry_count
    statistics.map_utilization = offset_map.entry_count / offset_map.entry_count_max
    return Cleaned(end_offset, statistics)
