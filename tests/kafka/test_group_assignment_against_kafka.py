"""Assignors and hashes beside those of the Java client."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from logstore.client.consumer.assignors import (
    Assignment,
    Subscription,
    assign_cooperative,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from logstore.client.producer.queues import murmur2
from logstore.topics.partition_for import java_hash, partition_for
from tests.support.oracle import Oracle
from tests.support.sampling import case_count

pytestmark = pytest.mark.kafka

CASES = case_count("LOGSTORE_ORACLE_CASES", sample=150, whole=600)
SEED = 2026
TOPICS = ["a", "b", "ü", "😀", "\uffee"]


def _case(rng: random.Random) -> dict[str, Any]:
    """Members that all read something and own what exists, once: beyond that Kafka's sticky one breaks."""
    common = rng.sample(TOPICS, rng.randrange(1, 5))
    is_homogeneous = rng.random() < 0.5
    members: dict[str, dict[str, Any]] = {}
    for name in rng.sample(["m1", "m2", "m10", "ä", "😀", "\uffee"], rng.randrange(1, 6)):
        topics = common if is_homogeneous else rng.sample(TOPICS, rng.randrange(1, 5))
        instance = f"i-{name}" if rng.random() < 0.3 else None
        members[name] = {"topics": topics, "instance": instance, "owned": [], "generation": rng.choice([-1, 4, 4])}
    counts = {topic: rng.randrange(0, 9) for one in members.values() for topic in one["topics"]}
    for topic, count in counts.items():
        owners = [one for one in members.values() if topic in one["topics"] and one["generation"] == 4]
        for number in range(count):
            if owners and rng.random() < 0.7:
                rng.choice(owners)["owned"].append([topic, number])
    return {"counts": counts, "members": members}


def _names(assignment: Assignment) -> dict[str, list[str]]:
    return {
        member: sorted((f"{topic}-{number}" for topic, number in partitions), key=lambda one: one.encode("utf-16-be"))
        for member, partitions in assignment.items()
    }


@pytest.mark.slow
def test_partitions_are_assigned_as_the_java_client_assigns_them(oracle: Oracle, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    cases = [_case(rng) for _ in range(CASES)]
    answers = oracle.answers("Assignments", questions=cases, cwd=tmp_path)
    for case, theirs in zip(cases, answers, strict=True):
        members = {
            name: Subscription(
                tuple(one["topics"]),
                one["instance"],
                owned=tuple((topic, number) for topic, number in one["owned"]),
                generation=one["generation"],
            )
            for name, one in case["members"].items()
        }
        assert _names(assign_range(case["counts"], members)) == theirs["range"], case
        assert _names(assign_round_robin(case["counts"], members)) == theirs["roundrobin"], case
        _assert_as_even(_names(assign_sticky(case["counts"], members)), theirs["sticky"])
        holding = {name: replace(one, held=one.owned) for name, one in members.items()}
        for assignment in (_names(assign_cooperative(case["counts"], holding)), theirs["cooperative"]):
            _assert_handed_over_in_two_steps(
                assignment, theirs["range"], _names({n: [*m.owned] for n, m in members.items()})
            )


def _assert_handed_over_in_two_steps(
    ours: dict[str, list[str]], everything: dict[str, list[str]], owned: dict[str, list[str]]
) -> None:
    """What is owned is given to its owner or to nobody, what is free to somebody; Java's keeps the same rule."""
    owners = {partition: name for name, partitions in owned.items() for partition in partitions}
    given = {partition: name for name, partitions in ours.items() for partition in partitions}
    assert all(owners.get(partition, name) == name for partition, name in given.items()), (ours, owned)
    missing = set(chain.from_iterable(everything.values())) - given.keys()
    assert missing <= owners.keys(), (ours, owned)


def _assert_as_even(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> None:
    """Ours may keep other partitions in place, but shares out the same ones at least as evenly."""
    assert sorted(chain.from_iterable(ours.values())) == sorted(chain.from_iterable(theirs.values()))
    unevenness = [sum(len(partitions) ** 2 for partitions in one.values()) for one in (ours, theirs)]
    assert unevenness[0] <= unevenness[1], (ours, theirs)


def test_texts_and_keys_hash_as_in_java(oracle: Oracle, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    letters = "abc-019.üß€测试😀\U0010ffff\u0000\x7f"
    texts = ["", "polygenelubricants", *("".join(rng.choices(letters, k=rng.randrange(20))) for _ in range(CASES))]
    answers = oracle.answers("Assignments", "hash", questions=texts, cwd=tmp_path)
    for text, line in zip(texts, answers, strict=True):
        hashes = [java_hash(text), partition_for(text, 50), murmur2(text.encode())]
        assert line.split(" ") == list(map(str, hashes)), text
