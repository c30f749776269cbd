"""Whether a log is still what a round of cleaning was chosen for (`LogCleanerManager.checkCleaningAborted`).

A map of keys is that of the log it was built from. When its end was cut since, records stay that the map calls
superseded by what is gone; so nothing may be replaced by that map any more. A deleted segment takes older records only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import KafkaStorageError, LogCleaningAbortedError, LogstoreError
from ..segment import Segment
from .choice import Cleanable

if TYPE_CHECKING:
    from ..partition_log import PartitionLog


class AbortCheck:
    """Of one round."""

    def __init__(self, log: PartitionLog, chosen: Cleanable) -> None:
        """Begin a round; the log's lock is held.

        Raises:
            LogCleaningAbortedError: the log was truncated since this was chosen, or has less that may be cleaned.
        """
        self._log = log
        self._truncation_count = chosen.truncation_count
        self.require_unchanged()
        end_offset_max = min(log.last_stable_offset, log.active.base_offset)
        if chosen.first_uncleanable_offset > end_offset_max:
            raise self._aborted(
                "has less that may be cleaned than was chosen",
                expected=f"an end at {end_offset_max} or below",
                found=chosen.first_uncleanable_offset,
            )

    def require_unchanged(self, segments: Sequence[Segment] = ()) -> None:
        """Check that nothing was truncated, and that the log has these segments; the log's lock is held.

        Raises:
            LogCleaningAbortedError: otherwise.
        """
        log = self._log
        if log.truncation_count != self._truncation_count:
            raise self._aborted(
                "was truncated while it was cleaned",
                expected="the log that was chosen",
                found=f"one that was cut, and ends at {log.log_end_offset}",
            )
        if any(log.segments.floor(segment.base_offset) is not segment for segment in segments):
            raise self._aborted(
                "lost segments while they were cleaned",
                expected=[segment.base_offset for segment in segments],
                found=log.segments.base_offsets,
            )

    @contextmanager
    def reading(self, segments: Sequence[Segment]) -> Iterator[None]:
        """A `with` block that reads these segments without the lock: what fails because they went is an abortion.

        Raises:
            LogCleaningAbortedError: in place of what was raised, if the log was changed.
        """
        try:
            yield
        except (KafkaStorageError, LogCleaningAbortedError):
            raise
        except (LogstoreError, OSError) as error:
            with self._log.lock:
                try:
                    self.require_unchanged(segments)
                except LogCleaningAbortedError as aborted:
                    raise aborted from error
            raise

    def _aborted(self, what: str, *, expected: object, found: object) -> LogCleaningAbortedError:
        log = self._log
        return LogCleaningAbortedError(
            f"Log {log.topic_partition} {what}",
            path=log.directory.path,
            expected=expected,
            found=found,
            advice="choose anew what is to be cleaned",
        )
