"""Abort of a round when the log lost segments that it reads (`LogCleanerManager.checkCleaningAborted`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...errors import KafkaStorageError, LogCleaningAbortedError, LogstoreError
from ..segment.log_segment import LogSegment
from ..state import LogState


def require_going_on(state: LogState) -> None:
    """Raise LogCleaningAbortedError if the log is about to be closed or to be opened again."""
    if state.is_cleaning_stopped or state.failure.is_cut_off:
        use = "closed" if state.is_cleaning_stopped else "opened again, as a change was cut off"
        raise LogCleaningAbortedError(
            f"Log {state.topic_partition} is about to be {use}",
            path=state.directory.path,
            expected="a log that stays open",
            advice="clean it again when it is open",
        )


def require_unchanged(state: LogState, segments: Sequence[LogSegment]) -> None:
    """Check that the log still has these segments; the caller holds the log's lock.

    Raises:
        LogCleaningAbortedError: it has not.
    """
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
    """`with` block that reads these segments without the lock; if they are gone, its error becomes an abort.

    Raises:
        LogCleaningAbortedError: instead of the error, if the log has lost segments.
    """
    try:
        yield
    except (KafkaStorageError, LogCleaningAbortedError):
        raise
    except (LogstoreError, OSError) as error:
        with state.lock:
            try:
                require_unchanged(state, segments)
            except LogCleaningAbortedError as aborted:
                raise aborted from error
        raise
