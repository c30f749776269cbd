"""Group coordinator of a store: offsets and members of groups, bound to logs (`GroupCoordinatorService`).

    groups = GroupCoordinator(store)
    groups.commit(ConsumerGroupMetadata("billing"), {("payments", 0): OffsetAndMetadata(17)})
    groups.fetch("billing", [("payments", 0)])[("payments", 0)].offset
    groups.join("billing", Joining("m1", topics=("payments",), assignors=ASSIGNORS))
    member = groups.sync("billing", "m1")

Members are consumers of this process, so groups have none when the store is opened, and none when it is closed: a
broker that takes the directory over waits for nobody. A member that has joined gets its partitions from `sync` as soon
as all others have joined too, or their time is up. No call waits, so that consumers of one thread can take turns. A
member that learns of a rebalance from `heartbeat` joins again.

`TransactionCoordinator.commit_offsets` commits the offsets of transactions.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from ...calls import GROUPS, alone
from ...coordinator.groups.membership import ConsumerGroupMetadata, GroupMembership, GroupState, Joining, Member
from ...coordinator.groups.offsets import OffsetAndMetadata
from ...coordinator.transactions.outcomes import MarkerEntry, ProducerIdentity
from ...errors import (
    GroupIdNotFoundError,
    KafkaStorageError,
    LogstoreError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from ...folds.verification import VerificationGuard
from ...log.partition_log import PartitionLog
from ...model import OfOneProcess, TopicPartition, name_of, topic_partitions
from ...topics.consumer_offsets import TOPIC, CommittedOffset
from ..host import Host
from ..internal_topic import CoordinatorTopic, for_each_then_raise, log_or_none
from ..metadata.topics import unknown_topic
from .partition import OffsetsPartition

_REBALANCE_CHECK_INTERVAL_MS = 1000
_MINUTE_MS = 60_000
_LOGGER = logging.getLogger("logstore")


class GroupCoordinator(OfOneProcess):
    """All groups of a store; see the module. Calls may come from any thread."""

    def __init__(self, host: Host) -> None:
        """Keep the store; a partition is loaded when the first of its groups is asked for."""
        self._host = host
        self._topic = CoordinatorTopic(host, TOPIC)
        self._loaded: dict[int, OffsetsPartition] = {}
        self._loading = threading.Lock()
        self._abandoned: deque[tuple[str, str]] = deque()
        self._is_closed = False

    def start(self, *, was_clean: bool) -> None:
        """Schedule the removal of silent members and expired offsets.

        Unless the directory `was_clean`, expel members of the process that died: a broker would wait for them.
        """
        for number in () if was_clean else range(self._topic.partition_count):
            try:
                self._partition(number)
            except LogstoreError as error:  # raised again when one of its groups is asked for
                _LOGGER.warning("Groups of %s-%d cannot be loaded: %s", TOPIC, number, error)
        expiry_interval_ms = self._host.config["offsets.retention.check.interval.ms"]
        self._host.schedule("group-rebalance", _REBALANCE_CHECK_INTERVAL_MS, self.remove_silent)
        self._host.schedule("group-metadata-expiration", expiry_interval_ms, self.remove_expired)

    def close(self) -> None:
        """Expel all members, for whom a broker would wait; begin no more generations; then raise the first error."""
        self._is_closed = True
        for_each_then_raise(list(self._loaded.values()), OffsetsPartition.expel_members)

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that keeps a group; creates the topic for the first one."""
        return self._topic.partition_of(name_of("group", group_id))

    def commit(self, member: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets: of each partition the next one to read.

        Raises CoordinatorError as `GroupTable.check_commit` and `commit_records`, KafkaStorageError if they cannot be
        written, UnknownTopicOrPartitionError for partitions that do not exist; the others are committed.
        """
        partition = self._partition_of(member.group_id)
        with alone(GROUPS), partition.lock:
            now_ms = self._host.now_ms()
            partition.table.check_commit(member, is_transactional=False, ticks_ms=self._host.ticks_ms())
            logs = {topic_partition: log_or_none(self._host, *topic_partition) for topic_partition in offsets}
            known = _topic_ids(logs)
            commits = {topic_partition: offsets[topic_partition] for topic_partition in known}
            # with topic ids, as the Java client sends them
            if records := partition.records(member.group_id, commits, known, now_ms):
                partition.write(records)
        _require_known(logs)

    def commit_transactional(
        self,
        member: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        identity: ProducerIdentity,
        guard: VerificationGuard | None,
        *,
        has_topic_ids: bool,
    ) -> None:
        """Log offsets that wait for the marker of their transaction; see `TransactionCoordinator.commit_offsets`.

        Raises as `commit`; but if a partition does not exist, nothing is logged.
        """
        partition, now_ms = self._partition_of(member.group_id), self._host.now_ms()
        with alone(GROUPS), partition.lock:
            partition.table.check_commit(member, is_transactional=True, ticks_ms=self._host.ticks_ms())
            logs = {topic_partition: log_or_none(self._host, *topic_partition) for topic_partition in offsets}
            _require_known(logs)
            topic_ids = _topic_ids(logs) if has_topic_ids else {}
            records = partition.records(member.group_id, offsets, topic_ids, now_ms)
            partition.write_undecided(records, identity, guard=guard, now_ms=now_ms)

    def write_marker(self, number: int, marker: MarkerEntry) -> None:
        """Write the marker of a transaction to a partition of `__consumer_offsets`."""
        self._partition(number).write_marker(marker)

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Return the committed offsets of partitions, by default of all that have one; None where nothing is committed.

        An offset of a deleted topic does not count for a new topic of the same name. Raises UnstableOffsetCommitError
        if with `require_stable` a transaction may still replace one of them.
        """
        wanted = None if partitions is None else topic_partitions(partitions)
        if self._topic.partition_count == 0:
            return dict.fromkeys(wanted or (), None)
        partition = self._partition_of(group_id)
        with alone(GROUPS), partition.lock:
            offsets = partition.table.offsets
            return {
                topic_partition: self._of_this_topic(
                    topic_partition, offsets.fetch(group_id, topic_partition, require_stable=require_stable)
                )
                for topic_partition in (offsets.partitions(group_id) if wanted is None else wanted)
            }

    def topic_deleted(self, topic: str, topic_id: str | None) -> None:
        """Forget the offsets of a deleted topic in all groups; raise the first error when all partitions were tried."""
        numbers = range(self._topic.partition_count)
        for_each_then_raise(numbers, lambda number: self._partition(number).remove_topic(topic, topic_id))

    def remove_expired(self) -> None:
        """Forget offsets after `offsets.retention.minutes`; raise the first error when all partitions were tried."""
        retention_ms, now_ms = self._host.config["offsets.retention.minutes"] * _MINUTE_MS, self._host.now_ms()
        numbers = range(self._topic.partition_count)
        for_each_then_raise(numbers, lambda number: self._partition(number).remove_expired(retention_ms, now_ms))

    def join(self, group_id: str, joining: Joining) -> None:
        """Let a member join, or join again; `sync` then returns its partitions; raises as `GroupMembership.join`.

        A group of another protocol becomes a classic one; for a share group GroupIdNotFoundError is raised.
        """
        self._remove_abandoned()
        partition = self._partition_of(group_id)
        with alone(GROUPS), partition.lock:
            others = partition.table.other_groups.tombstones(group_id)
            group = partition.table.group(group_id).copied()
            group.join(joining, ticks_ms=self._host.ticks_ms())
            partition.remove([], others=others)
            partition.table.groups[group_id] = group

    def sync(self, group_id: str, member_id: str, group_instance_id: str | None = None) -> Member | None:
        """Return a joined member with its partitions, None while others have yet to join; a sign of life.

        The first call after all have joined begins the next generation, which is logged before any member learns of it.

        Raises:
            UnknownMemberIdError: it was silent too long, or did not join in time.
            FencedInstanceIdError: another member has joined with its instance id.
            RebalanceInProgressError: it has to join again.
            KafkaStorageError: the generation cannot be logged.
        """
        partition = self._partition_of(group_id)
        with alone(GROUPS), partition.lock:
            group = partition.table.group(group_id)
            group.check_member(member_id, group_instance_id)
            group.keep_alive(member_id, ticks_ms=self._host.ticks_ms())
            group = self._rebalanced(partition, group)
            member = group.members.get(member_id)
            if member is None:
                raise UnknownMemberIdError
            if group.state is GroupState.STABLE:
                return member
            if not member.has_joined:
                raise RebalanceInProgressError
            return None

    def heartbeat(self, member: ConsumerGroupMetadata) -> None:
        """Note that a member is alive; raises as `GroupMembership.heartbeat`."""
        self._remove_abandoned()
        partition = self._partition_of(member.group_id)
        with alone(GROUPS), partition.lock:
            partition.table.group(member.group_id).heartbeat(member, ticks_ms=self._host.ticks_ms())

    def leave(self, group_id: str, member_id: str) -> None:
        """Remove a leaving member, a static one later; the others share its partitions.

        Raises UnknownMemberIdError, KafkaStorageError.
        """
        partition = self._partition_of(group_id)
        with alone(GROUPS), partition.lock:
            group = partition.table.group(group_id).copied()
            group.leave(member_id, ticks_ms=self._host.ticks_ms())
            partition.table.groups[group_id] = group
            if not group.members:
                self._rebalanced(partition, group)

    def abandon(self, group_id: str, member_id: str) -> None:
        """Remove a member whose consumer was dropped, when another member next joins or beats.

        A finalizer calls this in the middle of any other call: it must not lock or write.
        """
        self._abandoned.append((group_id, member_id))

    def remove_silent(self) -> None:
        """Remove members that did not poll in time; raise the first error when all groups were tried."""
        self._remove_abandoned()
        for_each_then_raise(list(self._loaded), self._remove_silent_of)  # no other partition has members

    def topic_changed(self, topic: str) -> None:
        """Rebalance the groups that read a topic: it is new, has more partitions, or is gone."""
        for number in list(self._loaded):
            partition = self._partition(number)
            with alone(GROUPS), partition.lock:
                for known in list(partition.table.groups.values()):
                    if not known.is_subscribed(topic):
                        continue
                    group = known.copied()
                    group.request_rebalance(ticks_ms=self._host.ticks_ms())
                    partition.table.groups[group.group_id] = group

    def group_ids(self) -> Iterator[str]:
        """Iterate over all groups that have offsets, members or a record."""
        for number in range(self._topic.partition_count):
            partition = self._partition(number)
            with alone(GROUPS), partition.lock:
                known = sorted(partition.table.group_ids())
            yield from known

    def describe(self, group_id: str) -> GroupMembership:
        """Return a copy of a group with its members; a group that only commits offsets is empty.

        Raises GroupIdNotFoundError if there is none, or it is of a protocol that this coordinator does not speak.
        """
        partition = self._known(group_id)
        with alone(GROUPS), partition.lock:
            partition.table.other_groups.require_classic(group_id)
            return partition.table.group(group_id).copied()

    def delete(self, group_id: str) -> None:
        """Forget a group with all its offsets (`DeleteGroups`).

        Raises GroupIdNotFoundError if there is no such group, or it is a share group, NonEmptyGroupError if it has
        members, and KafkaStorageError if that cannot be written.
        """
        partition = self._known(group_id)
        with alone(GROUPS), partition.lock:
            table = partition.table
            others = table.other_groups.tombstones(group_id)
            if table.group(group_id).members or table.other_groups.has_members(
                group_id, ticks_ms=self._host.ticks_ms()
            ):
                raise NonEmptyGroupError
            partition.remove(table.offsets.tombstones(group_id), [group_id], others)

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget a group's committed offsets of partitions (`deleteOffsets`); those without one are passed over.

        Raises:
            UsageError: the partitions are not a list of partitions.
            GroupIdNotFoundError: there is no such group.
            GroupSubscribedToTopicError: a member subscribes to one of the topics; no offset is deleted.
            NonEmptyGroupError: it is of another protocol, and has members.
            KafkaStorageError: the partition of `__consumer_offsets` cannot be written.
        """
        wanted = set(topic_partitions(partitions))
        self._known(group_id).delete_offsets(group_id, wanted)

    def _partition_of(self, group_id: str) -> OffsetsPartition:
        return self._partition(self.partition_of(group_id))

    def _partition(self, number: int) -> OffsetsPartition:
        partition = self._loaded.get(number)
        if partition is None:
            with alone(GROUPS), self._loading:
                partition = self._loaded.get(number)  # again: another thread may have loaded it meanwhile
                if partition is None:
                    partition = self._loaded[number] = OffsetsPartition(self._host, self._topic, number)
        return partition

    def _known(self, group_id: str) -> OffsetsPartition:
        if not self._topic.partition_count:
            raise GroupIdNotFoundError(f"Group {group_id} not found.")
        partition = self._partition_of(group_id)
        with alone(GROUPS), partition.lock:
            partition.table.require_known(group_id)
        return partition

    def _of_this_topic(
        self, topic_partition: TopicPartition, committed: CommittedOffset | None
    ) -> CommittedOffset | None:
        """Return None for an offset of an earlier topic of the same name (`isMismatchedTopicId`)."""
        if committed is None or committed.topic_id is None:
            return committed
        log = log_or_none(self._host, *topic_partition)
        return committed if log is None or log.topic_id in (None, committed.topic_id) else None

    def _remove_abandoned(self) -> None:
        while self._abandoned:
            with suppress(IndexError, UnknownMemberIdError):  # another thread was first
                group_id, member_id = self._abandoned.popleft()
                try:
                    self.leave(group_id, member_id)
                except KafkaStorageError as error:  # not the caller's group; `remove_silent` tries again
                    _LOGGER.warning("Group %s cannot be written and is tried again later: %s", group_id, error)

    def _remove_silent_of(self, number: int) -> None:
        partition = self._partition(number)

        def remove(known: GroupMembership) -> None:
            if known.state is GroupState.EMPTY:
                return
            group = known.copied()
            if group.remove_silent(ticks_ms=self._host.ticks_ms()):
                partition.table.groups[group.group_id] = group
            self._rebalanced(partition, group)

        with alone(GROUPS), partition.lock:
            for_each_then_raise(list(partition.table.groups.values()), remove)

    def _rebalanced(self, partition: OffsetsPartition, group: GroupMembership) -> GroupMembership:
        """Begin the next generation if it is due, logging it first; return the group."""
        if self._is_closed or not group.is_ready(ticks_ms=self._host.ticks_ms()):
            return group
        following = group.copied()
        topics = self._host.topics
        read = {topic for member in group.members.values() for topic in member.joining.topics}
        counts = {name: topics[name].partition_count for name in read & topics.keys()}
        following.complete_rebalance(counts, now_ms=self._host.now_ms())
        partition.write_group(following)
        return following


def _topic_ids(logs: Mapping[TopicPartition, PartitionLog | None]) -> dict[TopicPartition, str | None]:
    return {partition: log.topic_id for partition, log in logs.items() if log is not None}


def _require_known(logs: Mapping[TopicPartition, object]) -> None:
    """Raise for missing partitions (`KafkaApis.handleOffsetCommitRequest`, `handleTxnOffsetCommitRequest`)."""
    unknown = [f"{topic}-{partition}" for (topic, partition), log in logs.items() if log is None]
    if unknown:
        raise unknown_topic(", ".join(unknown))
