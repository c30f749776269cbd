"""What of a log may be cleaned, whether it is worth it, and when a round aborts (`LogCleanerManager`, `LogToClean`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...config.topic import is_compacted
from ...errors import LogCleaningAbortedError, LogstoreError
from ..segment.log_segment import LogSegment
from ..state import LogState

MAX_COMPACTION_LAG_MS = "max.compaction.lag.ms"
MIN_CLEANABLE_DIRTY_RATIO = "min.cleanable.dirty.ratio"
MIN_COMPACTION_LAG_MS = "min.compaction.lag.ms"


@dataclass(frozen=True, slots=True)
class Cleanable:
    """What a round of cleaning would work on.

    Attributes:
        first_dirty_offset: the log below was cleaned before.
        first_uncleanable_offset: base offset of the first segment that must stay as it is.
        clean_size, cleanable_size: bytes of the segments below the first, and between the two.
        compaction_delay_ms: how late the oldest dirty record is by `max.compaction.lag.ms`.
        is_checkpoint_wrong: the checkpoint lies outside of the log, and must be replaced by `first_dirty_offset`.
        min_cleanable_ratio: `min.cleanable.dirty.ratio`.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_size: int
    cleanable_size: int
    compaction_delay_ms: int
    is_checkpoint_wrong: bool
    min_cleanable_ratio: float

    @property
    def cleanable_ratio(self) -> float:
        """Cleanable share of all bytes that are clean or cleanable; the log with the largest is cleaned first."""
        size = self.clean_size + self.cleanable_size
        return self.cleanable_size / size if size else 0.0

    @property
    def is_worth_it(self) -> bool:
        """Whether the log should be cleaned now."""
        is_late = self.compaction_delay_ms > 0 and self.cleanable_size > 0
        return is_late or self.cleanable_ratio > self.min_cleanable_ratio


def cleanable(state: LogState, checkpoint: int | None, now_ms: int) -> Cleanable:
    """Return what of the log may be cleaned; `checkpoint`: its first dirty offset there. The caller holds the lock."""
    is_wrong = checkpoint is not None and not state.log_start_offset <= checkpoint <= state.log_end_offset
    first_dirty = state.log_start_offset if checkpoint is None or is_wrong else checkpoint
    dirty = closed_segments_from(state, first_dirty)
    uncleanable = _round_down(state, max(first_dirty, _first_uncleanable_offset(state, dirty, now_ms)))
    return Cleanable(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=uncleanable,
        clean_size=_size(segments_between(state, -1, first_dirty)),
        cleanable_size=_size(segments_between(state, min(first_dirty, uncleanable), uncleanable)),
        compaction_delay_ms=_compaction_delay_ms(state, dirty, now_ms),
        is_checkpoint_wrong=is_wrong,
        min_cleanable_ratio=state.config[MIN_CLEANABLE_DIRTY_RATIO],
    )


def segments_between(state: LogState, start: int, end: int) -> list[LogSegment]:
    """Return the segment that holds `start`, or the first above, and all up to base offset `end`, exclusive."""
    return [] if start >= end else state.segments.between(start, end)


def closed_segments_from(state: LogState, offset: int) -> list[LogSegment]:
    """Return the closed segments from the one that holds `offset` on (`nonActiveLogSegmentsFrom`)."""
    return segments_between(state, offset, state.active.base_offset)


def _first_uncleanable_offset(state: LogState, dirty: list[LogSegment], now_ms: int) -> int:
    """Return the offset below which no transaction is open, segments are closed, and records are old enough."""
    bounds = [state.last_stable_offset, state.active.base_offset]
    lag_ms = state.config[MIN_COMPACTION_LAG_MS]
    if lag_ms > 0:
        young = (segment.base_offset for segment in dirty if segment.load_largest_timestamp() > now_ms - lag_ms)
        bounds += [base_offset for base_offset in [next(young, None)] if base_offset is not None]
    return min(bounds)


def _round_down(state: LogState, offset: int) -> int:
    """Return the base offset of the segment that holds `offset`: each is cleaned whole (`calculateCleanableBytes`)."""
    closed = closed_segments_from(state, offset)
    return closed[0].base_offset if closed else state.active.base_offset


def _compaction_delay_ms(state: LogState, dirty: list[LogSegment], now_ms: int) -> int:
    """Return how late the oldest dirty segment is, by its first batch (`maxCompactionDelay`); 0 if none is."""
    timestamps = [timestamp for segment in dirty if (timestamp := segment.load_first_timestamp()) > 0]
    clean_until_ms = now_ms - max(state.config[MAX_COMPACTION_LAG_MS], 0)
    return max(clean_until_ms - min(timestamps), 0) if timestamps else 0


def _size(segments: list[LogSegment]) -> int:
    return sum(segment.size for segment in segments)


def require_going_on(state: LogState) -> None:
    """Raise LogCleaningAbortedError if the log is closed, about to be, or opened again, or is not compacted any more.

    Once compaction is taken away, no segment may be replaced (`LogManager.updateTopicConfig`).
    """
    if state.failure.is_cut_off:
        use = "about to be opened again, as a change was cut off"
    elif state.is_cleaning_stopped or state.failure.is_closed:
        use = "about to be closed"
    elif not is_compacted(state.config):
        use = "not compacted any more"
    else:
        return
    raise LogCleaningAbortedError(
        f"Log {state.topic_partition} is {use}",
        path=state.directory.path,
        expected="a compacted log that stays open",
        advice="clean it again when it is open and compacted",
    )


def require_unchanged(state: LogState, segments: Sequence[LogSegment]) -> None:
    """Raise LogCleaningAbortedError unless the log still has these segments; the caller holds the log's lock."""
    require_going_on(state)
    if any(state.segments.floor(segment.base_offset) is not segment for segment in segments):
        raise LogCleaningAbortedError(
            f"Log {state.topic_partition} lost segments while they were cleaned",
            path=state.directory.path,
            expected=[segment.base_offset for segment in segments],
            found=state.segments.base_offsets,
            advice="choose anew what is to be cleaned",
        )


@contextmanager
def reading(state: LogState, segments: Sequence[LogSegment]) -> Iterator[None]:
    """`with` block without the lock that reads these segments, or syncs.

    Its error becomes a LogCleaningAbortedError if the log has lost segments meanwhile, or is closed or opened again.
    """
    try:
        yield
    except LogCleaningAbortedError:
        raise
    except (LogstoreError, OSError) as error:
        with state.lock:
            try:
                if state.failure.error is None:
                    require_unchanged(state, segments)
            except LogCleaningAbortedError as aborted:
                raise aborted from error
        raise
