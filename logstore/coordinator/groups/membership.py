"""The members of a group and their partitions, generation by generation (`ClassicGroup`).

A member that joins, leaves or changes its topics begins a rebalance. The others hear of it at their next heartbeat,
finish what they have (they may still commit) and join again. When all have joined, or their time is up, there is a new
generation. The coordinator calls the assignor of its leader, the first member; in Kafka's classic protocol that member
does. Silence and waiting are counted in `ticks_ms`, by a clock that never goes back.

>>> group = GroupMembership("billing")
>>> nothing = lambda partition_counts, members: {member_id: [] for member_id in members}
>>> group.join(Joining(member_id="m1", topics=("t",), assignors={"none": nothing}), ticks_ms=5)
>>> group.complete_rebalance({"t": 3}, now_ms=5)
>>> group.generation, group.protocol, group.members["m1"].partitions
(1, 'none', ())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from ...errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from ...model import TopicPartition
from ...topics.consumer_offsets import CommittedOffset

CONSUMER_PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1

Assignment = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics of a member, its partitions in its last `generation` (-1: none), and those it still reads (`held`)."""

    topics: tuple[str, ...]
    group_instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    held: tuple[TopicPartition, ...] = ()


#: (partition count of each topic that exists, subscription of each member) -> partitions of each member
Assignor = Callable[[Mapping[str, int], Mapping[str, Subscription]], Assignment]


