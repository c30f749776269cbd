"""A data directory open for writing: a broker without a network.

All state is in files that Kafka reads: topics, configurations, features and blocks of producer ids are records of
`__cluster_metadata-0`, everything else is in the partitions. A store that changes no topics leaves the metadata of a
directory that was closed in order as it is; after a crash each partition gets a new leader epoch.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..calls import TOPICS, alone, require_outside
from ..config.broker import BrokerConfig
from ..disk.lock import DataDirectoryLock
from ..disk.seam import Seam
from ..errors import LogstoreError
from ..layout.meta_properties import MetaProperties
from ..layout.offset_checkpoint import (
    HIGH_WATERMARK_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from ..log.load.removals import Removal
from ..topics import INTERNAL_TOPICS
from .checkpoints import write_clean_shutdown
from .groups.coordinator import GroupCoordinator
from .host import Host
from .housekeeping import Housekeeping
from .metadata.log import MetadataLog
from .metadata.topics import TopicDescription
from .partitions import Partitions
from .timers import Timers
from .transactions.coordinator import TransactionCoordinator


class DataDirectory(Host):
    """A host with its coordinators and periodic tasks; see `logstore.client.store.Store` for what users call.

    Attributes:
        groups, transactions: the coordinators of all groups and all transactional ids.
        has_let_go: the directory is closed, and others may have it.
        is_reconciled: transactions and partitions agree, so a close may mark the directory as clean.
    """

    def __init__(
        self,
        path: str,
        properties: MetaProperties,
        config: BrokerConfig,
        directory_lock: DataDirectoryLock,
        metadata: MetadataLog,
        partitions: Partitions,
        seam: Seam,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(path, properties, config, metadata, partitions, now_ms)
        self.directory_lock, self._checkpoints, self._seam = directory_lock, partitions.checkpoints, seam
        self.has_let_go = False
        self.is_reconciled = partitions.was_clean
        self._housekeeping = Housekeeping(partitions, config, now_ms)
        self._housekeeping.start()
        self._coordinate()
        directory_lock.on_fork = weakref.WeakMethod(self.invalidate_after_fork)

    def _coordinate(self) -> None:
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self, self.groups)

    @property
    def failures(self) -> Mapping[str, BaseException]:
        """The background tasks whose last run failed, with the error."""
        return {**self._timers.failures, **self._housekeeping.failures}

    @property
    def stray_directories(self) -> tuple[str, ...]:
        """Paths of directories whose partition the metadata does not know; they are left alone."""
        return tuple(self._partitions.directories.strays)

    @property
    def removals(self) -> Mapping[str, Sequence[Removal]]:
        """What the recoveries of this opening removed from logs, by the directory of the partition."""
        return {self._metadata.path: self._metadata.removals, **self._partitions.removals}

    def create_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, Any] | None = None
    ) -> TopicDescription:
        """See `Store.create_topic`."""
        created = super().create_topic(name, partitions, config)
        self._tell_groups(name)
        return created

    def delete_topic(self, name: str) -> None:
        """See `Store.delete_topic`."""
        with alone(TOPICS), self.lock:
            self._begin_change()
            topic_id = self.describe_topic(name).topic_id
            error = self._changes.delete(name)
        try:
            try:
                self.groups.topic_deleted(name, topic_id)
            finally:
                self._tell_groups(name)
        except LogstoreError as another:
            if error is None:
                raise
            error.add_note(f"Also: {another!r}")
        if error is not None:
            raise error

    def add_partitions(self, name: str, partitions: int) -> TopicDescription:
        """See `Store.add_partitions`."""
        with alone(TOPICS), self.lock:
            self._begin_change()
            error = self._changes.add_partitions(name, partitions)
        self._tell_groups(name)
        if error is not None:
            raise error
        return self.describe_topic(name)

    def alter_config(self, name: str, changes: Mapping[str, Any]) -> TopicDescription:
        """See `Store.alter_config`."""
        with alone(TOPICS), self.lock:
            self._begin_change()
            self._changes.alter_config(name, changes)
            return self.describe_topic(name)

    def update_features(self, levels: Mapping[str, int], *, dry_run: bool = False) -> dict[str, int]:
        """See `Store.update_features`."""
        with alone(TOPICS), self.lock:
            self._begin_change()
            return self._changes.raise_levels(levels, dry_run=dry_run)

    def start(self) -> None:
        """Start the timer thread."""
        self.require_same_process()
        self._timers.start()

    def schedule_for_program(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        """See `Store.schedule`; `schedule` is for the store's own functions."""
        self.require_open()
        self._timers.add_of_program(name, interval_ms, function)

    def run_due(self) -> list[str]:
        """Call what is due in this thread; return the names."""
        self.require_same_process()
        require_outside()
        return self._timers.run_due()

    def close(self) -> None:
        """Stop the timers, close all logs, and release the directory; a second call does nothing.

        An interrupted close keeps the directory locked: a second call waits for the threads that close logs, and does
        the rest.
        """
        if self.is_after_fork:
            return
        # in this order: no cleaning begins, the running one aborts, and only then is it waited for
        self._timers.is_stopped = True
        self._partitions.stop_cleaning()
        self._timers.stop()
        with self.lock:  # a second caller waits, and finds the store closed: others may have the directory then
            self.is_closed = True
            if self.has_let_go:
                return
            try:
                self._close_logs()
            except Exception:
                self._let_go()
                raise
            self._let_go()

    def _let_go(self) -> None:
        self.directory_lock.release()
        self.has_let_go = True

    def invalidate_after_fork(self) -> None:
        """Disown the store in the child of a fork: every call raises, and `close` does nothing. Takes no lock."""
        self.is_after_fork = True
        # new ones: a thread of the parent may hold the locks of the store and its coordinators for ever
        self.lock = threading.RLock()
        self._coordinate()
        self._timers = Timers(self.ticks_ms)
        # no partitions, so that none is opened or read
        self._partitions = Partitions(self.path, self._seam, self.now_ms, self._checkpoints, self.config, self._timers)

    def _tell_groups(self, topic: str) -> None:
        """Tell groups that partitions come or go, without the lock: coordinators ask the store under theirs."""
        if topic not in INTERNAL_TOPICS:
            self.groups.topic_changed(topic)

    def _close_logs(self) -> None:
        is_whole = self._changes.is_whole and not self._partitions.has_half_open
        errors: list[LogstoreError] = []
        try:
            self.groups.close()
        except LogstoreError as error:
            errors.append(error)
        waiting = self._partitions.waiting  # before `close_all`, which forgets them: they keep their checkpoints
        errors += self._partitions.close_all()
        logs = self._partitions.logs
        try:
            self._metadata.close()
        except LogstoreError as error:
            errors.append(error)
        written = {key: log for key, log in logs.items() if log.is_closed_in_order}
        self._checkpoints.write(RECOVERY_POINT_FILE_NAME, lambda: (written, waiting))
        self._checkpoints.write(LOG_START_OFFSET_FILE_NAME, lambda: (logs, waiting))
        self._checkpoints.write(HIGH_WATERMARK_FILE_NAME, lambda: (logs, waiting))
        if errors:
            raise errors[0]
        is_reconciled = self.is_reconciled and not self.transactions.has_orphans
        if is_whole and is_reconciled and len(written) == len(logs) and self._metadata.log.is_closed_in_order:
            write_clean_shutdown(self._seam, self.path, self._metadata.image.brokers[self.node_id].broker_epoch)
