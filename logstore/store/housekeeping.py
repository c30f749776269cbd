"""Periodic tasks of a broker: flush, checkpoint, delete, clean, forget (`LogManager`, `LogCleaner`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from ..config.broker import BrokerConfig
from ..config.topic import is_compacted
from ..errors import LogCleaningAbortedError
from ..layout.file_names import directory_name
from ..layout.offset_checkpoint import (
    CLEANER_OFFSET_FILE_NAME,
    HIGH_WATERMARK_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from ..log.cleaner.choice import Cleanable
from ..log.partition_log import PartitionLog
from ..model import TopicPartition
from .partitions import Partitions

FLUSH_INTERVAL_MS = 1000
_LOGGER = logging.getLogger("logstore")


class Housekeeping:
    """The tasks of one data directory. A partition that fails does not hold up the others."""

    def __init__(self, partitions: Partitions, config: BrokerConfig, now_ms: Callable[[], int]) -> None:
        self._failures: dict[tuple[str, TopicPartition], Exception] = {}  # the last one, until the task succeeds
        self._partitions, self._config, self._now_ms = partitions, config, now_ms
        self._checkpoints, self._timers = partitions.checkpoints, partitions.timers

    def start(self) -> None:
        """Schedule all tasks at Kafka's intervals, first after `log.initial.task.delay.ms`."""
        config = self._config
        delay_ms = config["log.initial.task.delay.ms"]
        recovery_points = partial(self.checkpoint, RECOVERY_POINT_FILE_NAME)
        log_starts = partial(self.checkpoint, LOG_START_OFFSET_FILE_NAME)
        high_watermarks = partial(self.checkpoint, HIGH_WATERMARK_FILE_NAME)
        for name, interval_ms, function in (
            ("flush", FLUSH_INTERVAL_MS, self.flush),
            ("retention", config["log.retention.check.interval.ms"], self.delete_old_segments),
            ("recovery point checkpoint", config["log.flush.offset.checkpoint.interval.ms"], recovery_points),
            ("log start offset checkpoint", config["log.flush.start.offset.checkpoint.interval.ms"], log_starts),
            ("high watermark checkpoint", config["replica.high.watermark.checkpoint.interval.ms"], high_watermarks),
            ("producer expiration", config["producer.id.expiration.check.interval.ms"], self.drop_expired_producers),
            ("deleted files", FLUSH_INTERVAL_MS, self.remove_deleted_files),
        ):
            self._timers.add(name, interval_ms, function, delay_ms=delay_ms)
        if config["log.cleaner.enable"]:
            self._timers.add("cleaning", config["log.cleaner.backoff.ms"], self.clean, is_long=True)

    @property
    def failures(self) -> dict[str, Exception]:
        """The last error by task and partition, until the task succeeds, or has the partition no longer."""
        failures = list(self._failures.items())  # in one step: the tasks run in threads of their own
        return {_failure_name(*key): error for key, error in failures if self._has(*key)}

    def _has(self, task: str, partition: TopicPartition) -> bool:
        config = self._partitions.config(partition)
        return config is not None and (task != "cleaning" or is_compacted(config))

    def flush(self) -> None:
        """Flush logs whose `flush.ms` has passed."""
        self._each("flush", PartitionLog.flush_if_due)

    def checkpoint(self, name: str) -> None:
        """Write the checkpoint of this name."""
        self._checkpoints.write(name, self._partitions.all)

    def delete_old_segments(self, *, is_compacted: bool = False) -> None:
        """Apply retention to logs that are not compacted; or to compacted ones, which `clean` asks for."""
        for key in self._keys(compacted=is_compacted):
            with self._task_of("retention", key) as log:
                if log is not None:
                    log.delete_old_segments(self._now_ms())

    def _keys(self, *, compacted: bool) -> list[TopicPartition]:
        logs, waiting = self._partitions.all()
        configs = {key: self._partitions.config(key) for key in [*logs, *waiting]}
        return [key for key, config in configs.items() if config is not None and is_compacted(config) == compacted]

    def drop_expired_producers(self) -> None:
        """Forget producers that have been silent for `producer.id.expiration.ms`."""
        self._each("producer expiration", PartitionLog.drop_expired_producers)

    def remove_deleted_files(self) -> None:
        """Remove files and directories that were deleted `file.delete.delay.ms` ago."""
        now_ms = self._now_ms()
        self._each("removal of deleted files", lambda log: log.remove_deleted_files(now_ms))
        self._partitions.directories.remove_deleted(now_ms)

    def clean(self) -> None:
        """Clean logs, the dirtiest first, until none is worth it; then apply retention to compacted logs.

        A log whose cleaning fails is left out until the next run (`LogCleanerManager.grabFilthiestCompactedLog`).
        """
        left_out: set[TopicPartition] = set()
        # asked once the log is open: a close that came before it had no log to tell that it stops
        while (chosen := self._filthiest(left_out)) is not None and not self._timers.is_stopped:
            key, log, what = chosen
            left_out.add(key)
            with self._task_of("cleaning", key, log):
                end_offset = log.clean(what, self._now_ms(), buffer_size=self._config["log.cleaner.dedupe.buffer.size"])
                self._note_cleaned(key, log, end_offset)
                if end_offset > what.first_dirty_offset:
                    left_out.discard(key)
        if not self._timers.is_stopped:
            self.delete_old_segments(is_compacted=True)

    def _filthiest(self, left_out: set[TopicPartition]) -> tuple[TopicPartition, PartitionLog, Cleanable] | None:
        now_ms = self._now_ms()
        worth_it = []
        for key in self._keys(compacted=True):
            if key in left_out or self._timers.is_stopped:
                continue
            with self._task_of("cleaning", key) as log:
                if log is None:
                    continue
                what = log.cleanable(self._checkpoints.get(CLEANER_OFFSET_FILE_NAME, key), now_ms)
                if what.is_checkpoint_wrong:
                    self._note_cleaned(key, log, what.first_dirty_offset)
                if what.is_worth_it:
                    worth_it.append((key, log, what))
        return max(worth_it, key=lambda choice: choice[2].cleanable_ratio, default=None)

    def _note_cleaned(self, key: TopicPartition, log: PartitionLog, offset: int) -> None:
        """Write up to where a log is clean, unless it was deleted meanwhile: the next one of its name is not."""
        self._checkpoints.set_cleaner_offset(key, lambda: offset if self._partitions.logs.get(key) is log else None)

    def _each(self, task: str, do: Callable[[PartitionLog], object]) -> None:
        """Do a task with each open log, which takes no lock of one that has nothing to be done."""
        for key, log in self._partitions.logs.items():
            try:
                do(log)
            except Exception as error:  # `_task_of` would cost more than what there is to be done
                if self._partitions.logs.get(key) is log:
                    self._failed(task, key, error)
            else:
                if self._failures:
                    self._failures.pop((task, key), None)

    @contextmanager
    def _task_of(
        self, task: str, key: TopicPartition, log: PartitionLog | None = None
    ) -> Iterator[PartitionLog | None]:
        """Yield the log, opened if need be; None if it has nothing to delete or clean, or has failed.

        An error is kept, so that the next partition has its turn; not that of a log whose topic was deleted meanwhile,
        also where one of its name was made since.
        """
        try:
            if log is None and not self._partitions.is_idle(key):
                log = self._partitions.get(key)
        except Exception as error:
            self._failed(task, key, error)
            yield None
            return
        try:
            yield log if log is not None and log.is_writable else None
        except LogCleaningAbortedError:
            return
        except Exception as error:
            if self._partitions.logs.get(key) is log:
                self._failed(task, key, error)
                return
        self._failures.pop((task, key), None)

    def _failed(self, task: str, partition: TopicPartition, error: Exception) -> None:
        if self._partitions.config(partition) is None:
            return  # deleted meanwhile
        self._failures[task, partition] = error
        _LOGGER.warning("%s failed and is tried again later: %s", _failure_name(task, partition), error)


def _failure_name(task: str, partition: TopicPartition) -> str:
    return f"{task} of {directory_name(*partition)}"
