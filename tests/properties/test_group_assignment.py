"""Assignments share out everything once, evenly, and the sticky one leaves what it can where it is."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.client.consumer.assignors import (
    Assignment,
    Assignor,
    Subscription,
    assign_cooperative,
    assign_range,
    assign_round_robin,
    assign_sticky,
)

TOPICS = ["a", "b", "c"]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7), max_size=3)
PARTITIONS = st.tuples(st.sampled_from(TOPICS), st.integers(-1, 8))
MEMBER_IDS = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
#: claims of anything by anybody: of partitions that are gone, of others' partitions, of old generations
SUBSCRIPTIONS = st.builds(
    Subscription,
    topics=st.lists(st.sampled_from(TOPICS), unique=True).map(tuple),
    owned=st.lists(PARTITIONS, max_size=8).map(tuple),
    generation=st.integers(-1, 3),
)
GROUPS = st.dictionaries(MEMBER_IDS, SUBSCRIPTIONS, max_size=5)
ASSIGNORS = [assign_range, assign_round_robin, assign_sticky]


def readers(members: dict[str, Subscription], topic: str) -> list[str]:
    return [member_id for member_id, member in members.items() if topic in member.topics]


def subscribe(counts: dict[str, int], assignment: Assignment) -> dict[str, Subscription]:
    """The members of an assignment in the next generation, all reading everything."""
    return {
        member_id: Subscription(tuple(counts), owned=tuple(partitions), generation=1)
        for member_id, partitions in assignment.items()
    }


@pytest.mark.parametrize("assign", ASSIGNORS)
@given(counts=COUNTS, members=GROUPS)
def test_every_partition_has_one_reader_who_wants_it(
    assign: Assignor, counts: dict[str, int], members: dict[str, Subscription]
) -> None:
    assignment = assign(counts, members)
    assert assignment.keys() == members.keys()
    assert all(topic in members[one].topics for one, partitions in assignment.items() for topic, _ in partitions)
    expected = [
        (topic, number) for topic, count in counts.items() if readers(members, topic) for number in range(count)
    ]
    assert sorted(chain.from_iterable(assignment.values())) == sorted(expected)


@given(counts=COUNTS, members=GROUPS)
def test_nobody_could_give_a_partition_to_one_who_has_two_fewer(
    counts: dict[str, int], members: dict[str, Subscription]
) -> None:
    assignment = assign_sticky(counts, members)
    for giver, partitions in assignment.items():
        for topic, _ in partitions:
            takers = [taker for taker in readers(members, topic) if taker != giver]
            assert all(len(assignment[taker]) >= len(partitions) - 1 for taker in takers), (giver, topic)


@given(counts=COUNTS, members=GROUPS)
def test_an_even_assignment_stays_as_it_is(counts: dict[str, int], members: dict[str, Subscription]) -> None:
    assignment = assign_sticky(counts, members)
    again = {
        one: Subscription(member.topics, owned=tuple(assignment[one]), generation=4) for one, member in members.items()
    }
    assert assign_sticky(counts, again) == assignment


@given(
    counts=COUNTS,
    before=st.sets(MEMBER_IDS, min_size=1),
    after=st.sets(MEMBER_IDS, min_size=1),
)
def test_member_that_stays_keeps_a_fair_share(counts: dict[str, int], before: set[str], after: set[str]) -> None:
    everybody = {member_id: Subscription(tuple(counts)) for member_id in sorted(before)}
    old = assign_sticky(counts, everybody)
    members = subscribe(counts, {member_id: old.get(member_id, []) for member_id in sorted(after)})
    new = assign_sticky(counts, members)
    share = sum(counts.values()) // len(after)
    for member_id in before & after:
        kept = set(old[member_id]) & set(new[member_id])
        assert len(kept) >= min(len(old[member_id]), share)


@given(counts=COUNTS, before=st.sets(MEMBER_IDS, min_size=1), after=st.sets(MEMBER_IDS, min_size=1))
def test_two_cooperative_rebalances_do_what_a_sticky_one_does(
    counts: dict[str, int], before: set[str], after: set[str]
) -> None:
    old = assign_sticky(counts, {member_id: Subscription(tuple(counts)) for member_id in sorted(before)})
    held = {member_id: tuple(old.get(member_id, ())) for member_id in sorted(after)}
    members = {
        member_id: Subscription(tuple(counts), owned=one, generation=1, held=one) for member_id, one in held.items()
    }
    first = assign_cooperative(counts, members)
    assert all(not set(first[one]) & set(held[other]) for one in after for other in after if one != other)
    members = {
        member_id: Subscription(
            tuple(counts), owned=tuple(one), generation=2, held=tuple(set(one) & set(held[member_id]))
        )
        for member_id, one in first.items()
    }
    second = assign_cooperative(counts, members)
    assert sorted(chain.from_iterable(second.values())) == sorted(
        (topic, number) for topic, count in counts.items() for number in range(count)
    )
    assert all(set(first[member_id]) <= set(second[member_id]) for member_id in after)


@given(generations=st.lists(st.integers(0, 3), min_size=2, max_size=4))
def test_of_all_claims_the_last_generation_counts(generations: list[int]) -> None:
    members = {
        f"m{number}": Subscription(("t",), owned=(("t", 0),), generation=generation)
        for number, generation in enumerate(generations)
    }
    last = [member_id for member_id, member in members.items() if member.generation == max(generations)]
    [reader] = [member_id for member_id, partitions in assign_sticky({"t": 1}, members).items() if partitions]
    assert len(last) > 1 or reader == last[0]


def test_partitions_that_are_gone_have_no_reader() -> None:
    owned = ("gone", 0), ("t", 0), ("t", 1)
    members = {"m1": Subscription(("t", "gone"), owned=owned, generation=1)}
    assert assign_sticky({"t": 1}, members) == {"m1": [("t", 0)]}
    members = {"m1": Subscription(("t", "gone"), owned=(("gone", 0),), generation=1), "m2": Subscription(("t",))}
    assert assign_sticky({"t": 1}, members) == {"m1": [("t", 0)], "m2": []}


def test_static_members_come_first() -> None:
    members = {"m1": Subscription(("t",)), "m9": Subscription(("t",), group_instance_id="z")}
    assert assign_range({"t": 3}, members) == {"m1": [("t", 2)], "m9": [("t", 0), ("t", 1)]}
