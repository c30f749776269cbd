"""A data directory that is open for writing: what a broker would be, without a network.

    with logstore.open("data") as store:
        store.create_topic("orders", partitions=3, config={"compression.type": "zstd"})
        log = store.log("orders", 0)

What the store is, is in files that Kafka reads: topics, configurations, features and blocks of producer ids are records
of `__cluster_metadata-0`, the rest is in the partitions. Opened without changing anything, nothing of it changes.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from ..disk.lock import DataDirectoryLock
from ..disk.seam import Seam
from ..errors import DataDirectoryError, LogstoreError, UnknownTopicIdError, UsageError
from ..layout.meta_properties import MetaProperties
from ..layout.offset_checkpoint import (
    HIGH_WATERMARK_FILE_NAME,
    LOG_START_OFFSET_FILE_NAME,
    RECOVERY_POINT_FILE_NAME,
)
from ..log.partition_log import PartitionLog
from ..model import TopicPartition
from ..topics import INTERNAL_TOPICS
from .broker_config import BrokerConfig
from .checkpoints import Checkpoints, write_clean_shutdown
from .groups.coordinator import GroupCoordinator
from .housekeeping import Housekeeping
from .metadata.log import MetadataLog
from .metadata.topic_changes import TopicChanges
from .metadata.topics import NodeDirectory, TopicDescription, describe, topic_of, unknown_topic
from .partitions import Partitions
from .timers import Timers
from .transactions.coordinator import TransactionCoordinator


class DataDirectory:
    """Made by `logstore.open`. All methods may be called by any thread.

    Attributes:
        path: of the data directory, absolute.
        cluster_id, node_id, directory_id: whose it is.
        config: every configuration of the store itself, Kafka's broker names.
        lock: held while topics change; whoever takes a log's lock and this one takes this one first.
        now_ms: the clock.
        groups, transactions: the coordinators of all groups and of all transactional ids.
        is_lost: the process was forked of the one that opened the store; nothing is read or written here.
        is_reconciled: transactions and partitions agree, so that an orderly close may say so.
    """

    def __init__(
        self,
        path: str,
        properties: MetaProperties,
        config: BrokerConfig,
        *,
        directory_lock: DataDirectoryLock,
        metadata: MetadataLog,
        partitions: Partitions,
        checkpoints: Checkpoints,
        timers: Timers,
        seam: Seam,
        now_ms: Callable[[], int],
    ) -> None:
        """Of what `opening.open_as` has opened."""
        assert properties.cluster_id is not None
        assert properties.node_id is not None
        assert properties.directory_id is not None
        self.path, self.config, self.now_ms = path, config, now_ms
        self.cluster_id, self.node_id = properties.cluster_id, properties.node_id
        self.directory_id = properties.directory_id
        self.lock = threading.RLock()
        self._directory_lock, self._metadata, self._partitions = directory_lock, metadata, partitions
        self._checkpoints, self._timers, self._seam = checkpoints, timers, seam
        self._is_closed = self._has_let_go = self.is_lost = False
        self.is_reconciled = partitions.was_clean
        place = NodeDirectory(self.node_id, self.directory_id)
        self._changes = TopicChanges(metadata, partitions, checkpoints, place, config)
        self._housekeeping = Housekeeping(partitions, checkpoints, timers, config, now_ms)
        self._housekeeping.start()
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self, self.groups)
        directory_lock.on_lost = weakref.WeakMethod(self.lose)

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics by name, the internal ones too, as of now."""
        return self._changes.topics

    @property
    def failures(self) -> Mapping[str, Exception]:
        """What failed in the background the last time it was done: from what it was to why."""
        return {**self._timers.failures, **self._housekeeping.failures}

    @property
    def stray_directories(self) -> tuple[str, ...]:
        """Paths of directories of partitions that the metadata does not know; they are left alone."""
        return tuple(self._partitions.directories.strays)

    def log(self, topic: str, partition: int) -> PartitionLog:
        """The partition's log; raises UnknownTopicOrPartitionError."""
        log = self._partitions.get(TopicPartition(topic, partition))
        if log is None:
            self.require_not_lost()
            raise unknown_topic(f"{topic}-{partition}")
        return log

    def feature(self, name: str) -> int:
        """The finalized level of a feature, such as `transaction.version`; 0 if it is off."""
        return self._metadata.image.features.get(name, 0)

    def create_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, Any] | None = None
    ) -> TopicDescription:
        """Make a topic and its partitions; on return they are on the disk.

        Args:
            partitions: how many; by default `num.partitions`.
            config: Kafka's names of topic configurations.

        Raises:
            TopicExistsError, InvalidTopicError, InvalidPartitionsError, InvalidConfigurationError,
            PolicyViolationError: what Kafka refuses, in its words.
            KafkaStorageError, DataDirectoryError: it could not be written, and there is no such topic.
        """
        with self.lock:
            self._begin_change()
            self._changes.create(name, partitions, config or {})
        self._tell_groups(name)
        return self.describe_topic(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; its files go `file.delete.delay.ms` later.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
            InvalidTopicError: it is one of a coordinator, who would forget everything.
            KafkaStorageError: it could not be written.
            DataDirectoryError: it is deleted, but something of it is still there; the next opening sees to that.
        """
        with self.lock:
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
        """Let a topic have so many partitions in all.

        Raises:
            UnknownTopicOrPartitionError, InvalidPartitionsError, PolicyViolationError: what Kafka refuses.
            KafkaStorageError: it could not be written.
            DataDirectoryError: the topic has them, but they could not be made; each is when it is asked for.
        """
        with self.lock:
            self._begin_change()
            error = self._changes.add_partitions(name, partitions)
        self._tell_groups(name)
        if error is not None:
            raise error
        return self.describe_topic(name)

    def alter_config(self, name: str, changes: Mapping[str, Any]) -> TopicDescription:
        """Set configurations of a topic; None takes one back. They hold at once.

        Raises:
            UnknownTopicOrPartitionError, InvalidConfigurationError: what Kafka refuses.
            KafkaStorageError: it could not be written.
        """
        with self.lock:
            self._begin_change()
            self._changes.alter_config(name, changes)
            return self.describe_topic(name)

    def describe_topic(self, name: str) -> TopicDescription:
        """The topic; raises UnknownTopicOrPartitionError."""
        image = self._metadata.image
        return describe(image, topic_of(image, name))

    def describe_topic_id(self, topic_id: str) -> TopicDescription:
        """The topic of this id, in Kafka's 22 characters; raises UnknownTopicIdError."""
        topic = self._metadata.image.topics_by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicIdError("This server does not host this topic ID.", found=topic_id)
        return describe(self._metadata.image, topic)

    def next_producer_id(self) -> int:
        """A producer id that nobody has; raises KafkaStorageError if the record of the next block cannot be written."""
        with self.lock:
            self._require_open()
            self._metadata.settle()
            ids = self._metadata.image.producer_ids
            if not ids.left_count:
                self._metadata.take_producer_id_block(self._metadata.image.brokers[self.node_id].broker_epoch)
            return ids.take()

    def schedule(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        """Have the function called every `interval_ms` by the store's thread for timers; it should not take long.

        What it raises is kept in `failures`, and it is called again.
        """
        self._timers.add(name, interval_ms, function)

    def start(self) -> None:
        """Begin to do beside what is scheduled."""
        self._timers.start()

    def run_due(self) -> list[str]:
        """Do now, in this thread, what is due; the names of what was done."""
        self.require_not_lost()
        return self._timers.run_due()

    def close(self) -> None:
        """Stop what runs beside, write everything, and let others have the directory; a second call does nothing.

        Syncs that the thread did not come to are made by the logs, each when it is closed.

        Only if all could be written is the directory marked as closed in order; and not if its opening after a crash
        was interrupted, for the next one has to go on with it. A close that was interrupted keeps the directory, whose
        logs other threads may still close: a second one waits for them and does the rest.

        Raises:
            LogstoreError: of the first log that could not be closed, when all others are.
        """
        if self.is_lost:
            return
        self._timers.is_stopped = True
        self._partitions.stop_cleaning()
        self._timers.stop()
        with self.lock:  # whoever comes second waits for it, and finds the store closed: others may have the directory
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

    def lose(self) -> None:
        """In the child of a fork, without the lock: everything raises, as its logs do; `close` does nothing."""
        self.is_lost = True
        self.lock = threading.RLock()  # a thread of the parent may have held the other, and those of the coordinators
        self.groups = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self, self.groups)
        self._timers = Timers(self.now_ms)
        self._partitions = Partitions(  # none, so that none is opened or read either
            self.path,
            self._seam,
            now_ms=self.now_ms,
            checkpoints=self._checkpoints,
            config=self.config,
            timers=self._timers,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def require_not_lost(self) -> None:
        """Raise DataDirectoryError in the child of a fork."""
        if self.is_lost:
            raise DataDirectoryError(
                "The store was opened by another process, of which this one was forked",
                path=self.path,
                advice="open it anew in this process, when the other one has closed it",
            )

    def _require_open(self) -> None:
        self.require_not_lost()
        if self._is_closed:
            raise UsageError("The store is closed", path=self.path, advice="open it anew")

    def _begin_change(self) -> None:
        self._require_open()
        self._changes.settle()

    def _tell_groups(self, topic: str) -> None:
        """Partitions are there that were not; without the lock, for coordinators ask the store under theirs."""
        if topic not in INTERNAL_TOPICS:
            self.groups.topic_changed(topic)

    def _close_logs(self) -> None:
        is_settled = self._changes.is_settled and not self._partitions.has_half_open
        waiting, errors = self._partitions.waiting, self._partitions.close_all()
        logs = self._partitions.logs
        try:
            self._metadata.close()
        except LogstoreError as error:
            errors.append(error)
        written = {key: log for key, log in logs.items() if log.failure.error is None}
        self._checkpoints.write(RECOVERY_POINT_FILE_NAME, written, waiting)
        self._checkpoints.write(LOG_START_OFFSET_FILE_NAME, logs, waiting)
        self._checkpoints.write(HIGH_WATERMARK_FILE_NAME, logs, waiting)
        if errors:
            raise errors[0]
        if is_settled and self.is_reconciled and len(written) == len(logs) and self._metadata.log.failure.error is None:
            write_clean_shutdown(self._seam, self.path, self._metadata.image.brokers[self.node_id].broker_epoch)
