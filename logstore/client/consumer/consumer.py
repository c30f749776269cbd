"""Reads the records of topics, with the names and guarantees of Kafka's consumer.

    consumer = store.consumer("orders", group_id="audit", isolation_level="read_committed")
    for partition, records in consumer.poll(timeout_ms=1000).items():
        ...
    consumer.commit()

    consumer = store.consumer()
    consumer.assign([("orders", 0)])
    consumer.seek(("orders", 0), 100)
    table = consumer.to_arrow()

With `read_committed` it skips aborted transactions, and stops before the first record of the oldest open one.
Consumers of one group share the partitions of their topics; a rebalance ends when each of them has polled.
"""

from __future__ import annotations

import logging
import re
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from ...calls import GROUPS, is_inside
from ...coordinator.groups.membership import ConsumerGroupMetadata
from ...coordinator.groups.offsets import OffsetAndMetadata
from ...errors import IllegalStateError, LogstoreError
from ...model import FetchIsolation, TopicPartition, topic_partition, topic_partitions
from ...store.closing import ClosedInWith
from ...store.data_directory import DataDirectory
from ..arguments import Offsets, offset_and_metadata, offset_commits, require_function
from ..serializers import Deserializer
from .config import ConsumerConfig, records_limit
from .consumer_records import ConsumerRecord, Lag, RecordsByPartition
from .fetcher import Fetcher
from .membership import Membership, RebalanceListener, require_listener, required_member
from .polling import Polling
from .positions import EARLIEST, LATEST, Positions
from .queries import Partition, PartitionQueries
from .subscription import SubscriptionState

_LOGGER = logging.getLogger("logstore")


