"""The group coordinator of a store: offsets and members of groups, bound to logs (`GroupCoordinatorService`).

    groups = GroupCoordinator(store)
    groups.commit("billing", {("payments", 0): OffsetCommit(17)})
    groups.fetch("billing", [("payments", 0)])[("payments", 0)].offset
    groups.join("billing", Joining(member_id="m1", topics=("payments",)))
    assignment = groups.sync("billing", "m1")

Members are consumers of this process, so that groups have none when the store is opened. A member that has joined gets
its partitions from `sync` as soon as all others have joined too, or their time is up. No call waits, so that consumers
of one thread can take turns. A member that hears of a rebalance by `heartbeat` joins again.

`TransactionCoordinator.commit_offsets` commits the offsets of transactions.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...coordinator.groups.membership import GroupMemberIdentity, GroupMembership, GroupState, Joining
from ...errors import (
    GroupIdNotFoundError,
    InvalidGroupIdError,
    KafkaStorageError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from ...model import TopicPartition
from ..internal_topic import for_each_then_raise, topic_or_none
from .commits import GroupCommits
from .partition import GroupPartition

if TYPE_CHECKING:
    from ..data_directory import DataDirectory

_REBALANCE_CHECK_INTERVAL_MS = 1000
_LOGGER = logging.getLogger("logstore")


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The partitions of a member in a generation; `protocol` is the name of the assignor."""

    generation: int
    partitions: tuple[TopicPartition, ...]
    protocol: str


