"""A consumer as a member of its group: joins, hears of rebalances, joins again, leaves (`ConsumerCoordinator`).

A member is alive as long as it is asked to `poll`: within one process no connection can be lost, so what Kafka calls
`max.poll.interval.ms` is the only time that counts here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from ..coordinator.groups.membership import ANYBODY, NO_GENERATION, GroupMemberIdentity, Joining
from ..errors import IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError
from ..model import TopicPartition
from ..store.store import Store
from .consumer_config import ConsumerConfig
from .group_metadata import ConsumerGroupMetadata


class RebalanceListener(Protocol):
    """What a program does when its consumer gets other partitions (`ConsumerRebalanceListener`)."""

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> object:
        """Partitions are about to go to others; their offsets may still be committed."""

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> object:
        """Others have them already: the consumer was not heard of for too long; without it, as revoked ones."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> object:
        """There are new ones, of which nothing was read yet."""


class GroupMember:
    """Of one consumer with a `group.id`.

    Attributes:
        partitions: those of the generation that it is in; None outside of one.
        is_joining: it waits for the others to join.
    """

    def __init__(self, store: Store, config: ConsumerConfig) -> None:
        self.group_id: str = config["group.id"]
        self.partitions: tuple[TopicPartition, ...] | None = None
        self.is_joining = False
        self._store, self._config = store, config
        self._member_id = ""
        self._generation = NO_GENERATION
        self._topics: frozenset[str] = frozenset()

    @property
    def identity(self) -> GroupMemberIdentity:
        """Who commits: the member, or anybody while the consumer is not in its group."""
        if self._generation == NO_GENERATION:
            return ANYBODY
        return GroupMemberIdentity(self._member_id, self._generation, self._config["group.instance.id"])

    @property
    def metadata(self) -> ConsumerGroupMetadata:
        """What a producer shows with the offsets."""
        member = self.identity
        instance_id = self._config["group.instance.id"]
        return ConsumerGroupMetadata(self.group_id, member.generation, member.member_id, instance_id)

    def poll(self, topics: frozenset[str], give_back: Callable[[bool], None]) -> bool:
        """Be alive, and take part in a rebalance; True when there is a new assignment in `partitions`.

        Args:
            give_back: called before the partitions go, in the old generation; True: they are lost already.

        Raises:
            FencedInstanceIdError: another consumer has the `group.instance.id`.
            LogstoreError: as `GroupCoordinator.join` and `sync`.
        """
        if self.partitions is not None:
            is_lost = False
            try:
                self._store.groups.heartbeat(self.group_id, self.identity)
                if topics == self._topics:
                    return False
            except RebalanceInProgressError:
                pass
            except (UnknownMemberIdError, IllegalGenerationError):
                is_lost = True
            give_back(is_lost)
            self.partitions = None
            if is_lost:
                self._forget()
        if not self.is_joining or topics != self._topics:
            self._join(topics)
        return self._has_synced() or (not self.is_joining and self._rejoined(topics))

    def leave(self) -> None:
        """Go, so that others get the partitions; a static member stays until its time is up."""
        if self._member_id and self._config["group.instance.id"] is None:
            with suppress(UnknownMemberIdError):
                self._store.groups.leave(self.group_id, self._member_id)
        self.partitions = None
        self._forget()

    def abandon(self) -> None:
        """As `leave`, called by the garbage collector: anywhere, so that the group does it when it is next asked."""
        if self._member_id and self._config["group.instance.id"] is None:
            self._store.groups.abandon(self.group_id, self._member_id)

    def _rejoined(self, topics: frozenset[str]) -> bool:
        self._join(topics)
        return self._has_synced()

    def _join(self, topics: frozenset[str]) -> None:
        config = self._config
        self._member_id = self._member_id or f"{config['client.id']}-{uuid.uuid4()}"
        self._store.groups.join(
            self.group_id,
            Joining(
                member_id=self._member_id,
                topics=tuple(sorted(topics)),
                assignors=tuple(config["partition.assignment.strategy"]),
                group_instance_id=config["group.instance.id"],
                client_id=config["client.id"],
                session_timeout_ms=config["max.poll.interval.ms"],
                rebalance_timeout_ms=config["max.poll.interval.ms"],
            ),
        )
        self._topics, self.is_joining = topics, True

    def _has_synced(self) -> bool:
        """Take the assignment, if everybody has joined; who was left behind has to join again."""
        try:
            assignment = self._store.groups.sync(self.group_id, self._member_id)
        except RebalanceInProgressError:
            self.is_joining = False
            return False
        except UnknownMemberIdError:
            self._forget()
            return False
        if assignment is None:
            return False
        self._generation, self.is_joining = assignment.generation, False
        self.partitions = tuple(TopicPartition(*one) for one in assignment.partitions)
        return True

    def _forget(self) -> None:
        self._member_id, self._generation, self.is_joining = "", NO_GENERATION, False
