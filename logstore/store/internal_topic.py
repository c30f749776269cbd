"""An internal topic and its coordinator: created for the first key; all records of a key are in one partition."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from ..calls import GROUPS, TOPICS, alone
from ..config.broker import DURABLE_COMMITS
from ..coordinator.transactions.outcomes import MarkerEntry
from ..errors import UnknownTopicOrPartitionError
from ..layout.record import RECORD_OVERHEAD_SIZE
from ..log.append.request import AppendInfo
from ..log.partition_log import PartitionLog
from ..topics import consumer_offsets, transaction_state
from ..topics.partition_for import partition_for
from .host import Host

T = TypeVar("T")

_PARTITION_COUNT_NAMES = {
    transaction_state.TOPIC: "transaction.state.log.num.partitions",
    consumer_offsets.TOPIC: "offsets.topic.num.partitions",
}
_COMPRESSION_TYPES = ("producer", "gzip", "snappy", "lz4", "zstd")  # by `offsets.topic.compression.codec`
_BATCH_SIZE_MAX = 1 << 19  # bytes of keys in one batch of tombstones


class CoordinatorTopic:
    """`__transaction_state` or `__consumer_offsets`.

    Attributes:
        is_durable: a request is answered only when its records are durable.
    """

    def __init__(self, host: Host, name: str) -> None:
        self.name = name
        self.is_durable: bool = host.config[DURABLE_COMMITS]
        self._host = host
        self._making = threading.Lock()
        self._partition_count = 0

    @property
    def partition_count(self) -> int:
        """The number of partitions, 0 before the topic is created; partitions added later do not count."""
        if self._partition_count == 0:
            # under the lock: while another thread creates the topic, it has no partitions yet
            with alone(TOPICS), self._host.lock, suppress(UnknownTopicOrPartitionError):
                self._partition_count = self._host.describe_topic(self.name).partition_count
        return self._partition_count

    def make(self) -> None:
        """Create the topic if it does not exist."""
        with alone(GROUPS), self._making:
            if self.partition_count == 0:
                broker, count_name = self._host.config, _PARTITION_COUNT_NAMES[self.name]
                topic_config = internal_config(self.name, broker)
                self._host.create_topic(self.name, partitions=broker[count_name], config=topic_config)

    def partition_of(self, key: str) -> int:
        """Return the partition of a group or transactional id; creates the topic for the first one."""
        if self.partition_count == 0:
            self.make()
        return partition_for(key, self.partition_count)

    def log(self, partition: int) -> PartitionLog:
        """Return the log of a partition."""
        return self._host.log(self.name, partition)

    def append(
        self, partition: int, records: Sequence[tuple[bytes, bytes | None]], *, needs_sync: bool = True
    ) -> AppendInfo:
        """Write records as one batch without a producer; sync them if `needs_sync` and the topic is durable."""
        log = self.log(partition)
        info = log.append_records([value for _, value in records], [key for key, _ in records])
        if needs_sync:
            self.sync(log)
        return info

    def append_tombstones(
        self, partition: int, keys: Sequence[bytes], *, needs_sync: bool = True
    ) -> Iterator[list[bytes]]:
        """Write tombstones in batches small enough for any topic; yield the keys of each batch once it is written."""
        for batch in _batches(keys):
            self.append(partition, [(key, None) for key in batch], needs_sync=needs_sync)
            yield batch

    def sync(self, log: PartitionLog) -> None:
        """Sync the log if writes must be durable."""
        if self.is_durable:
            log.flush()


def internal_config(name: str, broker: Mapping[str, Any]) -> dict[str, str]:
    """Return the configuration that a broker gives an internal topic; empty for another topic."""
    if name == consumer_offsets.TOPIC:
        return {
            "cleanup.policy": "compact",
            "compression.type": _COMPRESSION_TYPES[broker["offsets.topic.compression.codec"]],
            "segment.bytes": str(broker["offsets.topic.segment.bytes"]),
        }
    if name == transaction_state.TOPIC:
        return {
            "unclean.leader.election.enable": "false",
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": "1",
            "segment.bytes": str(broker["transaction.state.log.segment.bytes"]),
        }
    return {}


def log_or_none(host: Host, topic: str, partition: int) -> PartitionLog | None:
    """Return the log of a partition; None if it does not exist."""
    try:
        return host.log(topic, partition)
    except UnknownTopicOrPartitionError:
        return None


def append_marker(log: PartitionLog, marker: MarkerEntry) -> None:
    """Append the marker of a transaction; raises LogstoreError as `PartitionLog.append_end_transaction`."""
    log.append_end_transaction(**marker._asdict())


def for_each_then_raise(things: Iterable[T], act: Callable[[T], object]) -> None:
    """Call `act` with every item, whatever happens with the others; then raise the first exception, if any."""
    failure: Exception | None = None
    for thing in things:
        try:
            act(thing)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _batches(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for key in keys:
        size += len(key) + RECORD_OVERHEAD_SIZE
        if batch and size > _BATCH_SIZE_MAX:
            yield batch
            batch, size = [], len(key) + RECORD_OVERHEAD_SIZE
        batch.append(key)
    if batch:
        yield batch