class GroupCoordinator(GroupCommits):
    """All groups of a store; see the module. Calls may come from any thread."""

    def __init__(self, store: DataDirectory) -> None:
        """Nothing is read yet."""
        super().__init__(store)
        self._abandoned: deque[tuple[str, str]] = deque()

    def start(self) -> None:
        """Begin to remove silent members and expired offsets."""
        self._store.schedule("group-rebalance", _REBALANCE_CHECK_INTERVAL_MS, self.remove_silent)
        self._store.schedule(
            "group-metadata-expiration", self._store.config["offsets.retention.check.interval.ms"], self.remove_expired
        )

    def join(self, group_id: str, joining: Joining) -> None:
        """Let a member join, or join again; `sync` tells when it has its partitions.

        Raises:
            InvalidGroupIdError, InconsistentGroupProtocolError: as `GroupMembership.join`.
            GroupIdNotFoundError: the group is of a protocol that this coordinator does not speak.
        """
        if not group_id:
            raise InvalidGroupIdError
        self._remove_abandoned()
        partition = self._partitions.of(group_id)
        with partition.lock:
            if group_id in partition.other_group_ids:
                raise GroupIdNotFoundError(f"Group {group_id} is not a classic group.")
            group = (partition.groups.get(group_id) or GroupMembership(group_id)).copied()
            group.join(joining, now_ms=self._store.now_ms())
            partition.groups[group_id] = group

    def sync(self, group_id: str, member_id: str) -> GroupAssignment | None:
        """Return the partitions of a member that has joined; None while others have yet to join. It is alive.

        The first call after all have joined begins the next generation, which is logged before anybody hears of it.

        Raises:
            UnknownMemberIdError: it was silent for too long, or has not joined in time.
            RebalanceInProgressError: it has to join again.
            KafkaStorageError: the partition of `__consumer_offsets` cannot be written.
        """
        partition = self._partitions.of(group_id)
        with partition.lock:
            group = partition.groups.get(group_id)
            if group is None or member_id not in group.members:
                raise UnknownMemberIdError
            group.keep_alive(member_id, now_ms=self._store.now_ms())
            group = self._rebalanced(partition, group)
            member = group.members.get(member_id)
            if member is None:
                raise UnknownMemberIdError
            if group.state is not GroupState.STABLE:
                if not member.has_joined:
                    raise RebalanceInProgressError
                return None
            assert group.protocol is not None
            return GroupAssignment(group.generation, member.partitions, group.protocol)

    def heartbeat(self, group_id: str, member: GroupMemberIdentity) -> None:
        """Note that a member is alive.

        Raises:
            UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError: it has to join as a new member.
            RebalanceInProgressError: it has to join again.
        """
        self._remove_abandoned()
        partition = self._partitions.of(group_id)
        with partition.lock:
            group = partition.groups.get(group_id)
            if group is None:
                raise UnknownMemberIdError
            group.heartbeat(member, now_ms=self._store.now_ms())

    def leave(self, group_id: str, member_id: str) -> None:
        """Remove a member that leaves; the others share its partitions.

        Raises:
            UnknownMemberIdError: the group does not have it.
            KafkaStorageError: the partition of `__consumer_offsets` cannot be written.
        """
        partition = self._partitions.of(group_id)
        with partition.lock:
            known = partition.groups.get(group_id)
            if known is None:
                raise UnknownMemberIdError
            group = known.copied()
            group.leave(member_id, now_ms=self._store.now_ms())
            partition.groups[group_id] = group
            if not group.members:
                self._rebalanced(partition, group)

    def abandon(self, group_id: str, member_id: str) -> None:
        """Remove a member that its program has dropped, when another joins or is alive the next time.

        A finalizer calls this, in the middle of any other call: nothing is locked or written here.
        """
        self._abandoned.append((group_id, member_id))

    def remove_silent(self) -> None:
        """Remove members that were silent for their session timeout; to be called now and then.

        Raises:
            LogstoreError: of the first group that cannot be written; the others have been seen to.
        """

        self._remove_abandoned()

        def remove(partition: GroupPartition) -> None:
            with partition.lock:
                groups = [one for one in partition.groups.values() if one.state is not GroupState.EMPTY]
                for_each_then_raise(groups, lambda group: self._remove_silent_of(partition, group))

        for_each_then_raise(self._partitions.loaded(), remove)

    def topic_changed(self, topic: str) -> None:
        """Let the groups that read a topic rebalance: it is new, or has more partitions."""
        for partition in self._partitions.loaded():
            with partition.lock:
                for known in list(partition.groups.values()):
                    if known.is_subscribed(topic):
                        group = known.copied()
                        group.request_rebalance(now_ms=self._store.now_ms())
                        partition.groups[group.group_id] = group

    def group_ids(self) -> Iterator[str]:
        """Iterate over all groups that have offsets, members or a record of their own."""
        for partition in self._partitions:
            with partition.lock:
                known = {*partition.offsets.groups(), *partition.groups, *partition.other_group_ids}
            yield from sorted(known)

    def describe(self, group_id: str) -> GroupMembership:
        """Return a copy of a group with its members; one that only commits offsets is empty.

        Raises:
            GroupIdNotFoundError: there is no such group.
        """
        partition = self._known(group_id)
        with partition.lock:
            return (partition.groups.get(group_id) or GroupMembership(group_id)).copied()

    def delete(self, group_id: str) -> None:
        """Forget a group with all its offsets (`DeleteGroups`).

        Raises:
            GroupIdNotFoundError: there is no such group, or it is of a protocol that this coordinator does not speak.
            NonEmptyGroupError: it has members.
            KafkaStorageError: the partition of `__consumer_offsets` cannot be written.
        """
        partition = self._known(group_id)
        with partition.lock:
            if group_id in partition.other_group_ids:
                raise GroupIdNotFoundError(f"Group {group_id} is not a classic group.")
            group = partition.groups.get(group_id)
            if group is not None and group.members:
                raise NonEmptyGroupError
            partition.remove(partition.offsets.tombstones(group_id), [group_id])

    def _remove_abandoned(self) -> None:
        while self._abandoned:
            with suppress(IndexError, UnknownMemberIdError):  # another thread was first
                group_id, member_id = self._abandoned.popleft()
                try:
                    self.leave(group_id, member_id)
                except (
                    KafkaStorageError
                ) as error:  # of another group than that of whoever calls; `remove_silent` goes on
                    _LOGGER.warning("Group %s cannot be written and is tried again later: %s", group_id, error)

    def _remove_silent_of(self, partition: GroupPartition, known: GroupMembership) -> None:
        group = known.copied()
        if group.remove_silent(now_ms=self._store.now_ms()):
            partition.groups[group.group_id] = group
        self._rebalanced(partition, group)

    def _rebalanced(self, partition: GroupPartition, group: GroupMembership) -> GroupMembership:
        """Begin the next generation if that is due, its record first; return the group."""
        now_ms = self._store.now_ms()
        if not group.is_ready(now_ms=now_ms):
            return group
        following = group.copied()
        read = {topic for member in group.members.values() for topic in member.joining.topics}
        topics = {name: topic_or_none(self._store, name) for name in read}
        counts = {name: topic.partition_count for name, topic in topics.items() if topic is not None}
        following.complete_rebalance(counts, now_ms=now_ms)
        partition.write_group(following)
        partition.groups[group.group_id] = following
        return following
