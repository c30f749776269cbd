"""A store with its producers and consumers, as `logstore.open` returns it.

It closes them when it is closed, and itself when the interpreter ends, so that a forgotten close loses no record; a
consumer that the program has not closed commits nothing then.
"""

from __future__ import annotations

import atexit
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ..calls import SHORT, STORE, alone
from ..errors import IllegalStateError
from ..store.data_directory import DataDirectory
from .consumer import Consumer
from .consumer.config import parse_consumer_config
from .consumer.consumer_records import ConsumerRecord
from .producer import Producer
from .producer.config import parse_producer_config
from .serializers import Deserializer, Serializer
from .whole_topics import partitions_of, read_topic

_OPEN: weakref.WeakSet[Store] = weakref.WeakSet()


class Store(DataDirectory):
    """A data directory open for writing, with its producers and consumers; see `DataDirectory`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """As `DataDirectory`."""
        super().__init__(*arguments, **options)
        self._producers: weakref.WeakSet[Producer] = weakref.WeakSet()
        self._consumers: weakref.WeakSet[Consumer] = weakref.WeakSet()
        self._numbers = itertools.count(1)
        self._clients_lock = threading.Lock()
        _OPEN.add(self)

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
        self._require_open()
        parsed = parse_producer_config(config, client_number=next(self._numbers), ignores_network=ignore_network_config)
        made = Producer(self, parsed, key_serializer=key_serializer, value_serializer=value_serializer)
        with alone(SHORT), self._clients_lock:
            self._producers.add(made)
        return made

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
        self._require_open()
        made = Consumer(
            self,
            parse_consumer_config(config, client_number=next(self._numbers), ignores_network=ignore_network_config),
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            consumer_timeout_ms=consumer_timeout_ms,
        )
        with alone(SHORT), self._clients_lock:
            self._consumers.add(made)
        if topics and made.config["group.id"] is not None:
            made.subscribe(topics)
        elif topics:
            made.assign(partition for topic in topics for partition in partitions_of(self, topic))
        return made

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
        consumer = self.consumer(
            topic,
            auto_offset_reset="earliest",
            isolation_level=isolation_level,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )
        return read_topic(consumer)

    def close(self) -> None:
        """Close producers and consumers, then the store, see `DataDirectory.close`.

        In a `finally` or `except` block, and when an exception leaves the store's `with` block, its consumers commit
        nothing: what `poll` returned last may not have been processed.

        Raises:
            LogstoreError: the first error, of a transaction that could not be aborted, or as `DataDirectory.close`;
                everything is closed.
        """
        self._close_all(autocommit=sys.exc_info()[1] is None)

    def _close_block(self, *, in_order: bool) -> None:
        self._close_all(autocommit=in_order)

    def _close_all(self, *, autocommit: bool) -> None:
        if self.is_after_fork:
            return
        with alone(STORE):
            self._close_with_clients(autocommit=autocommit)

    def _close_with_clients(self, *, autocommit: bool) -> None:
        with alone(SHORT), self._clients_lock:
            producers, consumers = list(self._producers), list(self._consumers)
        closes: list[Callable[[], None]] = [
            partial(_close_consumer, consumer, autocommit=autocommit) for consumer in consumers
        ]
        closes += [producer.close for producer in producers]
        _close_each([*closes, self._close])

    def invalidate_after_fork(self) -> None:
        """Disown the store as `DataDirectory` does; what producers have not written, the parent writes."""
        super().invalidate_after_fork()
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
            if self._is_closed
            else f"{len(self.topics)} topics"
        )
        return f"<Store {self.path}: {state}>"


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
    _close_each([partial(store._close_all, autocommit=False) for store in list(_OPEN)])
