"""Reads the records of topics, with the names and the guarantees of Kafka's consumer.

    consumer = store.consumer("orders", group_id="audit", isolation_level="read_committed")
    for partition, records in consumer.poll(timeout_ms=1000).items():
        ...
    consumer.commit()

    consumer = store.consumer()
    consumer.assign([("orders", 0)])
    consumer.seek(("orders", 0), 100)
    table = consumer.to_arrow()

With `read_committed` nothing of an aborted transaction comes, and nothing behind the beginning of one that is open.
Consumers of one group share the partitions of their topics; all are in this process, so a rebalance is over when each
has polled.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from .. import clock
from ..errors import IllegalStateError, LogstoreError
from ..model import TopicPartition
from ..store.store import Store
from .arguments import topic_partitions
from .closing import close_in_with
from .consumer_config import ConsumerConfig
from .consumer_offsets import WAIT_MAX_S, WAIT_MIN_S, ConsumerOffsets, Partition
from .consumer_record import ConsumerRecord
from .fetching import FetchSettings
from .group_member import RebalanceListener
from .group_metadata import offset_commits
from .iteration import Iteration
from .record_fetcher import Offsets, RecordFetcher, Records
from .serializers import Deserializer
from .subscription import Subscription

TOPICS_AGE_MAX_S = 1.0
_POLL_INTERVAL_S = 0.05
NOTHING = Iteration({}, {}, 0)
_LOGGER = logging.getLogger("logstore")

T = TypeVar("T")


class Consumer(ConsumerOffsets):
    """Made by `Store.consumer`; for one thread at a time, but for `wakeup`.

    Attributes:
        config: every configuration's value, by Kafka's names.
    """

    def __init__(
        self,
        store: Store,
        config: ConsumerConfig,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        consumer_timeout_ms: float | None = None,
    ) -> None:
        """See `Store.consumer`; `config`: of `parse_consumer_config`."""
        super().__init__(store, config)
        self._timeout_ms = float("inf") if consumer_timeout_ms is None else consumer_timeout_ms
        self._settings = FetchSettings(self._isolation, config["check.crcs"], config["max.partition.fetch.bytes"])
        self._fetcher = RecordFetcher(
            store, self._positions, config, self._settings, to_key=key_deserializer, to_value=value_deserializer
        )
        self._listener: RebalanceListener | None = None
        self._topics_known_s = 0.0
        self._next_commit_s = 0.0
        self._next_poll_s = 0.0  # while records are iterated over
        self._iteration = NOTHING

    # -- what to read -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share topics with the other consumers of the group; `poll` joins it. No topics: as `unsubscribe`.

        Args:
            topics: names, instead of those before.
            pattern: all topics whose whole name matches, those to come included.
            listener: told of partitions that come and go.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            IllegalStateError: partitions were assigned, or the other of topics and pattern was subscribed to.
            UsageError: an empty name or pattern.
        """
        with self._use:
            self._required_member()
            if pattern is None:
                subscription = self._subscription.of_topics(topics)
            else:
                subscription = self._subscription.of_pattern(pattern)
            if not subscription.is_shared:
                self.unsubscribe()
                return
            self._subscription, self._listener = subscription, listener
            self._positions.is_shared = True
            self._topics_known_s = 0.0
            self._next_commit_s = clock.monotonic_s() + self.config["auto.commit.interval.ms"] / 1000

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions, whatever others read; no partitions: as `unsubscribe`.

        Raises:
            IllegalStateError: topics were subscribed to.
            UnknownTopicOrPartitionError: there is no such partition.
        """
        with self._use:
            wanted = topic_partitions(partitions)
            if not wanted:
                self.unsubscribe()
                return
            subscription = self._subscription.of_partitions()
            for one in wanted:
                self._log(one)
            self._commit_automatically(is_due=True)
            self._subscription = subscription
            self._positions.is_shared = False
            self._positions.assign(wanted)
            self._next_commit_s = clock.monotonic_s() + self.config["auto.commit.interval.ms"] / 1000

    def unsubscribe(self) -> None:
        """Read nothing; the consumer leaves its group."""
        with self._use:
            try:
                if self._subscription.is_shared:
                    self._leave()
            finally:
                self._subscription, self._listener = Subscription(), None
                self._positions.assign([])

    def subscription(self) -> set[str]:
        """The topics that are subscribed to."""
        with self._use:
            return set(self._subscription.topics)

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are read now."""
        with self._use:
            return set(self._positions)

    # -- reading ----------------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> Records:
        """The next records by partition; the consumer's positions go behind them.

        Args:
            timeout_ms: how long to wait for the first.
            max_records: at most so many; by default `max.poll.records`.

        Raises:
            IllegalStateError: nothing is subscribed to or assigned, or another thread uses the consumer.
            WakeupError: `wakeup` was called.
            OffsetOutOfRangeError, NoOffsetForPartitionError: `auto.offset.reset` is none.
            SerializationError: a deserializer failed; seek past the record to go on.
            CorruptRecordError, LogstoreError: what is next cannot be read; all before it was given.
        """
        before = None
        try:
            with self._use:
                self._iteration = NOTHING
                found, moved = self._collected(timeout_ms, max_records)
                before = self._positions.current
                self._positions.advance_all(moved)
                return found
        except BaseException:
            if before is not None:  # an interrupt, behind the positions: nobody has got the records
                self._positions.take_back(before)
            raise

    def to_arrow(self, timeout_ms: float = 0) -> Any:
        """What is to be read now, up to about `fetch.max.bytes`, as a `pyarrow.Table`; waits as `poll` does.

        Columns: topic, partition, and those of `columns.arrow_batches.record_schema`. Deserializers are not used.

        Raises:
            As `poll`.
        """
        before = None
        try:
            with self._use:
                self._iteration = NOTHING
                self._fetcher.drop()
                table, moved = self._awaited(timeout_ms, self._read_table, lambda table: table.num_rows)
                before = self._positions.current
                self._positions.advance_all(moved)
                return table
        except BaseException:
            if before is not None:  # as in `poll`
                self._positions.take_back(before)
            raise

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> ConsumerRecord:
        iteration = self._iteration
        if (
            iteration.row >= len(iteration.records)
            or clock.monotonic_s() >= self._next_poll_s
            or iteration.change_count != self._positions.change_count
            or threading.get_ident() != self._use.owner
        ):
            iteration = self._next_iteration()
        row = iteration.row
        try:
            iteration.row = row + 1
            return iteration.records[row]
        except BaseException:  # an interrupt: it was not handed out
            iteration.row = row
            raise

    def wakeup(self) -> None:
        """Have the call that waits now, or the next that would, raise WakeupError; for any thread.

        Those are `poll`, `to_arrow`, `commit`, `committed`, and `position` where it is not known (`KafkaConsumer`).
        """
        self._woken.set()

    def close(self) -> None:
        """Commit, if that is automatic, and leave the group; a second call does nothing."""
        if self._use.is_closed:
            return
        with self._use:
            try:
                if self._subscription.is_shared:
                    self.unsubscribe()
                else:
                    self._commit_automatically(is_due=True)
            finally:
                self._iteration = NOTHING
                self._use.is_closed = True

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        close_in_with(self.close, error)

    # -- steps ------------------------------------------------------------------------------------------------------

    def _collected(self, timeout_ms: float, max_records: int | None = None) -> tuple[Records, Offsets]:
        count_max = self.config["max.poll.records"] if max_records is None else max_records
        return self._awaited(timeout_ms, lambda: self._fetcher.collect(count_max), len)

    def _awaited(
        self, timeout_ms: float, read: Callable[[], tuple[T, Offsets]], count: Callable[[T], int]
    ) -> tuple[T, Offsets]:
        """What `read` gives when that is something, or the time is up, and the positions behind it."""
        end_s, wait_s = clock.monotonic_s() + timeout_ms / 1000, WAIT_MIN_S
        while True:
            self._keep_up()
            found, moved = read()
            left_s = end_s - clock.monotonic_s()
            if count(found) or left_s <= 0:
                return found, moved
            self._positions.advance_all(moved)
            self._woken.wait(min(wait_s, left_s))
            wait_s = min(wait_s * 2, WAIT_MAX_S)

    def _read_table(self) -> tuple[Any, Offsets]:
        from .arrow_reading import read_table

        readable = self._positions.readable({})
        if not self._fetcher.is_enough(readable):
            readable = []
        return read_table(self._store, self._positions, readable, self._settings, self.config["fetch.max.bytes"])

    def _next_iteration(self) -> Iteration:
        """Records to be handed out, of which there is one: what is left of those there are, or others."""
        with self._use:
            iteration = self._iteration
            if iteration.row < len(iteration.records):
                self._keep_up()
            if iteration.row >= len(iteration.records) or iteration.change_count != self._positions.change_count:
                found, moved = self._collected(self._timeout_ms)
                if not found:
                    self._positions.advance_all(moved)
                    raise StopIteration
                iteration = self._iteration = Iteration(found, moved, self._positions.change_count)
            self._next_poll_s = clock.monotonic_s() + _POLL_INTERVAL_S
            return iteration

    def _settle(self) -> None:
        iteration = self._iteration
        if iteration.settled_row != iteration.row and iteration.change_count == self._positions.change_count:
            self._positions.advance_all(iteration.positions())
            iteration.settled_row = iteration.row

    def _keep_up(self) -> None:
        """All that has to be done before records are read: the group, commits, positions."""
        self._wake()
        if self._subscription.is_shared:
            self._share()
        elif not self._subscription.is_assigned:
            raise IllegalStateError("Consumer is not subscribed to any topics or assigned any partitions")
        self._commit_automatically(is_due=clock.monotonic_s() >= self._next_commit_s)
        unknown = self._positions.unknown()
        if unknown:
            self._find_positions(unknown)

    def _share(self) -> None:
        """Be a member of the group; its partitions are those to read."""
        member, now_s = self._required_member(), clock.monotonic_s()
        if self._subscription.pattern is not None and now_s - self._topics_known_s > TOPICS_AGE_MAX_S:
            self._topics_known_s = now_s
            excludes_internal = self.config["exclude.internal.topics"]
            self._subscription = self._subscription.matched(self._store.topics, excludes_internal=excludes_internal)
        if member.poll(self._subscription.topics, self._give_back):
            assert member.partitions is not None
            self._positions.assign(member.partitions)
            if self._listener is not None:
                self._listener.on_partitions_assigned(list(member.partitions))

    def _leave(self) -> None:
        """Leave the group, whatever the listener raises (`AbstractCoordinator.close`)."""
        try:
            self._give_back(False)
        finally:
            self._required_member().leave()

    def _give_back(self, is_lost: bool) -> None:
        """The partitions go: commit what was read, unless it is too late, and begin anew with the next ones."""
        partitions = list(self._positions)
        if not is_lost:
            self._commit_automatically(is_due=True)
        try:
            if self._listener is not None and partitions:
                self._tell_gone(self._listener, partitions, is_lost)
        finally:
            self._positions.assign([])

    @staticmethod
    def _tell_gone(listener: RebalanceListener, partitions: list[TopicPartition], is_lost: bool) -> None:
        """A listener that does not ask for lost ones hears of them as revoked (`ConsumerRebalanceListener`)."""
        revoked = listener.on_partitions_revoked
        (getattr(listener, "on_partitions_lost", revoked) if is_lost else revoked)(partitions)

    def _commit_automatically(self, *, is_due: bool) -> None:
        """`enable.auto.commit`: a commit that fails is told in the log of the program, and done again later."""
        if not (is_due and self.config["enable.auto.commit"]):
            return
        positions = self._positions.known()
        if not positions:
            return
        self._next_commit_s = clock.monotonic_s() + self.config["auto.commit.interval.ms"] / 1000
        try:
            self._commit(offset_commits(positions))
        except LogstoreError as error:
            _LOGGER.warning("Offsets were not committed automatically: %s", error)