class GroupState(Enum):
    """State of a group, with Kafka's names; there is no CompletingRebalance, because the assignment comes at once."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class Joining:
    """A member's request to join: `assignors` by preference, and the partitions that it goes on reading (`held`).

    `is_rejoin`: the member has joined under this id before, so it takes the place of no other member.
    Here no connection can be lost, so a member is alive as long as it polls within `rebalance_timeout_ms`, which is its
    `max.poll.interval.ms`. `session_timeout_ms` is for a static member that left, and for a broker that takes the group
    over.
    """

    member_id: str
    topics: tuple[str, ...]
    assignors: Mapping[str, Assignor]
    group_instance_id: str | None = None
    client_id: str = ""
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    held: tuple[TopicPartition, ...] = ()
    is_rejoin: bool = False


class ConsumerGroupMetadata(NamedTuple):
    """The identity of a member in a generation of its group, for commits of offsets (`ConsumerGroupMetadata`).

    The group id alone names no member. Such a commit is for groups without members, and is never fenced.
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group; `has_joined` the next generation; `has_left`: it is static, and may come back."""

    joining: Joining
    last_heartbeat_ms: int  # in ticks
    has_joined: bool = False
    has_left: bool = False
    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION

    @property
    def silence_max_ms(self) -> int:
        """How long it stays without a sign of life."""
        return self.joining.session_timeout_ms if self.has_left else self.joining.rebalance_timeout_ms

    @property
    def subscription(self) -> Subscription:
        """The member as an assignor sees it."""
        return Subscription(
            self.joining.topics,
            self.joining.group_instance_id,
            owned=self.partitions,
            generation=self.generation,
            held=self.joining.held,
        )


class GroupMembership:
    """The members of one group. Not thread-safe.

    Attributes:
        protocol_type: None for a group that only commits offsets.
        state_timestamp_ms: when the generation began, ms since 1970; -1 if unknown.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state_timestamp_ms = -1
        self.members: dict[str, Member] = {}
        self._rebalance_begin_ms = 0  # in ticks

    def copied(self) -> GroupMembership:
        """Return a copy to change and then put in the original's place: an interrupt in between has no effect."""
        copied = copy(self)
        copied.members = dict(self.members)
        return copied

    def join(self, joining: Joining, *, ticks_ms: int) -> None:
        """Let a member join, or join again; `complete_rebalance` then puts it into a generation.

        A static member that comes back under another member id takes its old place, and the old id is fenced: it gets a
        FencedInstanceIdError when it joins again. Raises InvalidGroupIdError for an empty group id,
        InconsistentGroupProtocolError if no assignor is common to all members.
        """
        if not self.group_id:
            raise InvalidGroupIdError
        if joining.is_rejoin and self._other_id(joining) is not None:
            raise FencedInstanceIdError
        self._check_assignors(joining)  # before any change: a refused member leaves the group as it was
        self.protocol_type = CONSUMER_PROTOCOL_TYPE
        known = self._replaced(joining) or self.members.get(joining.member_id)
        is_same = known is not None and _without_ids(known.joining) == _without_ids(joining)
        if self.state is not GroupState.STABLE or not is_same:
            self._begin_rebalance(ticks_ms)
        member = Member(joining, ticks_ms)
        if known is not None:
            member = replace(known, joining=joining, last_heartbeat_ms=ticks_ms, has_left=False)
        is_rebalancing = self.state is GroupState.PREPARING_REBALANCE
        self.members[joining.member_id] = replace(member, has_joined=is_rebalancing)

    def keep_alive(self, member_id: str, *, ticks_ms: int) -> None:
        """Note that a member is alive; ignore an unknown one."""
        member = self.members.get(member_id)
        if member is not None:
            self.members[member_id] = replace(member, last_heartbeat_ms=ticks_ms)

    def heartbeat(self, member: ConsumerGroupMetadata, *, ticks_ms: int) -> None:
        """Note that a member is alive; raises as `check_member`.

        It has to join again after a RebalanceInProgressError, and as a new member after any other, such as an
        IllegalGenerationError.
        """
        self.check_member(member.member_id, member.group_instance_id)
        if member.generation_id != self.generation:
            raise IllegalGenerationError
        self.keep_alive(member.member_id, ticks_ms=ticks_ms)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgressError

    def leave(self, member_id: str, *, ticks_ms: int) -> None:
        """Remove a member that leaves, a static one after its session timeout; raises UnknownMemberIdError."""
        self.check_member(member_id, None)
        member = self.members[member_id]
        if member.joining.group_instance_id is None:
            self._remove([member_id], ticks_ms)
        else:
            self.members[member_id] = replace(member, last_heartbeat_ms=ticks_ms, has_left=True)

    def remove_silent(self, *, ticks_ms: int) -> list[str]:
        """Remove the members that did not poll or come back in time; return their member ids."""
        silent = [
            member_id
            for member_id, member in self.members.items()
            if ticks_ms - member.last_heartbeat_ms >= member.silence_max_ms
        ]
        self._remove(silent, ticks_ms)
        return silent

    def remove_all(self, *, ticks_ms: int) -> None:
        """Remove all members, whose process has ended."""
        self._remove(list(self.members), ticks_ms)

    def request_rebalance(self, *, ticks_ms: int) -> None:
        """Begin a rebalance, because the partitions of a topic have changed; a group without members has none."""
        if self.members:
            self._begin_rebalance(ticks_ms)

    def is_ready(self, *, ticks_ms: int) -> bool:
        """Return whether `complete_rebalance` is due: all members have joined, or the rebalance timeout is over."""
        if self.state is not GroupState.PREPARING_REBALANCE:
            return False
        longest_ms = max((member.joining.rebalance_timeout_ms for member in self.members.values()), default=0)
        has_all = all(member.has_joined for member in self.members.values())
        return has_all or ticks_ms >= self._rebalance_begin_ms + longest_ms

    def complete_rebalance(self, partition_counts: Mapping[str, int], *, now_ms: int) -> None:
        """Begin the next generation and assign partitions; without members the group becomes empty.

        Members that have not joined are removed, except static ones. `partition_counts` has the topics that exist.
        """
        self.members = {
            member_id: member
            for member_id, member in self.members.items()
            if member.has_joined or member.joining.group_instance_id is not None
        }
        self.generation += 1
        self.state_timestamp_ms = now_ms
        if not self.members:
            self.state, self.protocol, self.leader = GroupState.EMPTY, None, None
            return
        self.state = GroupState.STABLE
        self.protocol = self._voted()
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        subscriptions = {member_id: member.subscription for member_id, member in self.members.items()}
        assign = self.members[self.leader].joining.assignors[self.protocol]
        assignment = assign(partition_counts, subscriptions)
        self.members = {
            member_id: replace(
                member, partitions=tuple(assignment[member_id]), generation=self.generation, has_joined=False
            )
            for member_id, member in self.members.items()
        }

    def check_member(self, member_id: str, group_instance_id: str | None) -> None:
        """Refuse an id that is not in the group, or whose place another member has taken (`validateMember`).

        Raises UnknownMemberIdError, FencedInstanceIdError.
        """
        if group_instance_id is not None:
            known = self._static_member_id(group_instance_id)
            if known is None:
                raise UnknownMemberIdError
            if known != member_id:
                raise FencedInstanceIdError
        if member_id not in self.members:
            raise UnknownMemberIdError

    def check_commit(self, member: ConsumerGroupMetadata, *, is_transactional: bool) -> None:
        """Refuse a commit from outside the group's generation (`ClassicGroup.validateOffsetCommit`).

        A commit without a member is allowed for an empty group, and in a transaction for any group. Raises
        UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError.
        """
        if member.generation_id < 0 and self.state is GroupState.EMPTY:
            return
        if member.generation_id >= 0 or member.member_id or member.group_instance_id is not None:
            self.check_member(member.member_id, member.group_instance_id)
            if member.generation_id != self.generation:
                raise IllegalGenerationError
        elif not is_transactional and self.state is not GroupState.EMPTY:
            raise UnknownMemberIdError

    def expiry_base(self) -> Callable[[CommittedOffset], int] | None:
        """Return a function: when an offset's retention begins, ms since 1970 (`offsetExpirationCondition`).

        None while the group's offsets do not expire.
        """
        if self.protocol_type is None or self.state is GroupState.STABLE:
            is_other = self.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
            return None if is_other else lambda offset: offset.commit_timestamp_ms
        if self.state is not GroupState.EMPTY:
            return None
        since = self.state_timestamp_ms
        return lambda offset: offset.commit_timestamp_ms if since == -1 else since

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member subscribes to `topic` (`isSubscribedToTopic`)."""
        return any(topic in member.joining.topics for member in self.members.values())

    def _check_assignors(self, joining: Joining) -> None:
        others = [member.joining for member_id, member in self.members.items() if member_id != joining.member_id]
        if not _common([joining, *others]):
            expected = f"one of {sorted(_common(others))}" if others else None
            raise InconsistentGroupProtocolError(expected=expected, found=tuple(joining.assignors))

    def _replaced(self, joining: Joining) -> Member | None:
        """Remove and return the static member that comes back under another member id; None if there is none."""
        old_id = self._other_id(joining)
        if old_id is None:
            return None
        if self.leader == old_id:
            self.leader = joining.member_id
        return self.members.pop(old_id)

    def _other_id(self, joining: Joining) -> str | None:
        if joining.group_instance_id is None:
            return None
        known = self._static_member_id(joining.group_instance_id)
        return None if known == joining.member_id else known

    def _static_member_id(self, group_instance_id: str) -> str | None:
        ids = (
            member_id
            for member_id, member in self.members.items()
            if member.joining.group_instance_id == group_instance_id
        )
        return next(ids, None)

    def _begin_rebalance(self, ticks_ms: int) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            return
        self.members = {member_id: replace(member, has_joined=False) for member_id, member in self.members.items()}
        self.state = GroupState.PREPARING_REBALANCE
        self._rebalance_begin_ms = ticks_ms

    def _remove(self, member_ids: list[str], ticks_ms: int) -> None:
        for member_id in member_ids:
            del self.members[member_id]
        if member_ids:
            self._begin_rebalance(ticks_ms)

    def _voted(self) -> str:
        """Return the assignor, of those common to all members, that most members prefer; the first on a tie."""
        candidates = _common([member.joining for member in self.members.values()])
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name in member.joining.assignors if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])


def _common(joinings: Iterable[Joining]) -> set[str]:
    return set[str].intersection(*(set(joining.assignors) for joining in joinings))


def _without_ids(joining: Joining) -> Joining:
    return replace(joining, member_id="", client_id="", is_rejoin=False)
