"""One partition that is open for writing (`UnifiedLog`): its segments, and everything known beside them.

    log = PartitionLog.open("data/orders-0", LoadSettings(was_clean=False, …))
    log.append_as_leader(batch)
    log.roll(), log.flush(), log.truncate_to(offset), …
    log.close()

All that changes the log holds `lock`; so does a reader, but only while it copies the bounds it reads by. A write that
fails ends the writing, see `storage_failure`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import clock
from ..disk.seam import SEAM, Seam
from ..folds.verification import VerificationGuard
from .active_segment import sync_segment
from .config import DEDUPE_BUFFER_SIZE
from .delete_records import delete_records
from .flush import flush, flush_beside
from .loader import LoadSettings
from .log_appends import LogAppends
from .log_reads import LogReads
from .log_state import Later
from .retain import DeletedSegment, delete_old_segments
from .roll import roll
from .truncate import truncate_fully_and_start_at, truncate_to
from .watermarks import increment_high_watermark, increment_log_start_offset, update_high_watermark

if TYPE_CHECKING:
    from .cleaner.choice import Cleanable
    from .cleaner.rounds import Cleaned

TRANSACTION_TIMEOUT_MAX_MS = 900_000  # transaction.max.timeout.ms
_LATE_MS = 300_000  # `ProducerStateManager.LATE_TRANSACTION_BUFFER_MS`


class PartitionLog(LogAppends, LogReads):
    """The running log; made by `open`, attributes as in `LogState`."""

    @classmethod
    def open(
        cls,
        path: str,
        settings: LoadSettings,
        *,
        seam: Seam = SEAM,
        now_ms: Callable[[], int] = clock.now_ms,
        topic_id: str | None = None,
        high_watermark: int | None = None,
        is_only_replica: bool = True,
        requires_verification: bool = True,
        draw_below: Callable[[int], int] = random.randrange,
        flush_later: Later | None = None,
    ) -> PartitionLog:
        """Recover the partition directory at `path`, or make it, and open it for writing.

        The caller holds the data directory's lock.

        Args:
            now_ms: the clock of the running log; `settings.now_ms` is that of the load.
            topic_id: in Kafka's 22 characters; written to `partition.metadata` if that is not there.
            high_watermark: of `replication-offset-checkpoint`; only looked at if there are other replicas.
            requires_verification: `transaction.partition.verification.enable`.
            draw_below: a random number from 0 to its argument, exclusive, for `segment.jitter.ms`.
            flush_later: has a function run soon by another thread: the sync of a segment that was closed. Without it
                the append that begins a new segment waits for the disk.

        Raises:
            InconsistentTopicIdError: the directory is another topic's.
            LogstoreError: as `recover.recover_partition`.
        """
        from .opening import open_log

        return open_log(
            path,
            settings,
            seam=seam,
            now_ms=now_ms,
            topic_id=topic_id,
            high_watermark=high_watermark,
            is_only_replica=is_only_replica,
            requires_verification=requires_verification,
            draw_below=draw_below,
            flush_later=flush_later,
        )

    def begin_verification(
        self, producer_id: int, *, sequence: int, producer_epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """The guard to show with a transactional batch, see `ProducerState.begin_verification`."""
        with self.lock:
            guard = self.producers.state.begin_verification(
                producer_id,
                sequence=sequence,
                producer_epoch=producer_epoch,
                supports_epoch_bump=supports_epoch_bump,
                now_ms=self.now_ms(),
            )
            if guard is not None:
                self.quick.suspend()
            return guard

    def roll(self) -> None:
        """Close the active segment and begin a new one at the log's end; an empty one is made anew."""
        with self.lock, self.writing("Error while rolling log segment for"):
            roll(self)

    def flush(self) -> None:
        """Wait until everything appended is on the disk; others read and append meanwhile."""
        flush_beside(self)

    def flush_if_due(self) -> None:
        """`flush`, if the last one is `flush.ms` ago; to be called now and then."""
        if self.now_ms() - self.last_flush_ms >= self.config["flush.ms"]:
            self.flush()

    def update_high_watermark(self, offset: int) -> int:
        """All replicas have what is below `offset`; returns the new high watermark, which is one of the log."""
        with self.lock:
            return update_high_watermark(self, offset)

    def increment_high_watermark(self, offset: int) -> bool:
        """As `update_high_watermark`, if that is above; whether it is.

        Raises:
            UsageError: an offset behind the log's end.
        """
        with self.lock:
            return increment_high_watermark(self, offset)

    def increment_log_start_offset(self, offset: int) -> bool:
        """Let the log start at `offset`; False if it starts there or behind already. No file is removed.

        Raises:
            OffsetOutOfRangeError: an offset above the high watermark.
        """
        with self.lock, self.writing("Exception while increasing log start offset for"):
            return increment_log_start_offset(self, offset)

    def delete_records(self, offset: int) -> int:
        """Let the log start at `offset`, -1 at the high watermark; where it starts now, see `delete_records`."""
        return delete_records(self, offset)

    def delete_old_segments(self, now_ms: int) -> list[DeletedSegment]:
        """Delete what `retention.ms`, `retention.bytes` and the log start do not retain; to be called now and then."""
        return delete_old_segments(self, now_ms)

    def cleanable(self, checkpoint: int | None, now_ms: int) -> Cleanable:
        """What of the log may be cleaned, see `cleaner.choice.cleanable`."""
        from .cleaner.choice import cleanable

        return cleanable(self, checkpoint, now_ms)

    def clean(self, chosen: Cleanable, now_ms: int, *, buffer_size: int = DEDUPE_BUFFER_SIZE) -> Cleaned:
        """Clean what was chosen, see `cleaner.rounds.clean`."""
        from .cleaner.rounds import clean

        return clean(self, chosen, now_ms, buffer_size=buffer_size)

    def remove_deleted_files(self, now_ms: int) -> list[str]:
        """Remove files that were deleted `file.delete.delay.ms` ago; their names. To be called now and then."""
        with self.lock:
            return self.deleted_files.remove_due(self.directory, now_ms)

    def truncate_to(self, offset: int) -> bool:
        """Drop the batch that holds `offset` and all behind it; False if the log ends before."""
        with self.lock, self.writing("Error while truncating log for"):
            return truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Drop everything; the log is empty, ends at `offset`, and starts there if not told otherwise."""
        with self.lock, self.writing("Error while truncating log for"):
            truncate_fully_and_start_at(self, offset, log_start_offset)

    def drop_expired_producers(self) -> None:
        """Forget producers that have not written for `producer.id.expiration.ms`; to be called now and then."""
        with self.lock:
            self.producers.state.drop_expired(self.now_ms())

    def has_late_transaction(self, transaction_timeout_max_ms: int = TRANSACTION_TIMEOUT_MAX_MS) -> bool:
        """Whether the oldest open transaction's producer is silent for longer than any transaction may last."""
        with self.lock:
            timestamp = self.producers.state.oldest_transaction_timestamp()
            return timestamp > 0 and self.now_ms() - timestamp > transaction_timeout_max_ms + _LATE_MS

    def close(self) -> None:
        """Write and sync everything, so that the next load may take the log as cleanly closed.

        A log whose writing failed is only let go of, and is to be loaded as not cleanly closed.
        """
        with self.lock:
            if self._is_closed:
                return
            if self.failure is not None:
                self._is_closed = True
                self._let_go()
                return
            with self.flushing:
                self.producers.take_snapshot()
                closed = self.active.close()
                self.segments.add(closed)
                sync_segment(closed)
                flush(self)
                self.directory.sync()
                self._is_closed = True  # within: a second close must not write the indexes again
            self._let_go()

    def _let_go(self) -> None:
        """Close and unmap all files."""
        for segment in (*self.segments, self.active):
            segment.release()
            segment.unmap()
