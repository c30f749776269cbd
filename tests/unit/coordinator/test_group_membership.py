"""Generations of a group: who is in, who may commit, what is logged."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, GroupMembership, GroupState, Joining
from logstore.coordinator.groups.records import group_from_record, group_record
from logstore.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    LogstoreError,
    RebalanceInProgressError,
    Recovery,
    UnknownMemberIdError,
)
from logstore.topics.consumer_offsets import CommittedOffset, decode_key, decode_value, encode_key, encode_value

COUNTS = {"t": 4}
OFFSET = CommittedOffset(5, -1, "", 1000, -1, None)


def member(member_id: str, instance: str | None = None, topics: tuple[str, ...] = ("t",)) -> Joining:
    return Joining(
        member_id, topics, ASSIGNORS, group_instance_id=instance, session_timeout_ms=100, rebalance_timeout_ms=300
    )


def group_of(*members: Joining) -> GroupMembership:
    group = GroupMembership("g")
    for one in members:
        group.join(one, ticks_ms=0)
    group.complete_rebalance(COUNTS, now_ms=0)
    return group


def base(group: GroupMembership) -> int | None:
    base_timestamp_ms = group.expiry_base()
    return None if base_timestamp_ms is None else base_timestamp_ms(OFFSET)


def test_joining_again_without_a_change_changes_nothing() -> None:
    group = group_of(member("m1"), member("m2"))
    group.join(member("m1"), ticks_ms=5)
    assert group.state is GroupState.STABLE
    group.join(member("m2", topics=("t", "u")), ticks_ms=6)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert not group.is_ready(ticks_ms=6)  # m1 has not heard of it


def test_the_silent_and_the_leaving_are_removed() -> None:
    group = group_of(member("m1"), member("m2"), member("m3"))
    group.heartbeat(ConsumerGroupMetadata("g", 1, "m1"), ticks_ms=60)
    assert group.remove_silent(ticks_ms=300) == ["m2", "m3"]
    group.leave("m1", ticks_ms=301)
    assert group.is_ready(ticks_ms=301)
    group.complete_rebalance(COUNTS, now_ms=302)
    assert (group.state, group.generation, group.protocol, group.leader) == (GroupState.EMPTY, 2, None, None)
    assert group.state_timestamp_ms == 302
    with pytest.raises(UnknownMemberIdError):
        group.leave("m1", ticks_ms=303)


def test_a_static_member_comes_back_to_its_place_and_shuts_the_old_one_out() -> None:
    group = group_of(member("m1", "i1"), member("m2"))
    group.join(member("m9", "i1"), ticks_ms=5)
    assert (group.state, group.generation, group.leader) == (GroupState.STABLE, 1, "m9")
    assert group.members["m9"].partitions == (("t", 0), ("t", 1))
    with pytest.raises(FencedInstanceIdError):
        group.heartbeat(ConsumerGroupMetadata("g", 1, "m1", "i1"), ticks_ms=6)
    with pytest.raises(FencedInstanceIdError):
        group.check_commit(ConsumerGroupMetadata("g", 1, "m1", "i1"), is_transactional=True)
    with pytest.raises(UnknownMemberIdError):
        group.check_commit(ConsumerGroupMetadata("g", 1, "m9", "i2"), is_transactional=True)


@pytest.mark.parametrize(
    ("preferences", "expected"),
    [
        ([("range", "sticky"), ("sticky", "range"), ("sticky", "range")], "sticky"),
        ([("range", "sticky"), ("sticky", "range"), ("range", "sticky")], "range"),
        ([("range", "sticky"), ("sticky", "range")], "range"),  # the first on a tie
    ],
)
def test_members_vote_for_the_assignor(preferences: list[tuple[str, ...]], expected: str) -> None:
    group = GroupMembership("g")
    for number, assignors in enumerate(preferences):
        group.join(Joining(f"m{number}", ("t",), assignors={name: ASSIGNORS[name] for name in assignors}), ticks_ms=0)
    group.complete_rebalance(COUNTS, now_ms=0)
    assert group.protocol == expected


def test_an_assignor_that_not_all_members_have_is_not_taken() -> None:
    group = GroupMembership("g")
    for number, assignors in enumerate([("range", "sticky"), ("sticky", "range"), ("sticky",)]):
        group.join(Joining(f"m{number}", ("t",), assignors={name: ASSIGNORS[name] for name in assignors}), ticks_ms=0)
    group.complete_rebalance(COUNTS, now_ms=0)
    assert group.protocol == "sticky"
    with pytest.raises(InconsistentGroupProtocolError):
        group.join(Joining("m9", ("t",), assignors={"range": ASSIGNORS["range"]}), ticks_ms=1)
    with pytest.raises(InconsistentGroupProtocolError):
        GroupMembership("h").join(Joining("m1", ("t",), assignors={}), ticks_ms=1)
    with pytest.raises(InvalidGroupIdError):
        GroupMembership("").join(member("m1"), ticks_ms=1)


def test_commits_without_a_member() -> None:
    empty, full = GroupMembership("e"), group_of(member("m1"))
    empty.check_commit(ConsumerGroupMetadata("g"), is_transactional=False)
    empty.check_commit(ConsumerGroupMetadata("g", -1, "of a consumer without a group"), is_transactional=False)
    full.check_commit(ConsumerGroupMetadata("g"), is_transactional=True)
    with pytest.raises(UnknownMemberIdError) as unknown:
        full.check_commit(ConsumerGroupMetadata("g"), is_transactional=False)
    assert unknown.value.recovery is Recovery.ABORT
    with pytest.raises(UnknownMemberIdError):
        empty.check_commit(ConsumerGroupMetadata("g", 0, "m1"), is_transactional=True)


def test_a_group_comes_back_from_its_record() -> None:
    group = group_of(member("m1", "i1"), member("m2"))
    key, value = group_record(group)
    assert decode_key(encode_key(key)) == key
    assert decode_value(key, encode_value(value)) == value
    again = group_from_record(key, value, ticks_ms=50)
    assert (again.generation, again.state, again.leader) == (1, GroupState.STABLE, "m1")
    assert again.members["m2"].partitions == group.members["m2"].partitions
    again.heartbeat(ConsumerGroupMetadata("g", 1, "m1", "i1"), ticks_ms=60)
    assert group_record(again) == (key, value)
    again.remove_all(ticks_ms=61)
    again.complete_rebalance(COUNTS, now_ms=61)
    key, value = group_record(again)
    assert (value.generation, value.protocol, value.members, value.protocol_type) == (2, None, (), "consumer")
    assert group_from_record(key, value, ticks_ms=0).state is GroupState.EMPTY


def test_when_offsets_begin_to_expire() -> None:
    group = GroupMembership("g")
    group.request_rebalance(ticks_ms=1)  # which nobody joins
    assert (group.state, group.state_timestamp_ms) == (GroupState.EMPTY, -1)
    assert base(group) == 1000  # a simple group: since the commit
    group.join(member("m1"), ticks_ms=5)
    assert base(group) is None
    group.complete_rebalance(COUNTS, now_ms=6)
    assert base(group) == 1000
    assert group.is_subscribed("t")
    assert not group.is_subscribed("u")
    group.remove_all(ticks_ms=7)
    group.complete_rebalance(COUNTS, now_ms=8)
    assert base(group) == 8  # an empty group: since it is empty
    group.state_timestamp_ms = -1
    assert base(group) == 1000


def test_errors_say_what_to_do() -> None:
    assert IllegalGenerationError().recovery is Recovery.ABORT
    assert RebalanceInProgressError().recovery is Recovery.RETRY
    assert LogstoreError("x").recovery is None
    assert str(IllegalGenerationError()) == "Specified group generation id is not valid."


@pytest.mark.parametrize(("generation_id", "member_id", "error"), [
    (1, "m1", None), (0, "m1", IllegalGenerationError), (-1, "m1", IllegalGenerationError),
    (1, "", UnknownMemberIdError), (1, "m9", UnknownMemberIdError), (-1, "m9", UnknownMemberIdError),
])  # fmt: skip
@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_commit_names_its_member_and_its_generation_or_neither(
    generation_id: int, member_id: str, error: type[LogstoreError] | None, is_transactional: bool
) -> None:
    metadata = ConsumerGroupMetadata("g", generation_id, member_id)
    with pytest.raises(error) if error else nullcontext():
        group_of(member("m1")).check_commit(metadata, is_transactional=is_transactional)
