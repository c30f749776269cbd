"""What a running log is at one moment, and whether it may be changed; `partition_log` has what changes it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property

from ..disk.lock import lose_when_forked
from ..disk.names import parent
from ..errors import KafkaStorageError
from .active_segment import ActiveSegment
from .batch_validator import BatchValidator
from .config import LogConfig
from .deleted_files import DeletedFiles
from .directory import PartitionDirectory
from .loader import LogLoader
from .roll import roll_jitter_ms, segment_ms_max
from .storage_failure import Writing
from .validation_rules import ValidationRules

Later = Callable[[Callable[[], None]], object]


class LogState:
    """The segments of a log, and everything known beside them.

    Attributes:
        topic_partition: as Kafka's messages name it, `topic-0`.
        topic_id: of `partition.metadata`; None without the file.
        config: the configuration.
        directory, segments, active, epochs, producers: what there is; `active` is the last of the segments.
        log_start_offset, log_end_offset, high_watermark, recovery_point: offsets; all but the first are exclusive.
        checkpointed_recovery_point: the highest that may be on the disk; above the log's end after a truncation.
        first_unstable_offset: where readers of committed data stop; None if nothing is open.
        batch_found: for `watermarks`: ((an offset, the segments' `change_count`), base offset of its batch).
        is_only_replica: everything that was appended is replicated.
        failure: why the log is not written any more; None if it is.
        deleted_files: those that are to be removed some time later.
        cleaning_lock: held by a round of cleaning, of which there is one at a time.
        change_count: becomes another with every change that does not go the quick way of `quick`.
        truncation_count: truncations that took more than batches of the active segment.
    """

    def __init__(
        self,
        directory: PartitionDirectory,
        topic_partition: str,
        loader: LogLoader,
        active: ActiveSegment,
        config: LogConfig,
        *,
        now_ms: Callable[[], int],
        is_only_replica: bool,
        draw_below: Callable[[int], int],
        flush_later: Later | None,
    ) -> None:
        """What a loader has loaded, the last segment being opened for writing."""
        self.lock = threading.RLock()
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id: str | None = None
        self.segments, self.epochs, self.producers = loader.segments, loader.epochs, loader.producers
        self.log_start_offset, self.log_end_offset = loader.start_offset, loader.end_offset
        self.loaded_end_offset = loader.end_offset  # of transactions that began before, only an offset is known
        self.recovery_point = loader.recovery_point
        self.checkpointed_recovery_point = loader.checkpointed_recovery_point
        self.high_watermark = loader.start_offset
        self.first_unstable_offset: int | None = None
        self.batch_found: tuple[tuple[int, int], int] | None = None
        self.is_only_replica = is_only_replica
        self.now_ms = now_ms
        self.last_flush_ms = now_ms()
        self.flush_later = flush_later
        self.failure: KafkaStorageError | None = None
        self.appending = self.writing("Error while appending records to")
        self.flushing = self.writing("Error while flushing log for")
        self.change_count = 0
        self.truncation_count = 0
        self.deleted_files = DeletedFiles()
        self.cleaning_lock = threading.Lock()
        self._draw_below = draw_below
        self._is_closed = self._is_lost = False
        self.update_config(config)
        self.active = active
        lose_when_forked(self)

    @cached_property
    def rules(self) -> ValidationRules:
        """What of the configuration concerns appends; made for the first."""
        return ValidationRules.of(self.config, self.topic_partition)

    @cached_property
    def validator(self) -> BatchValidator:
        """The checks of batches that are appended without offsets, by `rules`; made for the first append."""
        return BatchValidator(self.rules)

    @property
    def last_stable_offset(self) -> int:
        """What readers of committed data read up to; exclusive."""
        unstable = self.first_unstable_offset
        return self.high_watermark if unstable is None or unstable >= self.high_watermark else unstable

    @property
    def is_writable(self) -> bool:
        """Whether the log is neither closed nor has its writing failed."""
        return self.failure is None and not self._is_closed

    @property
    def size(self) -> int:
        """Bytes of all `.log` files."""
        with self.lock:
            return sum(segment.size for segment in self.segments)

    def update_config(self, config: LogConfig) -> None:
        """Take another configuration; the active segment keeps what it was made with."""
        with self.lock:
            self.change_count += 1
            self.config = config
            vars(self).pop("rules", None)
            vars(self).pop("validator", None)
            self.segment_ms_max = segment_ms_max(config)
            self.flush_message_count: int = config["flush.messages"]

    def writing(self, failure_text: str) -> Writing:
        """A `with` block that changes the log; `failure_text` is as "Error while doing this for"."""
        return Writing(self, failure_text)

    def require_writable(self) -> None:
        """Raise KafkaStorageError if the log is closed or its writing has failed."""
        if self.failure is not None:
            if self._is_lost:
                raise self._lost()
            raise KafkaStorageError(
                f"The log dir {parent(self.directory.path)} is already offline due to a previous IO exception.",
                path=self.directory.path,
                found=self.failure.found,
                advice=self.failure.advice,
            ) from self.failure
        if self._is_closed:
            raise KafkaStorageError(
                f"The memory mapped buffer for log of {self.topic_partition} is already closed",
                path=self.directory.path,
                advice="open the log anew",
            )

    def lose(self) -> None:
        """In the child of a fork: the log is the parent's, and nothing is written or closed here."""
        self.lock = threading.RLock()  # a thread of the parent may have held the other
        self.change_count += 1
        self.failure = self._lost()
        self.deleted_files = DeletedFiles()
        self._is_closed = self._is_lost = True

    def _lost(self) -> KafkaStorageError:
        return KafkaStorageError(
            f"The log of {self.topic_partition} was opened by another process, of which this one was forked",
            path=self.directory.path,
            advice="open it anew in this process, when the other one has closed it",
        )

    def roll_jitter_ms(self) -> int:
        """How much sooner a new segment is to be full."""
        return roll_jitter_ms(self.config, self._draw_below)

    def write_epochs(self) -> None:
        """Write `leader-epoch-checkpoint`."""
        self.directory.write_epochs(self.epochs.entries, "epochs as of the log")
        self.epochs.is_changed = False
