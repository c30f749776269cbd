"""A store with its producers and consumers: what `logstore.open` gives.

It closes them with itself, and itself when the interpreter ends, so that nothing that was sent is lost by forgetting.
"""

from __future__ import annotations

import atexit
import itertools
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from ..errors import IllegalStateError
from ..store.store import Store
from .consumer import Consumer
from .consumer.config import parse_consumer_config
from .lifetime import close_each, close_in_with
from .producer import Producer
from .producer.config import parse_producer_config
from .serializers import Deserializer, Serializer

_OPEN: weakref.WeakSet[EmbeddedStore] = weakref.WeakSet()


class EmbeddedStore(Store):
    """See `Store`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """As `Store`."""
        super().__init__(*arguments, **options)
        self._producers: weakref.WeakSet[Producer] = weakref.WeakSet()
        self._consumers: weakref.WeakSet[Consumer] = weakref.WeakSet()
        self._numbers = itertools.count(1)
        self._clients_lock = threading.Lock()
        _OPEN.add(self)

    def producer(
        self, *, key_serializer: Serializer | None = None, value_serializer: Serializer | None = None, **config: Any
    ) -> Producer:
        """A producer.

        Args:
            key_serializer, value_serializer: make bytes, or None, of what `send` is given; without them it has to be.
            config: Kafka's names with underscores, see `producer_config`; `**{"linger.ms": 5}` does as well.

        Raises:
            UsageError: an unknown name, a value that does not do, or values that exclude each other.
        """
        self._require_open()
        parsed = parse_producer_config(config, client_number=next(self._numbers))
        made = Producer(self, parsed, key_serializer=key_serializer, value_serializer=value_serializer)
        with self._clients_lock:
            self._producers.add(made)
        return made

    def consumer(
        self,
        *topics: str,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        consumer_timeout_ms: float | None = None,
        **config: Any,
    ) -> Consumer:
        """A consumer of some topics, shared with its group; without `group_id` of all their partitions.

        Args:
            topics: none: say later with `subscribe` or `assign`.
            key_deserializer, value_deserializer: make something of bytes; null stays None.
            consumer_timeout_ms: when an iteration ends that nothing comes for; None: never.
            config: Kafka's names with underscores, see `consumer_config`.

        Raises:
            UsageError: an unknown name, a value that does not do, or values that exclude each other.
            UnknownTopicOrPartitionError: without `group_id`, there is no such topic.
        """
        self._require_open()
        made = Consumer(
            self,
            parse_consumer_config(config, client_number=next(self._numbers)),
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            consumer_timeout_ms=consumer_timeout_ms,
        )
        with self._clients_lock:
            self._consumers.add(made)
        if topics and made.config["group.id"] is not None:
            made.subscribe(topics)
        elif topics:
            made.assign((topic, number) for topic in topics for number in range(self._partition_count(topic)))
        return made

    def close(self) -> None:
        """Close producers and consumers, then the store, see `Store.close`.

        Raises:
            LogstoreError: the first of: a transaction could not be aborted, or as `Store.close`; all is closed then.
        """
        if self.is_lost:
            return
        with self._clients_lock:
            producers, consumers = list(self._producers), list(self._consumers)
        closes: list[Callable[[], None]] = [partial(_close_consumer, consumer) for consumer in consumers]
        closes += [producer.close for producer in producers]
        close_each([*closes, super().close])

    def lose(self) -> None:
        """As `Store.lose`: what producers have not written yet is the parent's to write."""
        super().lose()
        self._clients_lock = threading.Lock()
        for producer in list(self._producers):
            producer.invalidate_after_fork()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        close_in_with(self.close, error)

    def _partition_count(self, topic: str) -> int:
        return self.describe_topic(topic).partition_count


def _close_consumer(consumer: Consumer) -> None:
    """One that another thread uses is only told to stop: it finds the store closed."""
    try:
        consumer.close()
    except IllegalStateError:
        consumer.wakeup()


@atexit.register
def _close_all() -> None:
    close_each([store.close for store in list(_OPEN)])
