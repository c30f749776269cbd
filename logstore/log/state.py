"""State of one log that is open for writing: what appends, rolls, flushes, retention, cleaning and reads share.

The loader returns it; chapters (`append`, `maintain`, `cleaner`) are functions over it; `partition_log` has the verbs.
Offsets live in one struct, `LogStruct`, which the append kernel moves too; no other object keeps a copy.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from .. import clock
from ..config.topic import LogConfig, is_compacted
from ..errors import KafkaStorageError, OffsetOutOfRangeError
from ..folds.leader_epochs import LeaderEpochs
from ..kernels.append.structs import NO_OFFSET, FastPathStruct, LogStruct
from ..view.segment import Segment
from ..view.segments import Segments
from .append.rules import ValidationRules
from .failure import Failure
from .load.producers import PartitionProducers
from .segment.active_segment import ActiveSegment
from .segment.deleted_files import DeletedFiles
from .segment.log_segment import LogSegment
from .segment.writable_folder import WritableFolder

Later = Callable[[Callable[[], None]], object]


class LogHost(NamedTuple):
    """What a running log gets from its owner.

    Attributes:
        now_ms: the clock.
        draw_below: random number from 0 to its argument, exclusive, for `segment.jitter.ms`.
        flush_later: runs a function soon in another thread: the sync of a closed segment. Without it the append that
            rolls waits for the disk.
        requires_verification: `transaction.partition.verification.enable`.
    """

    now_ms: Callable[[], int] = clock.now_ms
    draw_below: Callable[[int], int] = random.randrange
    flush_later: Later | None = None
    requires_verification: bool = True


class LogState:
    """The state of one log; whoever changes it holds `lock`. A single offset may be read without it.

    Attributes:
        topic_partition: as Kafka's messages name it, `topic-0`.
        topic_id: of `partition.metadata`; None without the file.
        config, rules: the configuration, and the part of it that appends need.
        struct: the offsets, and the size of the active segment.
        fast: parameters of the fast path; bound anew after `invalidate`.
        directory, segments, active, epochs, producers: `active` is the last segment, once the log takes appends.
        remote_start_offset: of records below the log start that are in remote storage alone; None without any.
        failure: the first failed write, after which the log takes no more changes.
        host: clock, random numbers and background of the owner.
        last_flush_ms: time of the last flush.
        deleted_files: files that are to be removed later.
        tail: active segment, next offset and position where the last tail was read to, see `read_tail`.
        cleaning_lock: held by a pass of the cleaner, so that only one runs.
        is_cleaning_stopped: a running pass of the cleaner aborts.
    """

    active: ActiveSegment
    last_flush_ms: int

    def __init__(
        self,
        directory: WritableFolder,
        topic_partition: str,
        config: LogConfig,
        epochs: LeaderEpochs,
        producers: PartitionProducers,
    ) -> None:
        """Begin without segments; a load fills them in."""
        self.lock = threading.RLock()
        self.cleaning_lock = threading.Lock()
        self.is_cleaning_stopped = False
        self.directory, self.topic_partition = directory, topic_partition
        self.topic_id: str | None = None
        self.struct, self.fast = LogStruct(), FastPathStruct()
        self.segments, self.epochs, self.producers = Segments[LogSegment](), epochs, producers
        self.remote_start_offset: int | None = None
        self.failure = Failure(directory.path, topic_partition, self.lock, self.struct, self.fast)
        self.host = LogHost()
        self.deleted_files = DeletedFiles()
        self.tail: tuple[ActiveSegment, int, int] | None = None
        self._is_viewed, self._known_end = False, -1  # for `was_used`
        self.set_config(config)

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return int(self.struct.log_start_offset)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return int(self.struct.log_end_offset)

    @property
    def high_watermark(self) -> int:
        """Where consumers stop, exclusive: the log's end, as nothing is replicated."""
        return int(self.struct.high_watermark)

    @property
    def recovery_point(self) -> int:
        """The offset below which everything is durable."""
        return int(self.struct.recovery_point)

    @property
    def promised_recovery_point(self) -> int:
        """The highest recovery point that a load may use: the log's own, or the one in the checkpoint file."""
        return int(max(self.struct.recovery_point, self.struct.checkpointed_recovery_point))

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of an open transaction's batch; None if no transaction is open."""
        offset: int = self.struct.first_unstable_offset
        return None if offset == NO_OFFSET else offset

    @property
    def last_stable_offset(self) -> int:
        """Where `read_committed` ends; exclusive (`UnifiedLog.lastStableOffset`). The caller holds the lock.

        The kernel that moves the two offsets runs without the GIL, and a compiler or a processor may reorder stores.
        """
        # the high watermark first: an append between the two reads must not move the end behind its transaction
        high_watermark, offset = self.struct.high_watermark, self.struct.first_unstable_offset
        return int(high_watermark if offset == NO_OFFSET or offset >= high_watermark else offset)

    def set_config(self, config: LogConfig) -> None:
        """Take a configuration; the active segment keeps the one it was created with."""
        self.invalidate()
        self.config = config
        self.rules = ValidationRules.of(config, self.topic_partition)
        segment_ms, lag_ms = config["segment.ms"], config["max.compaction.lag.ms"]
        # in a compacted log a segment is written no longer than cleaning may be delayed
        self.segment_ms_max: int = min(lag_ms, segment_ms) if is_compacted(config) and lag_ms > 0 else segment_ms
        self.flush_message_count: int = config["flush.messages"]
        self.flush_ms: int = config["flush.ms"]

    def invalidate(self) -> None:
        """Make the fast path bind the state anew, after another change."""
        self.fast.is_bound = 0

    def activate(self, segment: ActiveSegment) -> None:
        """Make a segment the active one."""
        self.invalidate()
        if (former := getattr(self, "active", None)) is not None:
            former.enter(LogStruct())  # of its own again
        segment.enter(self.struct)
        self.active = segment
        self.segments.add(segment)

    def open_active(self) -> ActiveSegment:
        """Return the active segment with its file open for an append. The caller holds the lock.

        Raises TooManyOpenFilesError, and nothing has changed; or DataDirectoryError.
        """
        if self.active.descriptor < 0:
            self.directory.open_files.require_spare()
            self.directory.open_files.add(self)
            self.active.open_file()
        return self.active

    def view(self) -> Segments[Segment]:
        """Return the segments as they are now, for readers. The caller holds the lock."""
        if not self.segments.is_viewed:
            self.directory.open_files.add(self)
        self._is_viewed = True
        return self.segments.view()

    @property
    def is_open(self) -> bool:
        """See `Reopenable`: of the active segment."""
        return self.active.descriptor >= 0 or self.segments.is_viewed

    def was_used(self) -> bool:
        """See `Reopenable`: an append or a view since the last call."""
        end_offset = self.log_end_offset
        was_used = self._is_viewed or end_offset != self._known_end
        self._is_viewed, self._known_end = False, end_offset
        return was_used

    def close_idle(self) -> bool:
        """See `Reopenable`: sync and close the active segment's files, and unmap it; False if the log is in use.

        A failed sync poisons the log, as in `flush`; its next use says so.
        """
        is_held = False
        try:
            is_held = self.lock.acquire(blocking=False)  # whoever waits for it may hold the lock of the asking log
            if is_held and self.failure.is_writable:
                with suppress(KafkaStorageError), self.failure.poisoned_by("Error while flushing log for"):
                    self.active.close_file()
        finally:
            if is_held:
                self.active.unmap()
                self.segments.forget_view()
                self.lock.release()
        return is_held

    def draw_roll_jitter_ms(self) -> int:
        """Draw how much earlier than after `segment.ms` a new segment is full (`LogConfig.randomSegmentJitter`)."""
        jitter_ms: int = self.config["segment.jitter.ms"]
        return self.host.draw_below(min(jitter_ms, self.config["segment.ms"])) if jitter_ms else 0

    def write_epochs(self, reason: str = "epochs as of the log") -> None:
        """Write the leader epochs to `leader-epoch-checkpoint`."""
        self.directory.write_epochs(self.epochs.entries, reason)
        self.epochs.is_changed = False

    def follow_end(self) -> None:
        """Set the high watermark to the log's end (`Partition.maybeIncrementLeaderHW` with one replica)."""
        self.refresh_first_unstable_offset()  # first: see `last_stable_offset`
        self.struct.high_watermark = self.struct.log_end_offset

    def may_start_at(self, offset: int) -> bool:
        """Return whether the log starts before `offset`; raise OffsetOutOfRangeError above the high watermark."""
        if offset > self.struct.high_watermark:
            raise OffsetOutOfRangeError(
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} since it is "
                f"larger than the high watermark {self.struct.high_watermark}"
            )
        return bool(offset > self.struct.log_start_offset)

    def raise_recovery_point(self, offset: int) -> None:
        """Note that everything below `offset` is durable or gone."""
        self.struct.recovery_point = max(offset, self.struct.recovery_point)

    def restart_at(self, offset: int) -> None:
        """Set start and end of the log, which is empty now, to `offset`; `follow_end` once its producers are known."""
        struct = self.struct
        struct.log_start_offset = struct.log_end_offset = offset
        # the checkpoint on the disk still has the higher point: `roll` must sync until the log's end has passed it
        struct.checkpointed_recovery_point = max(struct.checkpointed_recovery_point, struct.recovery_point)
        struct.recovery_point = min(struct.recovery_point, offset)

    def refresh_first_unstable_offset(self) -> None:
        """Compute it anew after transactions, high watermark or log start moved (`maybeIncrementFirstUnstableOffset`).

        It is the base offset of a batch. For a transaction that began below the log start, that is the batch that holds
        the log start.
        """
        offset, struct = self.producers.state.transactions.first_unstable_offset, self.struct
        if offset is not None and offset < struct.log_start_offset:
            offset = self.segments.batch_base_offset(struct.log_start_offset, struct.log_end_offset)
        struct.first_unstable_offset = NO_OFFSET if offset is None else offset

    def follow(self, old: LogState) -> None:
        """Take the place of a state that was put aside, with what its files do not say."""
        self.lock, self.cleaning_lock = old.lock, old.cleaning_lock
        self.failure.lock, self.is_cleaning_stopped = old.lock, old.is_cleaning_stopped
        # the checkpoint on the disk may have a higher point than this load began with
        self.struct.checkpointed_recovery_point = old.promised_recovery_point
        self.producers.state.verification = old.producers.state.verification

    def release(self) -> None:
        """Close and unmap all files."""
        for segment in (*self.segments, self.active):
            segment.release()
            segment.unmap()
