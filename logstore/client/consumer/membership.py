"""A consumer as a member of its group: joins, hears of rebalances, commits, leaves (`ConsumerCoordinator`).

A member is alive as long as it is asked to `poll`: within one process no connection can be lost, so what Kafka calls
`max.poll.interval.ms` is the only time that counts here.

A member gives its partitions back before it joins again. If cooperative-sticky is the only assignor that it is given,
it reads on: what it does not get again it gives back behind the rebalance, and joins once more, so that another member
gets it then (KIP-429).
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
    IllegalGenerationError,
    LogstoreError,
    RebalanceInProgressError,
    UnknownMemberIdError,
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
_NO_MEMBER = (
    "Offset commit cannot be completed since the consumer is not part of an active group for auto partition "
    "assignment; it is likely that the consumer was kicked out of the group."
)
_REBALANCING = (
    "Offset commit cannot be completed since the consumer is undergoing a rebalance for auto partition assignment. You "
    "can try completing the rebalance by calling poll() and then retry the operation."
)
_LOGGER = logging.getLogger("logstore")


class RebalanceListener(Protocol):
    """What a program does when its consumer gets other partitions (`ConsumerRebalanceListener`)."""

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> object:
        """Partitions are about to go to others; their offsets may still be committed."""

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> object:
        """Others have them already: the consumer was not heard of for too long; without it, as revoked ones."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> object:
        """There are new ones, of which nothing was read yet."""


class Membership:
    """Of one consumer with a `group.id`; knows its positions, not the consumer, which may be dropped meanwhile."""

    def __init__(self, store: DataDirectory, config: ConsumerConfig, positions: Positions) -> None:
        """It joins with the first `poll`."""
        self._store, self._config, self._positions = store, config, positions
        self._group_id: str = config["group.id"]
        self._member_id = ""
        self._generation = NO_GENERATION
        self._partitions: tuple[TopicPartition, ...] | None = None  # of the generation that it is in
        self._is_joining = False  # it waits for the others to join
        self._has_taken_over = False  # the partitions are those of the positions
        self._is_cooperative = config["partition.assignment.strategy"] == ["cooperative-sticky"]
        self._must_rejoin = False  # it has given partitions back, which nobody has yet
        self._topics: frozenset[str] = frozenset()  # that it has joined with
        self._matched: tuple[SubscriptionState, Mapping[str, object]] = SubscriptionState(), {}  # with these topics
        self._next_commit_s = 0.0

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        """What a producer shows with the offsets."""
        return self._identity._replace(group_instance_id=self._config["group.instance.id"])

    def poll(self, listener: RebalanceListener | None) -> None:
        """Be alive, take part in a rebalance, and let the positions be those of the assignment.

        Raises:
            FencedInstanceIdError: another consumer has the `group.instance.id`.
            LogstoreError: as `GroupCoordinator.join` and `sync`.
        """
        topics = self._wanted_topics()
        if self._partitions is not None and not self._must_join(topics, listener):
            if not self._has_taken_over:
                self._take_over(self._partitions, listener)
            return
        if not self._is_joining or topics != self._topics:
            self._join(topics)
        if not self._has_synced() and not self._is_joining:
            self._join(topics)
            self._has_synced()
        if self._partitions is not None:
            self._take_over(self._partitions, listener)

    def leave(self, listener: RebalanceListener | None) -> None:
        """Go, so that others get the partitions, whatever the listener raises (`AbstractCoordinator.close`).

        A static member stays until its time is up.
        """
        try:
            self._give_back(listener, list(self._positions))
        finally:
            if self._member_id and self._config["group.instance.id"] is None:
                with suppress(UnknownMemberIdError):
                    self._store.groups.leave(self._group_id, self._member_id)
            self._forget()

    def abandon(self) -> None:
        """As `leave`, called by the garbage collector: anywhere, so that the group does it when it is next asked."""
        if self._member_id and self._config["group.instance.id"] is None:
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
            raise CommitFailedError(_SHUT_OUT) from error

    def begin_interval(self) -> None:
        """Let `auto.commit.interval.ms` begin."""
        self._next_commit_s = clock.monotonic_s() + self._config["auto.commit.interval.ms"] / 1000

    def commit_automatically(self, *, is_due: bool = False) -> None:
        """Commit all positions if `enable.auto.commit` says so and it is time, or `is_due`.

        A commit that fails is logged as a warning, and done again later.
        """
        if not self._config["enable.auto.commit"] or not (is_due or clock.monotonic_s() >= self._next_commit_s):
            return
        positions = self._positions.known()
        if not positions:
            return
        self.begin_interval()
        try:
            self.commit(offset_commits(positions))
        except LogstoreError as error:
            _LOGGER.warning("Offsets were not committed automatically: %s", error)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed, None where that is nothing.

        Raises:
            UnstableOffsetCommitError: with read_committed, a transaction is about to replace one of them.
        """
        wanted = list(partitions)
        needs_stable = self._positions.isolation is FetchIsolation.READ_COMMITTED
        found = self._store.groups.fetch(self._group_id, wanted, require_stable=needs_stable)
        answer: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(wanted)
        for partition in wanted:
            value = found[partition]
            if value is not None:
                epoch = None if value.leader_epoch == NO_LEADER_EPOCH else value.leader_epoch
                answer[partition] = OffsetAndMetadata(value.offset, value.metadata, epoch)
        return answer

    def committed_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset that the group has committed, as `committed`."""
        value = self.committed([partition])[partition]
        return None if value is None else value.offset

    # -- steps ------------------------------------------------------------------------------------------------------

    @property
    def _identity(self) -> ConsumerGroupMetadata:
        """Who commits: the member, or nobody in particular while the consumer is not in its group."""
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

    def _must_join(self, topics: frozenset[str], listener: RebalanceListener | None) -> bool:
        """Tell the group that the member is alive; if it has to join again its partitions are given back."""
        is_lost = False
        try:
            self._store.groups.heartbeat(self._identity)
            if topics == self._topics and not self._must_rejoin:
                return False
        except RebalanceInProgressError:
            pass
        except (UnknownMemberIdError, IllegalGenerationError):
            is_lost = True
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
        """Commit what was read, unless others have the partitions already, and read these no longer."""
        if not is_lost:
            self.commit_automatically(is_due=True)
        try:
            if listener is not None and partitions:
                revoked = listener.on_partitions_revoked  # a listener without the other hears of lost ones by this
                (getattr(listener, "on_partitions_lost", revoked) if is_lost else revoked)(partitions)
        finally:
            if partitions:
                self._positions.assign([partition for partition in self._positions if partition not in partitions])

    def _take_over(self, partitions: tuple[TopicPartition, ...], listener: RebalanceListener | None) -> None:
        """Let the positions be those of the assignment; again if an interrupt came before."""
        revoked = [partition for partition in self._positions if partition not in partitions]
        if revoked:
            self._must_rejoin = True  # first: the next call finds nothing to give back any more
            self._give_back(listener, revoked)
        kept = set(self._positions) if self._is_cooperative else ()
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
                session_timeout_ms=config["max.poll.interval.ms"],
                rebalance_timeout_ms=config["max.poll.interval.ms"],
                held=tuple(self._positions) if self._is_cooperative else (),
            ),
        )
        self._topics, self._is_joining, self._must_rejoin = topics, True, False

    def _has_synced(self) -> bool:
        """Take the assignment, if everybody has joined; a member that was left behind has to join again."""
        try:
            member = self._store.groups.sync(self._group_id, self._member_id)
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
