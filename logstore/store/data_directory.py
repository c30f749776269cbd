"""A data directory open for writing: a broker without a network.

    with logstore.open("data") as store:
        store.create_topic("orders", partitions=3, config={"compression.type": "zstd"})
        log = store.log("orders", 0)

All state is in files that Kafka reads: topics, configurations, features and blocks of producer ids are records of
`__cluster_metadata-0`, everything else is in the partitions. A store that changes no topics leaves the metadata as it
is.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import clock
from ..calls import STORE, TOPICS, alone, require_outside
from ..config.broker import BrokerConfig
from ..disk.lock import DataDirectoryLock
from ..disk.seam import Seam
from ..errors import DataDirectoryError, LogstoreError, UsageError
from ..layout.meta_properties import MetaProperties
from ..layout.offset_checkpoint import (
    HIGH_WATERMARK_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from ..log.load.removals import Removal
from ..log.partition_log import PartitionLog
from ..model import TopicPartition
from ..topics import INTERNAL_TOPICS
from .checkpoints import write_clean_shutdown
from .closing import ClosedInWith
from .groups.coordinator import GroupCoordinator
from .housekeeping import Housekeeping
from .metadata.log import MetadataLog
from .metadata.topic_changes import TopicChanges
from .metadata.topics import TopicDescription, describe, topic_of, unknown_topic
from .opening.formatting import place_of
from .partitions import Partitions
from .timers import Timers
from .transactions.coordinator import TransactionCoordinator


class DataDirectory(ClosedInWith):
    """A store without its clients; opened by `logstore.open`. All methods may be called from any thread.

    Attributes:
        path: of the data directory, absolute.
        cluster_id, node_id, directory_id: of the owner.
        config: the store's own configurations, by Kafka's broker names.
        lock: held while topics change; taken before the lock of a log, never after it.
        now_ms: the clock.
        ticks_ms: a clock for intervals that never goes back; a clock given by the program serves for both.
        groups, transactions: the coordinators of all groups and all transactional ids.
        is_after_fork: this process is a fork of the one that opened the store; it must not read or write here.
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
        """Assemble a store from the parts that `opening.open_as` made."""
        assert properties.cluster_id is not None
        place = place_of(properties)
        self.path, self.config, self.now_ms = path, config, now_ms
        self.ticks_ms = clock.ticks_of(now_ms)
        self.cluster_id, (self.node_id, self.directory_id) = properties.cluster_id, place
        self.lock = threading.RLock()
        self._directory_lock, self._metadata, self._partitions = directory_lock, metadata, partitions
        self._checkpoints, self._timers, self._seam = partitions.checkpoints, partitions.timers, seam
        self._is_closed = self._has_let_go = self.is_after_fork = False
        self.is_reconciled = partitions.was_clean
        self._changes = TopicChanges(metadata, partitions, place, config)
        self._housekeeping = Housekeeping(partitions, config, now_ms)
        self._housekeeping.start()
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self, self.groups)
        directory_lock.on_fork = weakref.WeakMethod(self.invalidate_after_fork)

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics by name, the internal ones too."""
        return self._changes.topics

    @property
    def failures(self) -> Mapping[str, Exception]:
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

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return the log of a partition; raises UnknownTopicOrPartitionError."""
        log = self._partitions.get(TopicPartition(topic, partition))
        if log is None:
            self._require_open()
            raise unknown_topic(f"{topic}-{partition}")
        return log

    def feature(self, name: str) -> int:
        """Return the finalized level of a feature, such as `transaction.version`; 0 if it is off."""
        return self._metadata.image.features.get(name, 0)

    def create_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, Any] | None = None
    ) -> TopicDescription:
        """Create a topic and its partitions, durably.

        Args:
            partitions: their number; `num.partitions` by default.
            config: topic configurations by Kafka's names.

        Raises:
            TopicExistsError, InvalidTopicError, InvalidPartitionsError, InvalidConfigurationError,
            PolicyViolationError: what Kafka refuses, in its words.
            KafkaStorageError, DataDirectoryError: a write failed, and the topic does not exist.
        """
        with alone(TOPICS), self.lock:
            self._begin_change()
            self._changes.create(name, partitions, config or {})
        self._tell_groups(name)
        return self.describe_topic(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; its files are removed after `file.delete.delay.ms`.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
            InvalidTopicError: it belongs to a coordinator, which would forget everything.
            KafkaStorageError: the deletion could not be written.
            DataDirectoryError: the topic is deleted, but some files remain; the next opening removes them.
        """
        with alone(TOPICS), self.lock:
            self._begin_change()
            topic_id = self.describe_topic(name).topic_id
            error = self._changes.delete(name)
        try:
            self.groups.topic_deleted(name, topic_id)
        except LogstoreError as another:
            if error is None:
                raise
            error.add_note(f"Also: {another!r}")
        if error is not None:
            raise error

    def add_partitions(self, name: str, partitions: int) -> TopicDescription:
        """Raise the number of a topic's partitions to `partitions`.

        Raises:
            UnknownTopicOrPartitionError, InvalidPartitionsError, PolicyViolationError: what Kafka refuses.
            KafkaStorageError: the change could not be written.
            DataDirectoryError: the directories could not be made; each is made when it is first asked for.
        """
        with alone(TOPICS), self.lock:
            self._begin_change()
            error = self._changes.add_partitions(name, partitions)
        self._tell_groups(name)
        if error is not None:
            raise error
        return self.describe_topic(name)

    def alter_config(self, name: str, changes: Mapping[str, Any]) -> TopicDescription:
        """Set configurations of a topic, effective at once; None unsets one.

        Raises:
            UnknownTopicOrPartitionError, InvalidConfigurationError: what Kafka refuses.
            KafkaStorageError: the change could not be written.
        """
        with alone(TOPICS), self.lock:
            self._begin_change()
            self._changes.alter_config(name, changes)
            return self.describe_topic(name)

    def describe_topic(self, name: str) -> TopicDescription:
        """Return a topic; raises UnknownTopicOrPartitionError."""
        self.require_same_process()
        image = self._metadata.image
        return describe(image, topic_of(image, name))

    def next_producer_id(self) -> int:
        """Return a new producer id; raises KafkaStorageError if the next block of them cannot be logged."""
        with alone(TOPICS), self.lock:
            self._require_open()
            self._metadata.settle()
            ids = self._metadata.producer_ids
            if not ids.left_count:
                self._metadata.take_producer_id_block(self._metadata.image.brokers[self.node_id].broker_epoch)
            return ids.take()

    def schedule(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        """Call a short function every `interval_ms` from the store's timer thread.

        An error that it raises is kept in `failures`, and it is called again.
        """
        self.require_same_process()
        self._timers.add(name, interval_ms, function)

    def start(self) -> None:
        """Start the timer thread."""
        self.require_same_process()
        self._timers.start()

    def run_due(self) -> list[str]:
        """Call what is due in this thread; return the names."""
        self.require_same_process()
        require_outside()
        return self._timers.run_due()

    def close(self) -> None:
        """Stop the timers, close all logs, and release the directory; a second call does nothing.

        The directory is marked as cleanly closed only if everything was written and no recovery after a crash was cut
        off, which the next opening has to finish. An interrupted close keeps the directory locked, as other threads may
        still be closing logs: a second call waits for them and does the rest.

        Raises:
            ReentrantCallError: a signal handler calls this in the middle of a call of the library; nothing is closed.
            LogstoreError: of the first log that could not be closed; all others are closed.
        """
        if self.is_after_fork:
            return
        with alone(STORE):
            self._close()

    def _close(self) -> None:
        # in this order: no cleaning begins, the running one aborts, and only then is it waited for
        self._timers.is_stopped = True
        self._partitions.stop_cleaning()
        self._timers.stop()
        with self.lock:  # a second caller waits, and finds the store closed: others may have the directory then
            self._is_closed = True
            if self._has_let_go:
                return
            try:
                self._close_logs()
            except Exception:
                self._let_go()
                raise
            self._let_go()

    def _let_go(self) -> None:
        self._directory_lock.release()
        self._has_let_go = True

    def invalidate_after_fork(self) -> None:
        """Disown the store in the child of a fork: every call raises, and `close` does nothing. Takes no lock."""
        self.is_after_fork = True
        # new ones: a thread of the parent may hold the locks of the store and its coordinators for ever
        self.lock = threading.RLock()
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self, self.groups)
        self._timers = Timers(self.ticks_ms)
        # no partitions, so that none is opened or read
        self._partitions = Partitions(self.path, self._seam, self.now_ms, self._checkpoints, self.config, self._timers)

    def require_same_process(self) -> None:
        """Raise DataDirectoryError in the child of a fork."""
        if self.is_after_fork:
            raise self.of_parent()

    def of_parent(self) -> DataDirectoryError:
        """Return the error for a call in the child of a fork."""
        return DataDirectoryError(
            "The store was opened by another process, of which this one was forked",
            path=self.path,
            advice="open it anew in this process, when the other one has closed it",
        )

    def _require_open(self) -> None:
        self.require_same_process()
        if self._is_closed:
            raise UsageError("The store is closed", path=self.path, advice="open it anew")

    def _begin_change(self) -> None:
        self._require_open()
        self._changes.settle()

    def _tell_groups(self, topic: str) -> None:
        """Tell groups of new partitions, without the lock: coordinators ask the store while they hold theirs."""
        if topic not in INTERNAL_TOPICS:
            self.groups.topic_changed(topic)

    def _close_logs(self) -> None:
        is_settled = self._changes.is_settled and not self._partitions.has_half_open
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
        if is_settled and self.is_reconciled and len(written) == len(logs) and self._metadata.log.is_closed_in_order:
            write_clean_shutdown(self._seam, self.path, self._metadata.image.brokers[self.node_id].broker_epoch)
