"""A store with a producer, a transactional one and a consumer, whose calls are interrupted."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import logstore
from logstore.client.producer.batch import RecordFuture
from logstore.errors import LogstoreError, TopicExistsError, UnknownTopicOrPartitionError, UsageError
from logstore.model import FetchIsolation
from tests.crash.acknowledged import Transaction
from tests.crash.interrupted_world import World, described, records_of

CONFIG = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "log.index.size.max.bytes": 65536,
}
PLACES = (("a", 0), ("a", 1))
RECORD_COUNT = 3000  # of the topic that is consumed, which no call comes to the end of
INPUT_COUNT = 1000  # records whose offsets are committed, one after the other
NEVER_MS = 600_000
BLOCK_MS = 200


class StoreWorld(World):
    """A store with two topics.

    Attributes:
        store: it; the clients are made when they are first asked for.
        topics: that were acknowledged, with the number of their partitions, None for what is deleted.
        doubtful: names of topics that may be there or not.
    """

    def __init__(self, root: Path, **config: Any) -> None:
        super().__init__(root)
        self._config = {**CONFIG, **config}
        self.topics: dict[str, int | None] = {"a": 2, "in": 1}
        self.doubtful: set[str] = set()
        self.open()
        self.store.create_topic("a", 2)
        self.store.create_topic("in", 1)
        self._futures: list[tuple[bytes, RecordFuture]] = []
        self._clients()

    def _clients(self) -> None:
        """Make what the calls need."""

    def open(self) -> None:
        self.store = logstore.open(self.root, config=self._config)

    def close_store(self) -> None:
        self.store.close()

    def close(self) -> None:
        for _ in range(2):
            self.attempt("close", self.store.close)

    def look(self) -> None:
        if not self.attempt("open", self.open):
            self.problems += self.refusals[-1:]
            return
        self._look_at_topics()
        self._settle()
        places = [(name, number) for name, count in self.topics.items() for number in range(count or 0)]
        self.compare({place: records_of(self.store.log(*place)) for place in places if place[0] in self.store.topics})
        self._look_further()
        self.attempt("the last close", self.store.close)
        self.audit(int(time.time() * 1000))

    def _look_further(self) -> None:
        """At what a kind of call is about."""

    def _look_at_topics(self) -> None:
        internal = ("__consumer_offsets", "__transaction_state")
        found = {name: topic.partition_count for name, topic in self.store.topics.items() if name not in internal}
        for name in found.keys() | self.topics.keys():
            expected = self.topics.get(name)
            if found.get(name) != expected and name not in self.doubtful:
                self.problems.append(f"topic {name} has {found.get(name)} partitions instead of {expected}")
        if self.store.stray_directories:
            self.problems.append(f"stray directories: {self.store.stray_directories}")
        for name, count in found.items():
            for number in range(count):
                self.attempt(
                    f"the log of {name}-{number}", lambda name=name, number=number: self.store.log(name, number)
                )

    def _settle(self) -> None:
        """Note what became of records that were sent."""
        for value, future in self._futures:
            if not future.is_done:
                self.problems.append(f"the future of {value[:20]!r} is never done")
            elif future.succeeded():
                metadata = future.get()
                self.acknowledged.tell([value], (metadata.topic, metadata.partition), metadata.offset)

    def append(self) -> None:
        """One record, straight to the log."""
        values = self.tried(1)
        self.acknowledged.tell(values, PLACES[0], self.store.log(*PLACES[0]).append_records(values).first_offset)

    def tried(self, count: int) -> list[bytes]:
        """New values, each of which may be there or not."""
        values = self.values(count)
        self.acknowledged.tried += [(value,) for value in values]
        return values

    # -- topics -----------------------------------------------------------------------------------------------------

    def create_topic(self) -> None:
        """The same name again until it is acknowledged, or is there already."""
        name = f"new{len(self.topics)}"
        self.doubtful.add(name)
        try:
            self.store.create_topic(name, 2, {"retention.ms": 1000})
        except TopicExistsError:
            self.store.log(name, 1).append_records([])
        self.topics[name] = 2
        self.doubtful.discard(name)

    def delete_topic(self) -> None:
        """The newest; gone is gone, whoever deleted it."""
        name = next(reversed(self.topics))
        if name in ("a", "in") or self.topics[name] is None:
            return
        self.doubtful.add(name)
        with suppress(UnknownTopicOrPartitionError):
            self.store.delete_topic(name)
        self.topics[name] = None
        self.doubtful.discard(name)

    def alter_topic(self) -> None:
        ms = 10**9 + next(self._numbers)
        described = self.store.alter_config("a", {"retention.ms": ms})
        if described.config["retention.ms"] != str(ms):
            self.problems.append("an altered configuration is not there")

    def add_partition(self) -> None:
        count = (self.topics["in"] or 0) + 1
        self.doubtful.add("in")
        self.store.add_partitions("in", self.store.describe_topic("in").partition_count + 1)
        self.topics["in"] = max(count, self.store.describe_topic("in").partition_count)
        self.doubtful.discard("in")

    def use_topics(self) -> None:
        """Records into each topic that is there."""
        for name, count in self.topics.items():
            if count and name not in self.doubtful:
                values = self.tried(1)
                place = (name, count - 1)
                info = self.store.log(*place).append_records(values)
                self.acknowledged.tell(values, place, info.first_offset)


class ProducerWorld(StoreWorld):
    """With an idempotent producer that lingers for long, or not at all."""

    linger_ms = NEVER_MS

    def _clients(self) -> None:
        self.producer = self.store.producer(linger_ms=self.linger_ms, max_block_ms=BLOCK_MS)

    def send(self, *, key: bytes | None = None, headers: Any = None) -> None:
        (value,) = self.tried(1)
        self.sent(value, self.producer.send("a", value, key, headers))

    def sent(self, value: bytes, future: RecordFuture) -> None:
        """A record is on its way."""
        self._futures.append((value, future))

    def send_keyed(self) -> None:
        self.send(key=b"key %d" % (next(self._numbers) % 5))

    def send_with_headers(self) -> None:
        self.send(key=b"key", headers=[("h", b"1")])

    def send_some(self) -> None:
        for _ in range(3):
            self.send_keyed()
            self.send()

    def send_columns(self) -> None:
        values = self.tried(10)
        first, *_ = self.producer.send_columns("a", values, partition=0)
        self.acknowledged.tell(values, PLACES[0], first.first_offset)

    def flush(self) -> None:
        if not self.producer.flush(5):
            self.problems.append("a flush took more than 5 s")
        for value, future in self._futures:
            if not future.is_done:
                self.problems.append(f"the future of {value[:20]!r} is not done after a flush")

    def flush_some(self) -> None:
        """Without looking at futures."""
        self.producer.flush(5)

    def close_producer(self) -> None:
        self.producer.close(5)

    def new_producer(self) -> None:
        self._clients()
        self.send_some()


class EagerProducerWorld(ProducerWorld):
    """With a producer that writes each record at once."""

    linger_ms = 0


class TransactionWorld(StoreWorld):
    """With a transactional producer."""

    def _clients(self) -> None:
        values = self.tried(INPUT_COUNT)
        self.acknowledged.tell(values, ("in", 0), self.store.log("in", 0).append_records(values).first_offset)
        self.init()

    def init(self) -> None:
        """Another producer of the same id."""
        self.producer = self.store.producer(transactional_id="t", linger_ms=NEVER_MS, max_block_ms=BLOCK_MS)
        self.producer.init_transactions()

    def begin(self) -> None:
        """A transaction with records in two partitions."""
        transaction, known = Transaction(), self.acknowledged.transactions
        known.append(transaction)  # an interrupt may come when it has begun
        try:
            self.producer.begin_transaction()
        except LogstoreError:
            known[:] = [other for other in known if other is not transaction]
            raise
        known.sort(key=lambda other: other is transaction)  # last, also if a handler has begun and ended others
        for number in (0, 1, 0):
            (value,) = self.tried(1)
            transaction.values.append(value)
            self._futures.append((value, self.producer.send("a", value, partition=number)))
            if known[-1] is not transaction:  # a handler has begun another: the value may be in either
                transaction.values.remove(value)

    def begin_and_flush(self) -> None:
        self.begin()
        self.producer.flush(5)

    def send_offsets(self) -> None:
        self.producer.send_offsets_to_transaction({("in", 0): len(self.acknowledged.transactions)}, group_id="g")

    def commit(self) -> None:
        transaction = self.acknowledged.transactions[-1] if self.acknowledged.transactions else Transaction()
        self.producer.commit_transaction()
        if transaction.outcome == "aborted":
            self.problems.append("a transaction that was aborted could be committed")
        transaction.outcome = "committed"

    def abort(self) -> None:
        transaction = self.acknowledged.transactions[-1] if self.acknowledged.transactions else Transaction()
        self.producer.abort_transaction()
        if transaction.outcome == "committed":
            self.problems.append("a transaction that was committed could be aborted")
        transaction.outcome = "aborted"

    def finish(self) -> None:
        """Whatever is open: as a program does that catches the exception."""
        state = str(self.producer.state)
        if "READY" not in state and "UNINITIALIZED" not in state:
            self.abort()

    def transact(self) -> None:
        self.begin()
        self.commit()

    def close(self) -> None:
        self.attempt("another producer's init", self._go_on)
        super().close()

    def _go_on(self) -> None:
        """A new producer of the id works, whatever happened to the one before."""
        try:
            self.init()
            self.transact()
        except UsageError:
            raise  # the store is closed
        except LogstoreError as error:
            if not any(self.store.log(*place).state.failure.error for place in self._all_places()):
                self.problems.append(f"a new producer of the transactional id raises {described(error)}")

    def _all_places(self) -> list[tuple[str, int]]:
        return [*PLACES, ("__transaction_state", 0)]

    def _look_further(self) -> None:
        self.attempt("init after opening", self.init)
        values = [
            value for place in PLACES for _, value in records_of(self.store.log(*place), FetchIsolation.READ_COMMITTED)
        ]
        self.problems += self.acknowledged.unsettled(values)
        for place in PLACES:
            log = self.store.log(*place)
            if log.last_stable_offset != log.log_end_offset:
                self.problems.append(f"{place}: readers of committed data stop at {log.last_stable_offset}")


class ConsumerWorld(StoreWorld):
    """With a member of a group that commits by itself when it is told to."""

    auto_commit = False

    def _clients(self) -> None:
        values = self.tried(RECORD_COUNT)
        for first in range(0, RECORD_COUNT, 1000):
            part = values[first : first + 1000]
            info = self.store.log("in", 0).append_records(part)
            self.acknowledged.tell(part, ("in", 0), info.first_offset)
        self._next = 0
        self._committed = 0
        self.new_consumer()

    def new_consumer(self) -> None:
        self.consumer = self.store.consumer(
            "in",
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=self.auto_commit,
            max_poll_records=2,
            consumer_timeout_ms=500,
        )

    def poll(self) -> None:
        for records in self.consumer.poll(500).values():
            for record in records:
                self.handed_out(record.offset)

    def iterate(self) -> None:
        for record in self.consumer:
            self.handed_out(record.offset)
            break

    def commit(self) -> None:
        self.consumer.commit()
        self._committed = self._next

    def commit_some(self) -> None:
        """An offset that is given."""
        self.consumer.commit({("in", 0): self._next})
        self._committed = self._next

    def seek(self) -> None:
        """To the beginning; nothing is fetched any more."""
        if not self.consumer.assignment():
            self.poll()
        self.consumer.seek(("in", 0), 0)
        self.rewind()

    def rewind(self) -> None:
        """The consumer goes on from the beginning."""
        self._next = 0

    def close_consumer(self) -> None:
        self.consumer.close()

    def again(self) -> None:
        """Another member in the place of one that was closed, which goes on from what is committed."""
        self.consumer.close()
        self.new_consumer()
        self.poll_first()

    def poll_first(self) -> None:
        for records in self.consumer.poll(500).values():
            self._next = records[0].offset
            if not self._committed <= self._next:
                self.problems.append(f"a new member goes on at {self._next}, committed was {self._committed}")
            for record in records:
                self.handed_out(record.offset)

    def handed_out(self, offset: int) -> None:
        """A record was handed out; it is the next, see `_next`."""
        if offset != self._next:
            self.problems.append(f"record {offset} is handed out where {self._next} is the next")
        self._next = offset + 1

    def _look_further(self) -> None:
        found = self.store.groups.fetch("g", [("in", 0)])["in", 0]
        offset = 0 if found is None else found.offset
        if not self._committed <= offset <= max(self._next, self._committed):
            self.problems.append(f"{offset} is committed, {self._committed} was, and {self._next} is the next")


class CommittingConsumerWorld(ConsumerWorld):
    """With one that commits by itself."""

    auto_commit = True
