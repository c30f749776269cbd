"""One partition that is open for writing (`UnifiedLog`): its segments, and all state that belongs to them.

    log = open_log("data/orders-0", LoadSettings(was_clean=False, …))
    log.append_as_leader(batch)
    log.roll(), log.flush(), log.delete_records(offset), …
    log.close()

Every change holds `lock`; a reader holds it only while it makes a view. A method may not be called from inside of
another one, as by a signal handler, see `calls`; functions below call each other. After a failed write the log takes no
more changes, see `failure`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..calls import LOG, alone
from ..columns.decoded_records import Records
from ..config.topic import DEDUPE_BUFFER_SIZE, LogConfig, is_tiered
from ..disk.lock import invalidate_when_forked
from ..folds.leader_epochs import LeaderEpochs
from ..folds.producer_state import ProducerEntry
from ..folds.verification import VerificationGuard
from ..kernels.append.structs import LogStruct
from ..model import FetchIsolation
from ..view.log_view import LogView, ReadableLog
from ..view.read import ReadBounds
from .append.appender import Appender
from .append.rules import ValidationRules
from .failure import Failure
from .load.loader import LogLoader
from .log_appends import LogAppends
from .maintain.flush import FAILURE_TEXT, flush, flush_beside
from .maintain.retain import DeletedSegment, delete_old_segments, delete_records, raise_log_start
from .maintain.roll import roll, roll_jitter_ms, segment_ms_max, truncate_fully_and_start_at
from .maintain.swap import DeletedFiles
from .offsets import Offsets
from .segment.active_segment import ActiveSegment, sync_segment
from .segment.writable_folder import WritableFolder
from .tail import read_tail

if TYPE_CHECKING:
    from .cleaner.choice import Cleanable


Later = Callable[[Callable[[], None]], object]
_LOGGER = logging.getLogger("logstore")


class PartitionLog(LogAppends, ReadableLog):
    """The running log; opened by `load.opening.open_log`.

    Attributes:
        topic_partition: as Kafka's messages name it, `topic-0`.
        topic_id: of `partition.metadata`; None without the file.
        leader_epoch: epoch of appends; 0 unless a metadata log sets another.
        config, rules: the configuration, and the part of it that appends need.
        directory, segments, active, epochs, producers: the state of the log; `active` is the last segment.
        offsets: log start and end, high watermark, recovery point, first unstable offset.
        remote_start_offset: of records below the log start that are in remote storage alone; None without any.
        failure: the first failed write, after which the log takes no more changes.
        appender: the entry point of all appends.
        deleted_files: files that are to be removed later.
        cleaning_lock: held by a round of cleaning, so that only one runs.
        is_cleaning_stopped: set before a close; a running round of cleaning aborts.
    """

    active: ActiveSegment

    def __init__(
        self,
        directory: WritableFolder,
        topic_partition: str,
        loader: LogLoader,
        struct: LogStruct,
        config: LogConfig,
        *,
        topic_id: str | None,
        now_ms: Callable[[], int],
        draw_below: Callable[[int], int],
        flush_later: Later | None,
    ) -> None:
        """Take over what a loader has loaded; its last segment is active and uses the same struct."""
        self.lock = threading.RLock()
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.leader_epoch = 0
        self.segments, self.epochs, self.producers = loader.segments, loader.epochs, loader.producers
        self.offsets = Offsets(struct, self.segments, self.producers.state.transactions, topic_partition)
        self.failure = Failure(directory.path, topic_partition, self.lock, struct, self.invalidate_fast_path)
        self.now_ms = now_ms
        self.last_flush_ms = now_ms()
        self.flush_later = flush_later
        self.deleted_files = DeletedFiles()
        self.cleaning_lock = threading.Lock()
        self.is_cleaning_stopped = False
        self._draw_below = draw_below
        self.update_config(config)
        last = loader.segments.last
        assert isinstance(last, ActiveSegment)
        self.active = last
        self.offsets.begin(
            start=loader.start_offset,
            end=loader.end_offset,
            recovery_point=loader.recovery_point,
            checkpointed_recovery_point=loader.checkpointed_recovery_point,
        )
        self.remote_start_offset = loader.remote_start_offset
        self._warn_of_remote_records()
        invalidate_when_forked(self)

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return int(self.offsets.struct.log_start_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return int(self.offsets.struct.log_end_offset)

    @property
    def high_watermark(self) -> int:
        """Where consumers stop, exclusive: the log's end, as nothing is replicated."""
        return int(self.offsets.struct.high_watermark)

    @property
    def recovery_point(self) -> int:
        """The offset below which everything is durable."""
        return int(self.offsets.struct.recovery_point)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open transaction's batch; None if no transaction is open."""
        return self.offsets.first_unstable_offset

    @property
    def last_stable_offset(self) -> int:
        """Where `read_committed` ends, exclusive."""
        with self.lock:
            return self.offsets.last_stable_offset

    @property
    def is_writable(self) -> bool:
        """True unless the log is closed or a write failed."""
        return self.failure.is_writable

    @property
    def size(self) -> int:
        """Bytes of all `.log` files together."""
        with alone(LOG), self.lock:
            return sum(segment.size for segment in self.segments)

    def __repr__(self) -> str:
        place = f"offsets {self.log_start_offset} to {self.log_end_offset}"
        state = "closed, " if self.failure.is_closed else "" if self.is_writable else "not writable, "
        return f"<PartitionLog {self.topic_partition}: {state}{place}>"

    def view(self) -> LogView:
        """Return the log as it is now, for readers."""
        with alone(LOG), self.lock:
            struct = self.offsets.struct
            bounds = ReadBounds(
                self.topic_partition,
                struct.log_start_offset,
                struct.log_end_offset,
                struct.high_watermark,
                self.offsets.last_stable_offset,
                self.remote_start_offset,
            )
            return LogView(self.segments.view(), bounds, LeaderEpochs(self.epochs.entries))

    def tail(self, start_offset: int, isolation: FetchIsolation, *, check_crc: bool, size_max: int) -> Records | None:
        """Return the records up to the end if there are few, see `read_tail`; else None."""
        return read_tail(self, start_offset, isolation, check_crc=check_crc, size_max=size_max)

    def invalidate_fast_path(self) -> None:
        """Make the fast path bind the log's state anew, after another change. The caller holds the lock."""
        appender: Appender | None = vars(self).get("appender")
        if appender is not None:
            appender.fast.invalidate()

    def update_config(self, config: LogConfig) -> None:
        """Replace the configuration; the active segment keeps the one it was created with."""
        with alone(LOG), self.lock:
            self.invalidate_fast_path()
            self.config = config
            self.rules = ValidationRules.of(config, self.topic_partition)
            self.segment_ms_max = segment_ms_max(config)
            self.flush_message_count: int = config["flush.messages"]

    def activate(self, segment: ActiveSegment) -> None:
        """Make a segment the active one."""
        self.invalidate_fast_path()
        self.active = segment
        self.segments.add(segment)

    def roll_jitter_ms(self) -> int:
        """Draw how much earlier than after `segment.ms` a new segment is full."""
        return roll_jitter_ms(self.config, self._draw_below)

    def write_epochs(self) -> None:
        """Write the leader epochs to `leader-epoch-checkpoint`."""
        self.directory.write_epochs(self.epochs.entries, "epochs as of the log")
        self.epochs.is_changed = False

    def invalidate_after_fork(self) -> None:
        """Disown the log in the child of a fork: the parent has it, and nothing is written or closed here."""
        self.lock = threading.RLock()  # a thread of the parent may hold the other one for ever
        self.failure.disown_after_fork(self.lock)
        self.deleted_files = DeletedFiles()

    def producer(self, producer_id: int) -> ProducerEntry | None:
        """Return the state of a producer; None if it is unknown."""
        with alone(LOG), self.lock:
            return self.producers.state.get(producer_id)

    def producer_entries(self) -> list[ProducerEntry]:
        """Return the state of all producers, in the order in which they came."""
        with alone(LOG), self.lock:
            return list(self.producers.state)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the producer has an open transaction in this epoch."""
        with alone(LOG), self.lock:
            return self.producers.state.has_ongoing_transaction(producer_id, producer_epoch)

    def start_inside(self) -> int | None:
        """Return the log start offset if it is above the first segment's base offset, else None.

        That of a log with remote storage is returned in any case, as a broker checkpoints it.
        """
        with alone(LOG), self.lock:
            if is_tiered(self.config):
                return self.log_start_offset if self.remote_start_offset is None else self.remote_start_offset
            first, offset = self.segments.first, self.log_start_offset
            return offset if first is not None and offset > first.base_offset else None

    def begin_verification(
        self, producer_id: int, *, sequence: int, producer_epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """Return the guard to append a transactional batch with, see `ProducerState.begin_verification`."""
        with alone(LOG), self.lock:
            return self.producers.state.begin_verification(
                producer_id,
                sequence=sequence,
                producer_epoch=producer_epoch,
                supports_epoch_bump=supports_epoch_bump,
                now_ms=self.now_ms(),
            )

    def roll(self) -> None:
        """Close the active segment and begin a new one at the log's end; an empty one is replaced."""
        with alone(LOG), self.lock, self.failure.poisoned_by("Error while rolling log segment for"):
            roll(self)

    def flush(self) -> None:
        """Sync everything appended so far; others read and append meanwhile."""
        flush_beside(self)

    def flush_if_due(self) -> None:
        """Flush if the last flush is `flush.ms` ago; to be called periodically."""
        if self.now_ms() - self.last_flush_ms >= self.config["flush.ms"]:
            self.flush()

    def increment_log_start_offset(self, offset: int) -> bool:
        """Move the log start up to `offset`, without removing files; return False if it is there or above already.

        Raises:
            OffsetOutOfRangeError: an offset above the high watermark.
        """
        with alone(LOG), self.lock, self.failure.poisoned_by("Exception while increasing log start offset for"):
            return raise_log_start(self, offset)

    def delete_records(self, offset: int) -> int:
        """Move the log start to `offset`, -1 for the high watermark; return the log start, see `delete_records`."""
        return delete_records(self, offset)

    def delete_old_segments(self, now_ms: int) -> list[DeletedSegment]:
        """Delete what `retention.ms`, `retention.bytes` and the log start do not retain; to be called periodically."""
        return delete_old_segments(self, now_ms)

    def cleanable(self, checkpoint: int | None, now_ms: int) -> Cleanable:
        """Return what of the log may be cleaned, see `cleaner.choice.cleanable`."""
        from .cleaner.choice import cleanable

        return cleanable(self, checkpoint, now_ms)

    def clean(self, chosen: Cleanable, now_ms: int, *, buffer_size: int = DEDUPE_BUFFER_SIZE) -> int:
        """Clean what was chosen; return the offset below which the log is clean, see `cleaner.rounds.clean`."""
        from .cleaner.rounds import clean

        return clean(self, chosen, now_ms, buffer_size=buffer_size)

    def remove_deleted_files(self, now_ms: int) -> list[str]:
        """Remove files deleted `file.delete.delay.ms` ago; return their names. To be called periodically."""
        with alone(LOG), self.lock:
            return self.deleted_files.remove_due(self.directory, now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty, and starts and ends at `offset`."""
        with alone(LOG), self.lock, self.failure.poisoned_by("Error while truncating log for"):
            truncate_fully_and_start_at(self, offset)

    def drop_expired_producers(self) -> None:
        """Forget producers that have not written for `producer.id.expiration.ms`; to be called periodically."""
        with alone(LOG), self.lock:
            now_ms = self.now_ms()
            with self.failure.poisoned_by("Error while removing expired producers of"):
                self.producers.state.drop_expired(now_ms)

    def close(self) -> None:
        """Write and sync everything, so that the next load may treat the log as cleanly closed.

        If a write failed, only files are closed: the next load must treat the log as not cleanly closed.
        """
        with alone(LOG), self.lock:
            if self.failure.is_closed:
                return
            self.failure.settle()
            self.invalidate_fast_path()
            if self.failure.error is None:
                with self.failure.poisoned_by(FAILURE_TEXT):
                    self.producers.take_snapshot()
                    closed = self.active.close()
                    self.segments.add(closed)
                    sync_segment(closed)
                    flush(self)
                    self.directory.sync()
                    self.failure.is_closed = True  # in the block: after an interrupt a second close writes nothing
            self.failure.is_closed = True
            self._let_go()

    def _warn_of_remote_records(self) -> None:
        """Warn of records that cannot be read here."""
        if self.remote_start_offset is not None:
            _LOGGER.warning(
                "Records of %s from offset %d to %d are in remote storage: a broker with tiered storage reads them",
                *(self.topic_partition, self.remote_start_offset, self.log_start_offset - 1),
            )

    def _let_go(self) -> None:
        """Close and unmap all files."""
        for segment in (*self.segments, self.active):
            segment.release()
            segment.unmap()
