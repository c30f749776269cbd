"""Partitions of a data directory: opened in parallel, created, and set aside to be deleted (`LogManager`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from itertools import count
from typing import NamedTuple

from ..calls import PARTITIONS, alone
from ..config.broker import OPEN_FILES_MAX, BrokerConfig, topic_defaults
from ..config.topic import LogConfig, parse_config
from ..disk.open_files import OPEN_FILES, OpenFiles
from ..disk.seam import Seam
from ..errors import LogstoreError
from ..layout.file_names import directory_name
from ..layout.offset_checkpoint import (
    CLEANER_OFFSET_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from ..log.load.loader import LoadSettings
from ..log.load.opening import PlannedLog, make_log
from ..log.load.removals import Removal, removal_text, require_accepted
from ..log.partition_log import PartitionLog
from ..log.state import LogHost
from ..model import TopicPartition
from ..replay.metadata_image import MetadataImage
from ..threads import each_done
from .checkpoints import Checkpoints
from .directories import PartitionDirectories
from .timers import Timers

Progress = Callable[[int, int], object]
_LOGGER = logging.getLogger("logstore")


class WantedPartition(NamedTuple):
    """A partition that the metadata has, as it must be opened.

    `was_clean`: it was closed in order and needs no recovery.
    """

    key: TopicPartition
    topic_id: str | None
    config: LogConfig
    leader_epoch: int
    was_clean: bool = False


class Partitions:
    """The logs of a store. A new one, and after an orderly close each, is opened when first asked for.

    Attributes:
        was_clean: the directory was closed in order, so its logs need no recovery.
        removals: what their openings removed from logs, by the directory of the partition.
        directories: of these and other partitions.
        checkpoints, timers: of the whole data directory.
    """

    def __init__(
        self,
        root: str,
        seam: Seam,
        now_ms: Callable[[], int],
        checkpoints: Checkpoints,
        config: BrokerConfig,
        timers: Timers,
        *,
        accepts_loss: bool = True,
    ) -> None:
        self._seam, self._now_ms = seam, now_ms
        self.directories = PartitionDirectories(root, seam)
        self.checkpoints, self.timers = checkpoints, timers
        requires_verification = config["transaction.partition.verification.enable"]
        self._host = LogHost(now_ms, flush_later=timers.run_soon, requires_verification=requires_verification)
        self._thread_count = config["num.recovery.threads.per.data.dir"]
        count_max = config[OPEN_FILES_MAX]
        self._open_files = OpenFiles(count_max) if count_max else OPEN_FILES
        self._delay_ms = parse_config(topic_defaults(config))["file.delete.delay.ms"]
        self.was_clean = False
        self.removals: dict[str, Sequence[Removal]] = {}
        self._accepts_loss = accepts_loss
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._waiting: dict[TopicPartition, WantedPartition] = {}
        self._leaving: dict[TopicPartition, PartitionLog | None] = {}  # of deleted topics, until they are set aside
        self._idle: set[TopicPartition] = set()  # not open, and nothing to be deleted or cleaned
        self._lock = threading.RLock()

    def sort_directories(self, image: MetadataImage) -> None:
        """Sort the directories before any log is opened."""
        self.directories.sort(image, self._now_ms(), self._delay_ms)

    @property
    def logs(self) -> dict[TopicPartition, PartitionLog]:
        """The logs that are open."""
        return dict(self._logs)

    @property
    def waiting(self) -> Collection[TopicPartition]:
        """The partitions that are not open yet."""
        return list(self._waiting)

    def all(self) -> tuple[dict[TopicPartition, PartitionLog], Collection[TopicPartition]]:
        """Return the logs that are open, and the partitions that are not; takes no lock."""
        waiting = list(self._waiting)  # first: a partition that is opened meanwhile must be in one of the two
        logs = dict(self._logs)
        return logs, [key for key in waiting if key not in logs]

    def changing(self) -> AbstractContextManager[object]:
        """Return a `with` block in which partitions are made: others that ask for one wait until its end."""
        return self._lock

    @property
    def has_half_open(self) -> bool:
        """True if a partition that is not open has a directory that needs recovery."""
        return any(
            not partition.was_clean and self.directories.has(partition.key) for partition in self._waiting.values()
        )

    def start(self, wanted: Iterable[WantedPartition], progress: Progress | None) -> None:
        """Recover all partitions; after an orderly close only create missing ones; raises as `open_all`."""
        wanted = list(wanted)
        self.checkpoints.keep_only({partition.key for partition in wanted})
        if self.was_clean:
            for partition in wanted:
                if self.directories.has(partition.key):
                    self._waiting[partition.key] = partition._replace(was_clean=True)
        if self._waiting and progress is not None:
            progress(len(self._waiting), len(wanted))
        self.open_all([partition for partition in wanted if partition.key not in self._waiting], progress)

    def get(self, key: TopicPartition) -> PartitionLog | None:
        """Return the log of a partition, opened if need be; None if it does not exist."""
        log = self._logs.get(key)
        if log is not None:
            return log
        # another thread may be opening it: only under the lock is a partition missing
        with alone(PARTITIONS), self._lock:
            wanted = self._waiting.get(key)
            if wanted is not None and key not in self._logs:
                self._make_directories([key])
                with naming(key):
                    planned = self._plan(wanted)
                    planned.require_accepted()
                    # before anything changes: an interrupt leaves it to be recovered
                    self._waiting[key] = wanted._replace(was_clean=False)
                    self._open(wanted, planned)
            self._waiting.pop(key, None)
            return self._logs.get(key)

    def config(self, key: TopicPartition) -> LogConfig | None:
        """Return the configuration of a partition, open or not; None if it does not exist."""
        waiting, log = self._waiting.get(key), self._logs.get(key)
        return log.config if log is not None else None if waiting is None else waiting.config

    def is_idle(self, key: TopicPartition) -> bool:
        """Return whether a partition is not open, and need not be for retention or cleaning."""
        waiting = self._waiting.get(key)
        if waiting is None or not waiting.was_clean:
            return False
        if key not in self._idle:
            if not self.directories.is_idle(key, deletes="delete" in waiting.config["cleanup.policy"]):
                return False
            self._idle.add(key)
        return True

    def open_all(self, wanted: Sequence[WantedPartition], progress: Progress | None = None) -> None:
        """Open partitions, and create missing ones, which are opened when first asked for.

        All are read before one is changed: where readable batches would go (RecoveryLossError, unless that is
        accepted), or one cannot be read, none is changed. If one cannot be opened, raise its LogstoreError, and close
        the others again. `progress` is called with the number of partitions that are ready, and of all; those that wait
        are ready.
        """
        ready_count = count(len(self._waiting) + 1)
        all_count = len(self._waiting) + len(wanted)

        def tell() -> None:
            if progress is not None:
                progress(next(ready_count), all_count)

        planned = self._plan_all([partition for partition in wanted if self.directories.has(partition.key)], tell)
        self._make_directories([partition.key for partition in wanted])

        def open_or_make(partition: WantedPartition) -> None:
            if partition.key in planned:
                self._open(partition, planned[partition.key])
            elif partition.config["preallocate"]:
                self._open(partition, self._plan(partition))
            else:
                self._make(partition)

        try:
            with closing(each_done(open_or_make, wanted, self._thread_count)) as opened:
                for partition, error in opened:
                    with naming(partition.key):
                        if error is not None:
                            raise error
                    if partition.key in planned:
                        continue
                    tell()
        except BaseException:
            for partition in wanted:
                log = self._logs.pop(partition.key, None)
                self._waiting.pop(partition.key, None)
                if log is not None:
                    log.close()
            raise

    def stop_cleaning(self) -> None:
        """Make rounds of cleaning abort, as the logs are about to be closed."""
        for log in self.logs.values():
            log.stop_cleaning()

    def close_all(self) -> list[LogstoreError]:
        """Close every log, whatever becomes of the others; return the errors. No log is opened any more.

        An interrupt waits for the logs that are being closed; then it may be called again for the others.
        """
        with alone(PARTITIONS), self._lock:
            self._waiting.clear()
            logs = [*self._logs.values(), *(log for log in self._leaving.values() if log is not None)]
        errors: list[LogstoreError] = []
        with closing(each_done(PartitionLog.close, logs, self._thread_count)) as closed:
            for _, error in closed:
                if error is None:
                    continue
                if not isinstance(error, LogstoreError):
                    raise error
                errors.append(error)
        return errors

    def put_aside(
        self, keys: Collection[TopicPartition], file_delete_delay_ms: int | None = None
    ) -> LogstoreError | None:
        """Close partitions of a deleted topic, to remove their directories later; try all, and return the first error.

        A directory that stays does not block a new topic.
        """
        with alone(PARTITIONS), self._lock:
            # noted first: after an interrupt the next call, or `close_all`, closes these logs
            for key in keys:
                self._leaving[key] = self._logs.get(key)
            for key in keys:
                self._logs.pop(key, None)
                self._waiting.pop(key, None)
        delay_ms = self._delay_ms if file_delete_delay_ms is None else file_delete_delay_ms
        now_ms, failure = self._now_ms(), None
        for key, log in list(self._leaving.items()):
            error = self._put_aside(key, log, now_ms, delay_ms)
            failure = failure or error
            del self._leaving[key]
        return failure

    def update(self, wanted: Iterable[WantedPartition]) -> None:
        """Update configurations and leader epochs; partitions without log are created when first asked for."""
        with alone(PARTITIONS), self._lock:
            for partition in wanted:
                log, waiting = self._logs.get(partition.key), self._waiting.get(partition.key)
                if log is None:
                    self._idle.discard(partition.key)
                    self._waiting[partition.key] = partition._replace(
                        was_clean=waiting is not None and waiting.was_clean
                    )
                    continue
                log.leader_epoch = partition.leader_epoch
                if log.config == partition.config:
                    continue
                log.update_config(partition.config)

    def keep_only(self, wanted: Iterable[WantedPartition]) -> LogstoreError | None:
        """Keep exactly these partitions; returns as `put_aside`."""
        wanted = list(wanted)
        self.update(wanted)
        return self.put_aside({*self._waiting, *self._logs} - {partition.key for partition in wanted})

    def _make_directories(self, keys: Collection[TopicPartition]) -> None:
        made_count = 0
        try:
            for key in keys:
                with naming(key):
                    made_count += self.directories.make(key)
        finally:
            if made_count:
                self.directories.sync()

    def _plan_all(
        self, wanted: Collection[WantedPartition], tell: Callable[[], None]
    ) -> dict[TopicPartition, PlannedLog]:
        planned: dict[TopicPartition, PlannedLog] = {}

        def plan(partition: WantedPartition) -> None:
            planned[partition.key] = self._plan(partition)

        with closing(each_done(plan, wanted, self._thread_count)) as read:
            for partition, error in read:
                with naming(partition.key):
                    if error is not None:
                        raise error
                tell()
        if not self._accepts_loss:
            require_accepted({planned[partition.key].path: planned[partition.key].removals for partition in wanted})
        return planned

    def _plan(self, wanted: WantedPartition) -> PlannedLog:
        key = wanted.key
        settings = LoadSettings(
            wanted.was_clean,
            self.checkpoints.get(RECOVERY_POINT_FILE_NAME, key) or 0,
            self.checkpoints.get(LOG_START_OFFSET_FILE_NAME, key) or 0,
            self._now_ms(),
            wanted.config,
            self._accepts_loss,
            self._open_files,
            was_cleaned=self.checkpoints.get(CLEANER_OFFSET_FILE_NAME, key) is not None,
        )
        return PlannedLog(self.directories.path(key), settings, seam=self._seam, topic_id=wanted.topic_id)

    def _make(self, wanted: WantedPartition) -> None:
        make_log(self.directories.path(wanted.key), wanted.topic_id, self._seam)
        self.checkpoints.begin(wanted.key)
        self._waiting[wanted.key] = wanted._replace(was_clean=True)

    def _open(self, wanted: WantedPartition, planned: PlannedLog) -> None:
        log = planned.open(self._host)
        log.leader_epoch = wanted.leader_epoch
        if planned.removals:
            self.removals[planned.path] = planned.removals
        for removal in planned.removals:  # no warning: it was accepted, or could not be read
            _LOGGER.info("The recovery has removed %s", removal_text(removal, planned.path))
        self._logs[wanted.key] = log  # last: from now on other threads append to it

    def _put_aside(
        self, key: TopicPartition, log: PartitionLog | None, now_ms: int, delay_ms: int
    ) -> LogstoreError | None:
        failure = None
        try:
            if log is not None:
                log.close()
        except LogstoreError as error:
            failure = error
        try:
            if self.directories.has(key):
                rename = partial(self.directories.delete, key, now_ms, delay_ms)
                rename() if log is None else log.move(rename)
            self.checkpoints.forget(key)
        except LogstoreError as error:
            failure = failure or error
            self.directories.abandon(key)
        return failure


@contextmanager
def naming(key: TopicPartition) -> Iterator[None]:
    """Add the partition and advice to an error that the block raises."""
    try:
        yield
    except LogstoreError as error:
        error.add_note(
            f"of partition {directory_name(*key)}; `logstore verify` tells what is wrong with it; `logstore repair` "
            "copies a log that has lost no batch, `logstore salvage` what is good of another"
        )
        raise
