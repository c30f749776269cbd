"""The least that coordinators can run in: logs in a directory, a clock that stands still, jobs that are run by hand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from logstore.client.store import Store
from logstore.config.broker import parse_broker_config
from logstore.coordinator.transactions.transaction import log_record
from logstore.disk.seam import Seam
from logstore.errors import KafkaStorageError, UnknownTopicOrPartitionError
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation, TopicPartition
from logstore.store.groups.coordinator import GroupCoordinator
from logstore.store.host import Host
from logstore.store.metadata.topics import TopicDescription
from logstore.store.transactions.coordinator import TransactionCoordinator
from logstore.topics.partition_for import partition_for
from tests.support.logs import open_partition_log, records_of
from tests.support.seams import UnsyncedSeam

START_MS = 1_600_000_000_000
INTERNAL = ("__consumer_offsets", "__transaction_state")


class SmallStore:
    """A data directory without metadata: what topics there are is said by the names of the directories."""

    is_after_fork = False

    def __init__(
        self,
        directory: Path,
        *,
        version: int = 2,
        config: Mapping[str, Any] | None = None,
        seam: Seam | None = None,
        first_producer_id: int = 4000,
        internal_partitions: int = 5,
    ) -> None:
        self.lock = threading.RLock()
        self.directory = directory
        self.version = version
        self.time_ms = START_MS
        self.jobs: dict[str, Callable[[], object]] = {}
        self.topics: dict[str, TopicDescription] = {}
        counts = dict.fromkeys(
            ("offsets.topic.num.partitions", "transaction.state.log.num.partitions"), internal_partitions
        )
        self.config = parse_broker_config({**counts, **(config or {})})
        self.seam = seam or UnsyncedSeam()
        self.producer_id = first_producer_id
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        for path in sorted(directory.iterdir()):
            name, _, number = path.name.rpartition("-")
            self._add(name, int(number))
        owner = cast("Host", self)  # what it asks of one is here
        self.groups = GroupCoordinator(owner)
        self.transactions = TransactionCoordinator(owner, self.groups)

    def start(self, *, was_clean: bool = False) -> SmallStore:
        self.groups.start(was_clean=was_clean)
        self.transactions.start(was_clean=was_clean)
        return self

    def create_topic(self, name: str, *, partitions: int, config: Mapping[str, Any]) -> TopicDescription:
        for number in range(partitions):
            self._add(name, number, config)
        return self.topics[name]

    def describe_topic(self, name: str) -> TopicDescription:
        if name not in self.topics:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        return self.topics[name]

    def delete_topic(self, name: str) -> None:
        description = self.topics.pop(name)
        for number in range(description.partition_count):
            self._logs.pop((name, number)).close()

    def log(self, topic: str, partition: int) -> PartitionLog:
        if (topic, partition) not in self._logs:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        return self._logs[topic, partition]

    def leader_epoch_before(self, partition: TopicPartition, offset: int) -> int | None:
        return self.log(*partition).leader_epoch_before(offset) if partition in self._logs else None

    def next_producer_id(self) -> int:
        self.producer_id += 1
        return self.producer_id - 1

    def feature(self, name: str) -> int:
        return {"transaction.version": self.version}[name]

    def require_same_process(self) -> None:
        """It is not used in a fork."""
        assert not self.is_after_fork

    def now_ms(self) -> int:
        return self.time_ms

    ticks_ms = now_ms

    def schedule(self, name: str, interval_ms: int, function: Callable[[], object]) -> None:
        assert interval_ms > 0
        self.jobs[name] = function

    def close(self) -> None:
        for log in self._logs.values():
            log.close()

    def abandon(self) -> None:
        """Leave the logs as they are, as a process that is killed does."""
        self._logs.clear()

    def values(
        self, topic: str, partition: int = 0, isolation: FetchIsolation = FetchIsolation.READ_COMMITTED
    ) -> list[bytes | None]:
        """What a consumer reads."""
        return [record.value for record in records_of(self.log(topic, partition), isolation=isolation)]

    def _add(self, name: str, number: int, config: Mapping[str, Any] | None = None) -> None:
        known = self.topics.get(name)
        topic_config = dict(config) if config is not None else {}
        if name in INTERNAL:
            topic_config["cleanup.policy"] = "compact"
        self._logs[name, number] = open_partition_log(
            self.directory / f"{name}-{number}",
            topic_config,
            was_clean=False,
            time_ms=self.time_ms,
            seam=self.seam,
            now_ms=self.now_ms,
            topic_id=topic_id_of(name),
        )
        count = max(number + 1, known.partition_count if known else 0)
        self.topics[name] = TopicDescription(name, topic_id_of(name), count, topic_config)


def started(directory: Path, topics: Mapping[str, int], *, was_clean: bool = False, **how: Any) -> SmallStore:
    """Start a store over `directory` and create those of the topics, by number of partitions, that it does not have."""
    store = SmallStore(directory, **how).start(was_clean=was_clean)
    for name, partition_count in topics.items():
        if name not in store.topics:
            store.create_topic(name, partitions=partition_count, config={})
    return store


@contextmanager
def offline(log: PartitionLog) -> Iterator[None]:
    """Let a log refuse all appends, as after an error of the disk."""
    log.state.failure.error = KafkaStorageError("the disk is full")
    log.state.invalidate()
    yield
    log.state.failure.error = None
    log.state.invalidate()


def state_log(store: SmallStore, transactional_id: str) -> PartitionLog:
    """Return the log of `__transaction_state` that has the transactional id."""
    topic = store.topics["__transaction_state"]
    return store.log(topic.name, partition_for(transactional_id, topic.partition_count))


def restarted_at_epoch(store: SmallStore, transactional_id: str, producer_epoch: int) -> SmallStore:
    """Start the store anew with another producer epoch of the transactional id in its log."""
    known = store.transactions.describe(transactional_id)
    key, value = log_record(known._replace(producer_epoch=producer_epoch), version=1)
    state_log(store, transactional_id).append_records([value], [key])
    store.close()
    count = store.topics["__transaction_state"].partition_count
    return SmallStore(store.directory, internal_partitions=count, first_producer_id=store.producer_id).start()


def topic_id_of(name: str) -> str:
    """A topic id that is the same after a restart."""
    return name.replace("_", "-").ljust(21, "A")[:21] + "A"


class TransactionalClient:
    """A producer without buffers: what it sends is written at once."""

    def __init__(self, store: SmallStore | Store, transactional_id: str, *, timeout_ms: int = 60_000) -> None:
        self.store = store
        self.transactional_id = transactional_id
        self.sequences: dict[tuple[str, int], int] = {}
        self.identity = store.transactions.init_producer_id(transactional_id, timeout_ms)

    def send(self, topic: str, *values: bytes, partition: int = 0, key: bytes | None = None) -> None:
        store, place = self.store, TopicPartition(topic, partition)
        if store.feature("transaction.version") < 2:
            store.transactions.add_partitions(self.transactional_id, self.identity, [place])
        sequence = self.sequences.get(place, 0)
        guard = store.transactions.begin_append(self.transactional_id, self.identity, place, sequence=sequence)
        store.log(topic, partition).append_records(
            list(values),
            None if key is None else [key] * len(values),
            producer_id=self.identity[0],
            producer_epoch=self.identity[1],
            base_sequence=sequence,
            is_transactional=True,
            leader_epoch=store.log(*place).leader_epoch,
            guard=guard,
        )
        self.sequences[place] = sequence + len(values)

    def end(self, *, is_commit: bool) -> None:
        ended = self.store.transactions.end_transaction(self.transactional_id, self.identity, is_commit=is_commit)
        if ended != self.identity:
            self.identity, self.sequences = ended, {}


def commit_of_another_coordinator(client: TransactionalClient, topic: str, *, coordinator_epoch: int) -> None:
    """Write a marker as a coordinator of that epoch does."""
    producer_id, producer_epoch = client.identity
    client.store.log(topic, 0).append_end_transaction(
        producer_id, producer_epoch, is_commit=True, coordinator_epoch=coordinator_epoch, transaction_version=0
    )
