"""Makes a consumer a member of its group: joins, takes part in rebalances, commits, leaves (`ConsumerCoordinator`).

A member is alive as long as the program calls `poll`: within one process no connection can be lost, so only
`max.poll.interval.ms` limits it.

A member gives its partitions back before it joins again. With cooperative-sticky as its only assignor it keeps and
reads them during the rebalance: partitions that it lost it gives back afterwards, and joins once more, so that another
member gets them (KIP-429).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Protocol

from ... import clock
from ...coordinator.groups.membership import NO_GENERATION, ConsumerGroupMetadata, Joining
from ...coordinator.groups.offsets import NO_LEADER_EPOCH, OffsetAndMetadata
from ...errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    InvalidGroupIdError,
    LogstoreError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UsageError,
)
from ...model import FetchIsolation, TopicPartition
from ...store.data_directory import DataDirectory
from ..arguments import offset_commits
from .assignors import ASSIGNORS
from .config import ConsumerConfig
from .positions import Positions
from .subscription import SubscriptionState

_SHUT_OUT = (
    "Commit cannot be completed since the group has already rebalanced and assigned the partitions to another member. "
    "This means that the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, "
    "which typically implies that the poll loop is spending too much time message processing. You can address this "
    "either by increasing max.poll.interval.ms or by reducing the maximum size of batches returned in poll() with "
    "max.poll.records."
)
_ASSIGNED = (
    "this consumer assigns itself partitions beside members of its group, which subscribe: give it another group_id"
)
_NO_MEMBER = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
    "assignment; it is likely that the consumer was kicked out of the group."
)
_REBALANCING = (
    "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto partition assignment. You "
    "can try completing the rebalance by calling poll() and then retry the operation."
)
_NO_GROUP = (
    "To use the group management or offset commit APIs, you must provide a valid group.id in the consumer "
    "configuration."
)
_LOGGER = logging.getLogger("logstore")


class RebalanceListener(Protocol):
    """Callbacks of a program for a change of its consumer's partitions (`ConsumerRebalanceListener`).

    `on_partitions_lost(lost)` may be there too: it is called in place of `on_partitions_revoked` when other members
    have the partitions already, as this one was silent for too long.
    """

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> object:
        """Partitions will go to other members; their offsets can still be committed."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> object:
        """The consumer got partitions, of which it has read nothing yet."""


