"""A store with its producers and consumers, as `logstore.open` returns it.

It closes them when it is closed, and itself when the interpreter ends, so that a forgotten close loses no record; a
consumer that the program has not closed commits nothing then.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..calls import SHORT, STORE, alone
from ..disk.names import is_url
from ..errors import IllegalStateError, LogstoreError, UsageError
from ..log.load.removals import Removal
from ..log.partition_log import PartitionLog
from ..model import name_of, topic_partition, whole_number
from ..store.closing import ClosedInWith
from ..store.data_directory import DataDirectory
from ..store.metadata.topics import TopicDescription
from ..store.opening.start import open_directory
from .arguments import by_name, duration, require_function
from .consumer import Consumer
from .consumer.config import parse_consumer_config
from .consumer.consumer_records import ConsumerRecord
from .producer import Producer
from .producer.config import parse_producer_config
from .serializers import Deserializer, Serializer
from .whole_topics import partitions_of, read_topic

_OPEN: set[Store] = set()


class Store(ClosedInWith):
    """A data directory open for writing, with its producers and consumers.

        with logstore.open("data") as store:
            store.create_topic("orders", partitions=3, config={"compression.type": "zstd"})
            log = store.log("orders", 0)

    All methods may be called from any thread.

    Attributes:
        path: of the data directory, absolute.
        cluster_id, node_id, directory_id: of the owner.
        config: the store's own configurations, by Kafka's broker names.
        now_ms: the clock.
        groups, transactions: the coordinators of all groups and all transactional ids.
        directory: what the store is built on; its methods are not for programs.
    """

    def __init__(self, directory: DataDirectory) -> None:
        """Take an open data directory, which this store closes."""
        self.directory = directory
        self.path, self.config, self.now_ms = directory.path, directory.config, directory.now_ms
        self.cluster_id, self.node_id = directory.cluster_id, directory.node_id
        self.directory_id = directory.directory_id
        self.groups, self.transactions = directory.groups, directory.transactions
        self._producers: weakref.WeakSet[Producer] = weakref.WeakSet()
        self._consumers: weakref.WeakSet[Consumer] = weakref.WeakSet()
        self._numbers = itertools.count(1)
        self._clients_lock = threading.Lock()
        directory.directory_lock.on_fork = weakref.WeakMethod(self.invalidate_after_fork)
        _OPEN.add(self)

    @property
    def topics(self) -> Mapping[str, TopicDescription]:
        """All topics by name, the internal ones too."""
        return self.directory.topics

    @property
    def failures(self) -> Mapping[str, BaseException]:
        """The background tasks whose last run failed, with the error."""
        return self.directory.failures

    @property
    def stray_directories(self) -> tuple[str, ...]:
        """Paths of directories whose partition the metadata does not know; they are left alone."""
        return self.directory.stray_directories

    @property
    def removals(self) -> Mapping[str, Sequence[Removal]]:
        """What the recoveries of this opening removed from logs, by the directory of the partition."""
        return self.directory.removals

    @property
    def is_after_fork(self) -> bool:
        """True in a fork of the process that opened the store: it must not read or write here."""
        return self.directory.is_after_fork

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return the log of a partition; raises UnknownTopicOrPartitionError."""
        return self.directory.log(*topic_partition((topic, partition)))

    def feature(self, name: str) -> int:
        """Return the finalized level of a feature, such as `transaction.version`; 0 if it is off."""
        return self.directory.feature(name_of("feature", name))

    def update_features(self, levels: Mapping[str, int], *, dry_run: bool = False) -> dict[str, int]:
        """Raise levels of features, durably and for ever; an older Kafka may not start here any more.

        A raised `transaction.version` is that of this process's producers from the next opening on.

        Args:
            levels: by feature, such as `{"metadata.version": 33}`; `default_levels` has those of a release.
            dry_run: check the levels, and change nothing.

        Returns:
            The levels that were raised, or would be; those that the store has already are left out.

        Raises:
            InvalidUpdateVersionError: an unknown feature or level, or a lower one.
            UsageError: the levels are not given by feature.
            KafkaStorageError: the change could not be written.
        """
        return self.directory.update_features(by_name("Levels", levels), dry_run=dry_run)

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
            UsageError: the number of partitions is not whole, or another argument is not what it should be.
            KafkaStorageError, DataDirectoryError: a write failed, and the topic does not exist.
        """
        count = None if partitions is None else whole_number("number of partitions", partitions)
        configs = None if config is None else by_name("Configurations", config)
        return self.directory.create_topic(name if name is None else name_of("topic", name), count, configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; its files are removed after `file.delete.delay.ms`.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
            InvalidTopicError: it belongs to a coordinator, which would forget everything.
            KafkaStorageError: the deletion could not be written.
            DataDirectoryError: the topic is deleted, but some files remain; the next opening removes them.
        """
        self.directory.delete_topic(name_of("topic", name))

    def add_partitions(self, name: str, partitions: int) -> TopicDescription:
        """Raise the number of a topic's partitions to `partitions`.

        Raises:
            UnknownTopicOrPartitionError, InvalidPartitionsError, PolicyViolationError: what Kafka refuses.
            UsageError: the number of partitions is not whole.
            KafkaStorageError: the change could not be written.
            DataDirectoryError: the directories could not be made; each is made when it is first asked for.
        """
        return self.directory.add_partitions(name_of("topic", name), whole_number("number of partitions", partitions))

    def alter_config(self, name: str, changes: Mapping[str, Any]) -> TopicDescription:
        """Set configurations of a topic, effective at once; None unsets one.

        Raises:
            UnknownTopicOrPartitionError, InvalidConfigurationError: what Kafka refuses.
            UsageError: the changes are not given by name.
            KafkaStorageError: the change could not be written.
        """
        return self.directory.alter_config(name_of("topic", name), by_name("Configurations", changes))

    def describe_topic(self, name: str) -> TopicDescription:
        """Return a topic; raises UnknownTopicOrPartitionError."""
        return self.directory.describe_topic(name_of("topic", name))

    def next_producer_id(self) -> int:
        """Return a new producer id; raises KafkaStorageError if the next block of them cannot be logged."""
        return self.directory.next_producer_id()

    def schedule(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        """Call a short function every `interval_ms` from the store's timer thread.

        An error that it raises is kept in `failures`, and it is called again. It replaces a function of the same name.

        Raises:
            UsageError: the store has a task of this name, such as `retention`, or is closed; an argument is of another
                kind.
        """
        require_function("task", function)
        duration("interval_ms", whole_number("interval_ms", interval_ms))
        self.directory.schedule_for_program(name_of("task", name), int(interval_ms), function)

    def run_due(self) -> list[str]:
        """Call what is due in this thread; return the names."""
        return self.directory.run_due()

    def producer(
        self,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        ignore_network_config: bool = False,
        **config: Any,
    ) -> Producer:
        """Return a new producer.

        Args:
            key_serializer, value_serializer: turn the arguments of `send` into bytes or None; without them these must
                be.
            ignore_network_config: ignore configurations such as `bootstrap.servers`, with a warning.
            config: Kafka's names with underscores, see `producer.config`; `**{"linger.ms": 5}` works too.

        Raises:
            UsageError: an unknown name, one of the network, an invalid value, or values that exclude each other.
        """
        self.directory.require_open()
        parsed = parse_producer_config(config, client_number=next(self._numbers), ignores_network=ignore_network_config)
        producer = Producer(self.directory, parsed, key_serializer=key_serializer, value_serializer=value_serializer)
        with alone(SHORT), self._clients_lock:
            self._producers.add(producer)
        return producer

    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        consumer_timeout_ms: float | None = None,
        ignore_network_config: bool = False,
        **config: Any,
    ) -> Consumer:
        """Return a new consumer of topics, shared with its group; without `group_id`, of all their partitions.

        It begins at the end of the log, unless its group has committed or `auto_offset_reset` is "earliest"; `read`
        returns all present records.

        Args:
            topics: none to choose later with `subscribe` or `assign`.
            key_deserializer, value_deserializer: applied to bytes; null stays None.
            consumer_timeout_ms: ends an iteration when no record has come for so long; None waits for ever.
            ignore_network_config: ignore configurations such as `bootstrap.servers`, with a warning.
            config: Kafka's names with underscores, see `consumer.config`.

        Raises:
            UsageError: an unknown name, one of the network, an invalid value, or values that exclude each other.
            UnknownTopicOrPartitionError: without `group_id`, there is no such topic.
        """
        self.directory.require_open()
        consumer = Consumer(
            self.directory,
            parse_consumer_config(config, client_number=next(self._numbers), ignores_network=ignore_network_config),
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            consumer_timeout_ms=consumer_timeout_ms,
        )
        with alone(SHORT), self._clients_lock:
            self._consumers.add(consumer)
        if topics and consumer.config["group.id"] is not None:
            consumer.subscribe(topics)
        elif topics:
            consumer.assign(partition for topic in topics for partition in partitions_of(self.directory, topic))
        return consumer

    def read(
        self,
        topic: str,
        *,
        isolation_level: str = "read_uncommitted",
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> Iterator[ConsumerRecord]:
        """Return an iterator over all present records of a topic, one partition after the other.

        It belongs to no group, commits nothing and never waits.

        Raises:
            UnknownTopicOrPartitionError: there is no such topic.
            LogstoreError: from the iterator, as `Consumer.poll`.
        """
        self.directory.require_open()
        return read_topic(self.directory, topic, isolation_level, key_deserializer, value_deserializer)

    def close(self) -> None:
        """Close producers and consumers, stop the timers, close all logs, and release the directory.

        A second call does nothing. The directory is marked as cleanly closed only if everything was written and no
        recovery after a crash was cut off, which the next opening has to finish. After an interrupt call it again.

        In a `finally` or `except` block, and when an exception leaves the store's `with` block, its consumers commit
        nothing: what `poll` returned last may not have been processed.

        Raises:
            ReentrantCallError: a signal handler calls this in the middle of a call of the library; nothing is closed.
            LogstoreError: the first error, of a transaction that could not be aborted, or of a log that could not be
                closed; everything else is closed.
        """
        self._close_block(in_order=sys.exc_info()[1] is None)

    def _close_block(self, *, in_order: bool) -> None:
        if self.is_after_fork:
            return
        with alone(STORE):
            with alone(SHORT), self._clients_lock:
                producers, consumers = list(self._producers), list(self._consumers)
            closes: list[Callable[[], None]] = [
                partial(_close_consumer, consumer, autocommit=in_order) for consumer in consumers
            ]
            closes += [producer.close for producer in producers]
            _close_each([*closes, self._close_directory])

    def _close_directory(self) -> None:
        try:
            self.directory.close()
        finally:
            if self.directory.has_let_go:
                _OPEN.discard(self)

    def invalidate_after_fork(self) -> None:
        """Disown the store in the child of a fork; what producers have not written, the parent writes."""
        self.directory.invalidate_after_fork()
        self.groups, self.transactions = self.directory.groups, self.directory.transactions
        self._clients_lock = threading.Lock()
        for producer in list(self._producers):
            producer.invalidate_after_fork()
        for consumer in list(self._consumers):
            consumer.invalidate_after_fork()

    def __repr__(self) -> str:
        state = (
            "of a parent process"
            if self.is_after_fork
            else "closed"
            if self.directory.is_closed
            else f"{len(self.topics)} topics"
        )
        return f"<Store {self.path}: {state}>"


def open_store(path: str, **how: Any) -> Store:
    """Open a store, see `logstore.open`; the arguments are those of `open_directory`."""
    if is_url(path):
        raise UsageError("An object store cannot be written", path=path, advice="open it with read_only=True")
    directory = open_directory(path, **how)
    try:
        return Store(directory)
    except BaseException:
        directory.close()
        raise


def _close_consumer(consumer: Consumer, *, autocommit: bool) -> None:
    """Close a consumer; if another thread uses it, only wake that up, which then finds the store closed."""
    try:
        consumer.close(autocommit=autocommit)
    except IllegalStateError:
        consumer.wakeup()


def _close_each(closes: Iterable[Callable[[], None]]) -> None:
    """Call each, whatever the others raise, so that no client loses records by another's error; raise the first."""
    rest = iter(closes)
    errors: list[Exception] = []
    try:
        for close in rest:
            try:
                close()
            except Exception as error:
                errors.append(error)
    finally:
        if others := list(rest):  # after a KeyboardInterrupt: the close that it hit is given up, the others still run
            _close_each(others)
    if errors:
        for other in errors[1:]:
            errors[0].add_note(f"Also: {other!r}")
        raise errors[0]


@atexit.register
def _close_all() -> None:
    """Close what the program has not: it ends by an exception, or has never closed its consumers."""
    _close_each([partial(_close_at_exit, store) for store in list(_OPEN)])


def _close_at_exit(store: Store) -> None:
    try:
        store._close_block(in_order=False)
    except LogstoreError:
        if os.path.exists(store.path):  # else it was a temporary one, and there is nothing to save
            raise
