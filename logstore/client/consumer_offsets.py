"""The part of a consumer that is about offsets: where it is, where it goes on, what it commits, what there is."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping

from .. import clock
from ..coordinator.groups.offsets import OffsetCommit
from ..errors import (
    CommitFailedError,
    IllegalGenerationError,
    IllegalStateError,
    InvalidGroupIdError,
    RebalanceInProgressError,
    RequestTimedOutError,
    UnknownMemberIdError,
    UnstableOffsetCommitError,
    UsageError,
    WakeupError,
)
from ..log.partition_log import PartitionLog
from ..model import FetchIsolation, TopicPartition
from ..store.store import Store
from .arguments import topic_partition, topic_partitions, whole_offset
from .consumer_config import ConsumerConfig
from .consumer_record import Lag
from .fetching import end_offset, record_count
from .group_member import GroupMember
from .group_metadata import (
    ILLEGAL_ARGUMENT,
    NO_LEADER_EPOCH,
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Offsets,
    offset_commits,
)
from .positions import EARLIEST, LATEST, Positions
from .subscription import Subscription

WAIT_MIN_S, WAIT_MAX_S = 0.001, 0.05

_NO_GROUP = (
    "To use the group management or offset commit APIs, you must provide a valid group.id in the consumer "
    "configuration."
)
_SHUT_OUT = (
    "Commit cannot be completed since the group has already rebalanced and assigned the partitions to another member. "
    "This means that the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, "
    "which typically implies that the poll loop is spending too much time message processing. You can address this "
    "either by increasing max.poll.interval.ms or by reducing the maximum size of batches returned in poll() with "
    "max.poll.records."
)
_NO_MEMBER = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
    "assignment; it is likely that the consumer was kicked out of the group."
)
_REBALANCING = (
    "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto partition assignment. You "
    "can try completing the rebalance by calling poll() and then retry the operation."
)

Partition = tuple[str, int]


class OneThread:
    """A `with` block that a second thread may not enter; the same thread may, again (`KafkaConsumer.acquire`).

    Raises IllegalStateError on entry by another thread, and when `is_closed`.
    """

    def __init__(self, entered: Callable[[], None]) -> None:
        """`entered`: a method to call on each entry; its object is not kept, and so leaves when it is dropped."""
        self.is_closed = False
        self.owner = 0
        self._lock = threading.RLock()
        self._entered = weakref.WeakMethod(entered)

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            current = threading.current_thread()
            raise IllegalStateError(
                "KafkaConsumer is not safe for multi-threaded access. "
                f"currentThread(name: {current.name}, id: {current.ident}) otherThread(id: {self.owner})",
                java_class="java.util.ConcurrentModificationException",
            )
        try:
            self.owner = threading.get_ident()
            if self.is_closed:
                raise IllegalStateError("This consumer has already been closed.")
            entered = self._entered()
            assert entered is not None
            entered()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class ConsumerOffsets:
    """See `Consumer`."""

    def __init__(self, store: Store, config: ConsumerConfig) -> None:
        self.config = config
        self._store = store
        self._use = OneThread(self._settle)
        self._isolation = FetchIsolation(config["isolation.level"])
        self._subscription = Subscription()
        self._positions = Positions(store, self._isolation, config["auto.offset.reset"])
        self._member = None if config["group.id"] is None else GroupMember(store, config)
        if self._member is not None:  # a consumer that is dropped without `close` does not keep its partitions
            weakref.finalize(self, self._member.abandon).atexit = False
        self._woken = threading.Event()

    def position(self, partition: Partition) -> int:
        """The offset that is read next.

        Raises:
            IllegalStateError: the partition is not read.
            NoOffsetForPartitionError: nothing is committed, and `auto.offset.reset` is none.
            RequestTimedOutError: a transaction that is about to commit the offset was open for too long.
            WakeupError: `wakeup` was called, and the offset is not known yet.
        """
        with self._use:
            wanted = topic_partition(partition)
            if wanted not in self._positions:
                raise IllegalStateError("You can only check the position for partitions assigned to this consumer.")
            timeout_ms = self.config["default.api.timeout.ms"]
            end_s = clock.monotonic_s() + timeout_ms / 1000
            self._positions.reset_recreated_topics()
            while (position := self._positions.get(wanted)) is None:
                self._wake()
                self._find_positions([wanted])
                if self._positions.get(wanted) is None:
                    self._wait_until(
                        end_s,
                        f"Timeout of {timeout_ms}ms expired before the position for partition {wanted} could be "
                        "determined",
                    )
            return position

    def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """Read on from `offset`; raises IllegalStateError, and UsageError for a negative one."""
        with self._use:
            where = offset.offset if isinstance(offset, OffsetAndMetadata) else offset
            self._positions.seek(topic_partition(partition), whole_offset(where))

    def seek_to_beginning(self, *partitions: Partition) -> None:
        """Read on from the earliest offset, in all partitions that are read if none is named."""
        self._seek_to(partitions, EARLIEST)

    def seek_to_end(self, *partitions: Partition) -> None:
        """Read on from the end, in all partitions that are read if none is named."""
        self._seek_to(partitions, LATEST)

    def pause(self, *partitions: Partition) -> None:
        """Let `poll` pass partitions over; raises IllegalStateError for one that is not read."""
        with self._use:
            self._positions.pause(map(topic_partition, partitions), is_paused=True)

    def resume(self, *partitions: Partition) -> None:
        """Let `poll` read partitions again; raises IllegalStateError for one that is not read."""
        with self._use:
            self._positions.pause(map(topic_partition, partitions), is_paused=False)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are passed over."""
        with self._use:
            return set(self._positions.paused)

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit offsets for the group; on return they are in its log.

        Args:
            offsets: by partition the next offset to be read; None: all positions.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            CommitFailedError: the group has gone on without the consumer.
            RebalanceInProgressError: call `poll`, then again.
            UnknownTopicOrPartitionError: there is no such partition; the others are committed.
            WakeupError: `wakeup` was called; nothing is committed.
            FencedInstanceIdError, OffsetMetadataTooLargeError, UsageError, KafkaStorageError.
        """
        with self._use:
            commits = offset_commits(self._positions.known() if offsets is None else offsets)
            self._required_member()
            if commits:
                self._wake()
            self._commit(commits)

    def committed(self, *partitions: Partition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, None where that is nothing.

        Raises:
            InvalidGroupIdError: the consumer has no `group.id`.
            RequestTimedOutError: with read_committed, a transaction that commits one of them was open for too long.
            WakeupError: `wakeup` was called.
        """
        with self._use:
            member = self._required_member()
            wanted = [topic_partition(partition) for partition in partitions]
            timeout_ms = self.config["default.api.timeout.ms"]
            end_s = clock.monotonic_s() + timeout_ms / 1000
            while True:
                self._wake()
                try:
                    found = self._store.groups.fetch(member.group_id, wanted, require_stable=self._needs_stable)
                    break
                except UnstableOffsetCommitError:
                    self._wait_until(
                        end_s,
                        f"Timeout of {timeout_ms}ms expired before the last committed offset for partitions "
                        f"{list(map(str, wanted))} could be determined. Try tuning default.api.timeout.ms larger to "
                        "relax the threshold.",
                    )
            answer: dict[TopicPartition, OffsetAndMetadata | None] = {}
            for one in wanted:
                value = found[one]
                if value is not None:
                    epoch = None if value.leader_epoch == NO_LEADER_EPOCH else value.leader_epoch
                    answer[one] = OffsetAndMetadata(value.offset, value.metadata, epoch)
                else:
                    answer[one] = None
            return answer

    def group_metadata(self) -> ConsumerGroupMetadata:
        """What a producer shows with the offsets of this consumer; raises InvalidGroupIdError."""
        with self._use:
            return self._required_member().metadata

    def beginning_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """The earliest offsets; raises UnknownTopicOrPartitionError."""
        return {one: self._log(one).log_start_offset for one in topic_partitions(partitions)}

    def end_offsets(self, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
        """Up to where a consumer of this `isolation.level` reads, exclusive; raises UnknownTopicOrPartitionError."""
        return {one: end_offset(self._log(one), self._isolation) for one in topic_partitions(partitions)}

    def offsets_for_times(self, timestamps: Mapping[Partition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (ms) by partition, None where there is none.

        Raises:
            UsageError: a negative time.
            UnknownTopicOrPartitionError: there is no such partition.
        """
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for partition, timestamp in timestamps.items():
            one = topic_partition(partition)
            if whole_offset(timestamp) < 0:
                raise UsageError(
                    f"The target time for partition {one} is {timestamp}. The target time cannot be negative.",
                    java_class=ILLEGAL_ARGUMENT,
                )
            place = self._log(one).offset_for_timestamp(timestamp, self._isolation)
            found[one] = place and OffsetAndTimestamp(place.offset, place.timestamp, place.leader_epoch)
        return found

    def lag(self, partition: Partition) -> Lag:
        """How far the consumer is behind, in offsets and in records; raises as `position`."""
        with self._use:
            position, log = self.position(partition), self._log(partition)
            offset_count = end_offset(log, self._isolation) - position
            return Lag(offset_count, record_count(log, position, self._isolation) if offset_count > 0 else 0)

    # -- steps ------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Let the positions go behind what an iteration has handed out; before each call."""

    @property
    def _needs_stable(self) -> bool:
        return self._isolation is FetchIsolation.READ_COMMITTED

    def _log(self, partition: Partition) -> PartitionLog:
        return self._store.log(*topic_partition(partition))

    def _wake(self) -> None:
        """Raise WakeupError if another thread has asked for it, once (`ConsumerNetworkClient.maybeTriggerWakeup`)."""
        if self._woken.is_set():
            self._woken.clear()
            raise WakeupError("The consumer was woken up")

    def _required_member(self) -> GroupMember:
        if self._member is None:
            raise InvalidGroupIdError(_NO_GROUP)
        return self._member

    def _seek_to(self, partitions: tuple[Partition, ...], policy: str) -> None:
        with self._use:
            wanted = [topic_partition(one) for one in partitions] or list(self._positions)
            for one in wanted:
                self._positions.require(one)
                self._positions.seek(one, self._positions.bound(one, policy))

    def _commit(self, commits: dict[TopicPartition, OffsetCommit]) -> None:
        member = self._required_member()
        if self._subscription.is_shared and member.partitions is None:
            raise RebalanceInProgressError(_REBALANCING) if member.is_joining else CommitFailedError(_NO_MEMBER)
        if not commits:
            return
        try:
            self._store.groups.commit(member.group_id, commits, member.identity)
        except (UnknownMemberIdError, IllegalGenerationError) as error:
            raise CommitFailedError(_SHUT_OUT) from error

    def _find_positions(self, partitions: list[TopicPartition]) -> None:
        """Begin where the group is, else where `auto.offset.reset` says; not where that is about to change."""
        without = []
        for partition in partitions:
            self._positions.note_topic_id(partition)
            try:
                offset = self._committed_offset(partition)
            except UnstableOffsetCommitError:
                continue
            if offset is None:
                without.append(partition)
            else:
                self._positions.advance(partition, offset)
        self._positions.reset(without)

    def _committed_offset(self, partition: TopicPartition) -> int | None:
        if self._member is None:
            return None
        found = self._store.groups.fetch(self._member.group_id, [partition], require_stable=self._needs_stable)
        value = found[partition]
        return None if value is None else value.offset

    def _wait_until(self, end_s: float, text: str) -> None:
        """Wait a moment; raises RequestTimedOutError with `text` if there is no time left."""
        if clock.monotonic_s() >= end_s:
            raise RequestTimedOutError(text)
        self._woken.wait(WAIT_MIN_S)