class Membership:
    """Membership of one consumer with a `group.id`; refers only to its positions, so that it can be dropped."""

    def __init__(self, store: DataDirectory, config: ConsumerConfig, positions: Positions) -> None:
        self._store, self._config, self._positions = store, config, positions
        self._group_id: str = config["group.id"]
        self._member_id = ""
        self._joined_id = ""  # the member id under which it last joined
        self._generation = NO_GENERATION
        self._partitions: tuple[TopicPartition, ...] | None = None  # assignment of its generation
        self._is_joining = False  # waits until the others have joined
        self._being_told: list[TopicPartition] = []  # which go, as the listener hears just now
        self._has_taken_over = False  # the positions are those of `_partitions`
        self._is_cooperative = config["partition.assignment.strategy"] == ["cooperative-sticky"]
        self._must_rejoin = False  # has given partitions back, which are assigned when it joins again
        self._topics: frozenset[str] = frozenset()  # with which it joined
        # state and the store's topics for which the pattern was last matched
        self._matched: tuple[SubscriptionState, Mapping[str, object]] = SubscriptionState(), {}
        self._next_commit_s = 0.0
        self._commits_automatically: bool = config["enable.auto.commit"]

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        """What a producer passes with the offsets of a transaction."""
        return self._identity._replace(group_instance_id=self._config["group.instance.id"])

    def poll(self, listener: RebalanceListener | None) -> None:
        """Send the heartbeat, take part in a rebalance, and set the positions to the assignment.

        Raises FencedInstanceIdError if another consumer has the `group.instance.id`; else as `GroupCoordinator.join`
        and `sync`.
        """
        if self._partitions is not None and not self._must_join(self._wanted_topics(), listener):
            if not self._has_taken_over:
                self._take_over(self._partitions, listener)
            return
        topics = self._wanted_topics()  # again: the listener may have subscribed to others, or to none
        if not self._positions.subscription.is_shared:
            return
        if not self._is_joining or topics != self._topics:
            self._join(topics)
        if not self._has_synced() and not self._is_joining:  # the group rebalanced meanwhile: join anew at once
            self._join(topics)
            self._has_synced()
        if self._partitions is not None:
            self._take_over(self._partitions, listener)

    def leave(self, listener: RebalanceListener | None) -> None:
        """Leave without a commit, so that others get the partitions, whatever the listener raises (`onLeavePrepare`).

        A static member keeps its partitions until `session.timeout.ms` have passed.
        """
        try:
            self._give_back(listener, list(self._positions), is_lost=self._is_shut_out())
        finally:
            if self._member_id:
                with suppress(UnknownMemberIdError):
                    self._store.groups.leave(self._group_id, self._member_id)
            self._forget()

    def abandon(self) -> None:
        """Note that the member is gone; the group removes it later, as a garbage collection may come under a lock."""
        if self._member_id:
            self._store.groups.abandon(self._group_id, self._member_id)

    def commit(self, commits: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for the group; raises as `Consumer.commit`."""
        if self._positions.subscription.is_shared and self._partitions is None:
            raise RebalanceInProgressError(_REBALANCING) if self._is_joining else CommitFailedError(_NO_MEMBER)
        if not commits:
            return
        try:
            self._store.groups.commit(self._identity, commits)
        except (UnknownMemberIdError, IllegalGenerationError) as error:
            advice = None if self._positions.subscription.is_shared else _ASSIGNED
            raise CommitFailedError(_SHUT_OUT, advice=advice) from error

    def begin_interval(self) -> None:
        """Start `auto.commit.interval.ms` anew."""
        self._next_commit_s = clock.monotonic_s() + self._config["auto.commit.interval.ms"] / 1000

    def stop_automatic_commits(self) -> None:
        """Commit nothing more by itself, as the consumer is closed after an error."""
        self._commits_automatically = False

    def commit_automatically(self, *, is_due: bool = False) -> None:
        """Commit all positions if `enable.auto.commit` and the interval has passed, or `is_due`.

        A commit that fails is logged as a warning, and repeated after the next interval.
        """
        if not self._commits_automatically or not (is_due or clock.monotonic_s() >= self._next_commit_s):
            return
        positions = self._positions.known()
        if not positions:
            return
        self.begin_interval()
        try:
            self.commit(offset_commits(positions, self._store.leader_epoch_before))
        except LogstoreError as error:
            _LOGGER.warning("Offsets were not committed automatically: %s", error)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None for a partition without one.

        Raises UnstableOffsetCommitError if, with read_committed, an open transaction may replace one of them.
        """
        wanted = list(partitions)
        needs_stable = self._positions.isolation is FetchIsolation.READ_COMMITTED
        found = self._store.groups.fetch(self._group_id, wanted, require_stable=needs_stable)
        answer: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(wanted)
        for partition in wanted:
            value = found[partition]
            if value is not None and value.offset >= 0:  # -1 is none: some clients commit it
                epoch = None if value.leader_epoch == NO_LEADER_EPOCH else value.leader_epoch
                answer[partition] = OffsetAndMetadata(value.offset, value.metadata, epoch)
        return answer

    def committed_of(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        """Return the group's committed offset of one partition; raises as `committed`."""
        return self.committed([partition])[partition]

    # -- steps ------------------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> ConsumerGroupMetadata:
        """Who commits: the member, or a consumer outside of the group's membership (as with `assign`)."""
        if self._generation == NO_GENERATION:
            return ConsumerGroupMetadata(self._group_id)
        instance_id = self._config["group.instance.id"]
        return ConsumerGroupMetadata(self._group_id, self._generation, self._member_id, instance_id)

    def _wanted_topics(self) -> frozenset[str]:
        state, topics = self._positions.subscription, self._store.topics
        if state.pattern is not None and (state is not self._matched[0] or topics is not self._matched[1]):
            state = state.matched(topics, excludes_internal=self._config["exclude.internal.topics"])
            self._positions.subscription = state
            self._matched = state, topics
        return state.topics

    def _is_shut_out(self) -> bool:
        """Return whether the group gives the partitions away already: it waits for no commit of this member."""
        if self._partitions is None:
            return True
        try:
            self._store.groups.heartbeat(self._identity)
        except LogstoreError as error:  # in a rebalance the member may still commit
            return isinstance(error, UnknownMemberIdError | IllegalGenerationError | FencedInstanceIdError)
        return False

    def _must_join(self, topics: frozenset[str], listener: RebalanceListener | None) -> bool:
        """Send the heartbeat; if the member must join again, give its partitions back and return True."""
        is_lost = False
        try:
            self._store.groups.heartbeat(self._identity)
            if topics == self._topics and not self._must_rejoin:
                return False
        except RebalanceInProgressError:
            pass
        except (UnknownMemberIdError, IllegalGenerationError):
            is_lost = True
        if not is_lost:
            self.commit_automatically(is_due=True)
        kept = topics if self._is_cooperative and not is_lost else frozenset[str]()
        self._give_back(
            listener, [partition for partition in self._positions if partition.topic not in kept], is_lost=is_lost
        )
        self._partitions = None
        if is_lost:
            self._forget()
        return True

    def _give_back(
        self, listener: RebalanceListener | None, partitions: list[TopicPartition], *, is_lost: bool = False
    ) -> None:
        """Stop reading partitions, which other members have already if `is_lost`."""
        try:
            told = [partition for partition in partitions if partition not in self._being_told]
            if listener is not None and told:
                self._being_told = partitions  # until it returns: it may close the consumer
                revoked = listener.on_partitions_revoked  # hears of lost ones too, if there is no `on_partitions_lost`
                (getattr(listener, "on_partitions_lost", revoked) if is_lost else revoked)(told)
        finally:
            self._being_told = []
            if partitions:
                self._positions.assign([partition for partition in self._positions if partition not in partitions])

    def _take_over(self, partitions: tuple[TopicPartition, ...], listener: RebalanceListener | None) -> None:
        """Set the positions to the assignment; repeated if an interrupt hit the last call."""
        revoked = [partition for partition in self._positions if partition not in partitions]
        if revoked:
            self._must_rejoin = True  # before `_give_back`: after an interrupt the next call would find nothing revoked
            self.commit_automatically(is_due=True)
            self._give_back(listener, revoked)
            if self._partitions is None:  # the listener has unsubscribed
                return
        kept = set(self._positions) if self._is_cooperative else ()  # a cooperative listener hears of new ones only
        self._positions.assign(partitions)
        self._has_taken_over = True
        if listener is not None:
            listener.on_partitions_assigned([partition for partition in partitions if partition not in kept])

    def _join(self, topics: frozenset[str]) -> None:
        config = self._config
        self._member_id = self._member_id or f"{config['client.id']}-{uuid.uuid4()}"
        self._store.groups.join(
            self._group_id,
            Joining(
                member_id=self._member_id,
                topics=tuple(sorted(topics)),
                assignors={name: ASSIGNORS[name] for name in config["partition.assignment.strategy"]},
                group_instance_id=config["group.instance.id"],
                client_id=config["client.id"],
                session_timeout_ms=config["session.timeout.ms"],
                rebalance_timeout_ms=config["max.poll.interval.ms"],
                held=tuple(self._positions) if self._is_cooperative else (),
                is_rejoin=self._member_id == self._joined_id,
            ),
        )
        self._joined_id = self._member_id  # not before: after an interrupt a new member would be fenced as an old one
        self._topics, self._is_joining, self._must_rejoin = topics, True, False

    def _has_synced(self) -> bool:
        """Take the assignment if all have joined; a member that missed the rebalance has to join again."""
        try:
            member = self._store.groups.sync(self._group_id, self._member_id, self._config["group.instance.id"])
        except RebalanceInProgressError:
            self._is_joining = False
            return False
        except UnknownMemberIdError:
            self._forget()
            return False
        if member is None:
            return False
        self._generation, self._is_joining, self._has_taken_over = member.generation, False, False
        self._partitions = member.partitions
        return True

    def _forget(self) -> None:
        self._partitions = None
        self._member_id, self._generation, self._is_joining, self._must_rejoin = "", NO_GENERATION, False, False


def require_listener(listener: RebalanceListener | None) -> None:
    """Raise UsageError for an object without the methods of a listener, of which that of lost partitions may miss."""
    names = "on_partitions_revoked", "on_partitions_assigned"
    if listener is not None and not all(callable(getattr(listener, name, None)) for name in names):
        raise UsageError("This is no listener", expected=f"the methods {' and '.join(names)}", found=repr(listener))


def required_member(member: Membership | None) -> Membership:
    """Return the member; raise InvalidGroupIdError for a consumer without one."""
    if member is None:
        raise InvalidGroupIdError(_NO_GROUP)
    return member