class Consumer(PartitionQueries, ClosedInWith):
    """Consumer that `Store.consumer` makes; one thread at a time may use it, any thread may call `wakeup`.

    Attributes:
        config: value of every configuration, by Kafka's name.
    """

    def __init__(
        self,
        store: DataDirectory,
        config: ConsumerConfig,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        consumer_timeout_ms: float | None = None,
    ) -> None:
        """See `Store.consumer`; `parse_consumer_config` gives `config`."""
        self.config = config
        isolation = FetchIsolation(config["isolation.level"])
        super().__init__(store, isolation)
        self._positions = Positions(store, isolation, config["auto.offset.reset"])
        fetcher = Fetcher(store, self._positions, config, to_key=key_deserializer, to_value=value_deserializer)
        self._member = None if config["group.id"] is None else Membership(store, config, self._positions)
        if self._member is not None:  # a consumer that is dropped without `close` frees its partitions
            weakref.finalize(self, self._member.abandon).atexit = False
        self._polling = Polling(
            store,
            config,
            self._positions,
            fetcher,
            self._member,
            iteration_timeout_ms=consumer_timeout_ms,
            close=weakref.WeakMethod(self.close),
        )
        self._use = self._polling

    # -- topics and partitions --------------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share topics with the other consumers of the group, which `poll` joins. Without topics: as `unsubscribe`.

        Args:
            topics: names, in place of the earlier ones.
            pattern: all topics whose whole name matches, later ones included.
            listener: hears of partitions that the consumer gets and loses.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            IllegalStateError: partitions were assigned, or the other of topics and pattern is given or subscribed to.
            InvalidTopicError, UsageError: a name that no topic can have; an empty name or pattern, or a listener
                without its methods.
        """
        with self._use:
            member, state = required_member(self._member), self._positions.subscription
            state = state.of_topics(topics) if pattern is None else state.of_pattern(pattern, topics)
            require_listener(listener)
            if not state.is_shared:
                self.unsubscribe()
                return
            self._positions.subscription, self._polling.listener = state, listener
            member.begin_interval()

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions, whatever other consumers read. Without partitions: as `unsubscribe`.

        Raises:
            IllegalStateError: topics were subscribed to.
            UnknownTopicOrPartitionError: there is no such partition.
        """
        with self._use:
            wanted = topic_partitions(partitions)
            if not wanted:
                self.unsubscribe()
                return
            state = self._positions.subscription.of_partitions()
            for partition in wanted:
                self._log(partition)
            if self._member is not None:
                self._member.commit_automatically(is_due=True)
                self._member.begin_interval()
            self._positions.subscription = state
            self._positions.assign(wanted)

    def unsubscribe(self) -> None:
        """Leave the group and read nothing, without a commit: what `poll` returned last may not have been processed."""
        with self._use:
            try:
                if self._positions.subscription.is_shared:
                    required_member(self._member).leave(self._polling.listener)
            finally:
                self._positions.subscription, self._polling.listener = SubscriptionState(), None
                self._positions.assign([])

    def subscription(self) -> set[str]:
        """Return the subscribed topics."""
        with self._use:
            return set(self._positions.subscription.topics)

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that the consumer reads now."""
        with self._use:
            return set(self._positions)

    # -- reading ----------------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> RecordsByPartition:
        """Return the next records by partition, and move the positions behind them.

        Args:
            timeout_ms: how long to wait for the first record; not negative.
            max_records: limit of the number of records, at least 1; by default `max.poll.records`.

        Raises:
            UsageError: a timeout or limit that is none.
            IllegalStateError: no topic is subscribed and no partition assigned, or another thread uses the consumer.
            WakeupError: `wakeup` was called.
            OffsetOutOfRangeError, NoOffsetForPartitionError: `auto.offset.reset` is none; seek in `partitions`.
            SerializationError: a deserializer failed; seek past the `offset` in `partitions` to go on.
            CorruptRecordError, LogstoreError: as little can be read at `offset`; earlier calls returned all before it.
        """
        limit = self.config["max.poll.records"] if max_records is None else records_limit(max_records)
        return self._polling.poll(timeout_ms, limit)

    def to_arrow(self, timeout_ms: float = 0) -> Any:
        """Return the next records, up to about `fetch.max.bytes`, as a `pyarrow.Table`; waits as `poll` does.

        Columns: topic, partition, and those of `columns.arrow_batches.record_schema`. Deserializers are not used.

        Raises:
            As `poll`; UsageError if pyarrow is not installed.
        """
        return self._polling.to_arrow(timeout_ms)

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> ConsumerRecord:
        return self._polling.next_record()

    def wakeup(self) -> None:
        """Make the call that waits now, or the next that would, raise WakeupError; any thread may call it.

        Such calls are `poll`, `to_arrow`, `commit`, `committed`, and `position` where it is unknown (`KafkaConsumer`).
        """
        self._polling.wakeup()

    def close(self, *, autocommit: bool = True) -> None:
        """Commit if `enable.auto.commit`, and leave the group; a second call does nothing.

        Nothing else that ends a consumer commits: an exception that leaves its `with` block or the store's, the end of
        the program, a consumer that is dropped. What `poll` returned last may not have been processed then.

        From a signal handler in the middle of `poll` or an iteration, it makes that end, and close: the iteration ends,
        `poll` raises IllegalStateError, and no record is handed out any more. In the middle of another call of the
        library it leaves this to the next `poll` or iteration, or to the next `close`.

        Args:
            autocommit: False leaves the group without a commit.
        """
        if self._use.is_closed or self._store.is_after_fork:
            return
        if self._member is not None and not autocommit:
            self._member.stop_automatic_commits()
        if self._polling.is_interrupted or is_inside(GROUPS):
            self._polling.ask_to_close()
            return
        with self._use, ExitStack() as ending:
            ending.callback(self._polling.close)
            if self._positions.subscription.is_shared:
                ending.callback(self.unsubscribe)
            if self._member is not None:
                self._member.commit_automatically(is_due=True)

    def _close_block(self, *, in_order: bool) -> None:
        self.close(autocommit=in_order)

    def invalidate_after_fork(self) -> None:
        """Refuse calls in the child of a fork, of an iteration too."""
        self._use.owner = 0

    def __repr__(self) -> str:
        offsets = [(partition, self._positions.get(partition)) for partition in self._positions]
        where = ", ".join(f"{partition} at {'?' if offset is None else offset}" for partition, offset in offsets)
        return f"<Consumer {self.config['client.id']}: {'closed' if self._use.is_closed else where or 'no partitions'}>"

    # -- offsets ----------------------------------------------------------------------------------------------------

    def position(self, partition: Partition) -> int:
        """Return the offset that the consumer reads next.

        Raises:
            IllegalStateError: the partition is not read.
            NoOffsetForPartitionError, OffsetOutOfRangeError: `auto.offset.reset` is none.
            RequestTimedOutError: for `default.api.timeout.ms` an open transaction held the group's offset.
            WakeupError: `wakeup` was called, and the offset is not known yet.
        """
        with self._use:
            wanted = topic_partition(partition)
            if wanted not in self._positions:
                raise IllegalStateError("You can only check the position for partitions assigned to this consumer.")
            self._positions.reset_recreated_topics()
            if (position := self._positions.get(wanted)) is not None:
                return position

            def find() -> int | None:
                self._polling.find_positions([wanted])
                if (found := self._positions.get(wanted)) is None:
                    self._positions.log(wanted)  # raises that it was cut
                    required_member(self._member).committed_of(wanted)  # raises that a transaction holds it
                return found

            return self._polling.answer(find, f"position for partition {wanted} could be determined")

    def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """Read on from `offset`; from where a crash cut the log below it, if it has the epoch of the record before it.

        Raises UsageError if negative, IllegalStateError if the partition is not read; and as `poll` for a cut.
        """
        with self._use:
            given = offset_and_metadata(offset)
            self._positions.seek(topic_partition(partition), given.offset, given.leader_epoch)

    def seek_to_beginning(self, *partitions: Partition) -> None:
        """Read on from the earliest offset; without arguments in all assigned partitions."""
        with self._use:
            self._positions.seek_to(EARLIEST, topic_partitions(partitions) or list(self._positions))

    def seek_to_end(self, *partitions: Partition) -> None:
        """Read on from the end; without arguments in all assigned partitions."""
        with self._use:
            self._positions.seek_to(LATEST, topic_partitions(partitions) or list(self._positions))

    def seek_to_committed(self, *partitions: Partition) -> None:
        """Read on from the group's committed offsets; without arguments in all assigned partitions.

        After the abort of a transaction that is where its inputs begin; without this they are skipped. A partition
        without a committed offset is read from where the consumer began to read it.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            IllegalStateError: a partition is not read.
            LogstoreError: as `committed`; nothing is, and `auto.offset.reset` is none.
        """
        with self._use:
            wanted = topic_partitions(partitions) or list(self._positions)
            for partition in wanted:
                self._positions.require(partition)
            for partition, committed in self.committed(*wanted).items():
                if committed is None:
                    self._positions.begin_again(partition)
                else:
                    self._positions.seek(partition, committed.offset, committed.leader_epoch)

    def pause(self, *partitions: Partition) -> None:
        """Let `poll` skip partitions; raises IllegalStateError for one that is not read."""
        with self._use:
            self._positions.pause(topic_partitions(partitions), is_paused=True)

    def resume(self, *partitions: Partition) -> None:
        """Let `poll` read partitions again; raises IllegalStateError for one that is not read."""
        with self._use:
            self._positions.pause(topic_partitions(partitions), is_paused=False)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that `poll` skips."""
        with self._use:
            return set(self._positions.paused)

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit offsets for the group; on return they are in the log of `__consumer_offsets`.

        Args:
            offsets: next offset to read, by partition; None: all positions.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            CommitFailedError: the group removed the consumer.
            RebalanceInProgressError: call `poll`, then commit again.
            UnknownTopicOrPartitionError: there is no such partition; the others are committed.
            WakeupError: `wakeup` was called; nothing is committed.
            FencedInstanceIdError, OffsetMetadataTooLargeError, UsageError, KafkaStorageError.
        """
        with self._use:
            member, commits = required_member(self._member), self._commits(offsets)
            if commits:
                self._polling.raise_if_woken()
            member.commit(commits)

    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: Callable[[dict[TopicPartition, OffsetAndMetadata], LogstoreError | None], object] | None = None,
    ) -> None:
        """Commit as `commit`, but tell the callback of an error instead of raising it; without one it is logged.

        The coordinator is in this process, so the commit is done, and the callback has run, when this returns.

        Args:
            callback: called with the offsets, and None or the error; a wrong call is raised.
        """
        if callback is not None:
            require_function("callback", callback)
        with self._use:
            member, commits, error = required_member(self._member), self._commits(offsets), None
            try:
                member.commit(commits)
            except LogstoreError as refusal:
                error = refusal
                if callback is None:
                    _LOGGER.warning("Offsets were not committed: %s", error)
        if callback is not None:
            callback(commits, error)

    def committed(self, *partitions: Partition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None for a partition without one.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            RequestTimedOutError: with read_committed, an open transaction held one for `default.api.timeout.ms`.
            WakeupError: `wakeup` was called.
        """
        with self._use:
            member, wanted = required_member(self._member), topic_partitions(partitions)
            return self._polling.answer(
                lambda: member.committed(wanted),
                f"last committed offset for partitions {list(map(str, wanted))} could be determined. Try tuning "
                "default.api.timeout.ms larger to relax the threshold.",
            )

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return what `Producer.send_offsets_to_transaction` takes with the offsets; raises InvalidGroupIdError."""
        with self._use:
            return required_member(self._member).metadata

    def lag(self, partition: Partition) -> Lag:
        """Return the distance to the end, in offsets and in records; reads them to count. Raises as `position`."""
        with self._use:
            position, log = self.position(partition), self._log(topic_partition(partition))
            return Lag.of(log, position, self._positions.isolation)

    def _commits(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        return offset_commits(self._positions.known() if offsets is None else offsets, self._store.leader_epoch_before)
