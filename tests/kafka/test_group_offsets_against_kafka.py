"""Committed and undecided offsets beside the real OffsetMetadataManager: the same records, the same offsets."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logstore.coordinator.groups.membership import GroupMembership
from logstore.coordinator.groups.offsets import GroupOffsets
from logstore.errors import UnstableOffsetCommitError
from logstore.topics.consumer_offsets import CommittedOffset, OffsetKey
from tests.support.oracle import Oracle
from tests.support.sampling import case_count

pytestmark = pytest.mark.kafka

STORIES = case_count("LOGSTORE_ORACLE_CASES", sample=50, whole=200)
STEPS = 80
SEED = 447
RETENTION_MS = 1000
KINDS = ["commit", "commit", "tombstone", "marker", "marker", "fetch", "fetch", "expire", "delete"]

Step = dict[str, Any]


def _story(rng: random.Random) -> list[Step]:
    steps: list[Step] = []
    for at in range(STEPS):
        step: Step = {
            "do": rng.choice(
                ["commit", "commit", "tombstone", "marker", "marker", "fetch", "fetch", "expire", "delete"]
            ),
            "at": at,
            "group": rng.choice("gh"),
            "topic": rng.choice("tu"),
            "partition": rng.randrange(2),
        }
        if step["do"] == "commit":
            step |= {"offset": rng.randrange(99), "time": rng.randrange(500)}
            step["expire"] = rng.choice([-1, -1, rng.randrange(1500)])
            step |= rng.choice([{}, {"pid": 1}, {"pid": 2}])
        elif step["do"] == "marker":
            step |= {"pid": rng.choice([1, 2, 3]), "commit": rng.random() < 0.6}
        elif step["do"] == "fetch":
            step["stable"] = rng.random() < 0.5
        elif step["do"] == "expire":
            step["now"] = rng.choice([900, 1200, 1600])
        steps.append(step)
    return steps


def _told(story: list[Step]) -> list[str]:
    offsets = GroupOffsets()
    results: list[str] = []
    for step in story:
        key = OffsetKey(step["group"], step["topic"], step["partition"])
        if step["do"] == "commit":
            value = CommittedOffset(step["offset"], -1, "", step["time"], step["expire"], None)
            offsets.replay(key, value, record_offset=step["at"], producer_id=step.get("pid", -1))
        elif step["do"] == "tombstone":
            offsets.replay(key, None, record_offset=step["at"])
        elif step["do"] == "marker":
            offsets.replay_marker(step["pid"], is_commit=step["commit"])
        else:
            ask: dict[str, Callable[[GroupOffsets, Step], str]] = {
                "fetch": _fetched,
                "expire": _expired,
                "delete": lambda offsets, step: _names(offsets.tombstones(step["group"])),
            }
            results.append(ask[step["do"]](offsets, step))
    return results


def _fetched(offsets: GroupOffsets, step: Step) -> str:
    try:
        value = offsets.fetch(step["group"], (step["topic"], step["partition"]), require_stable=step["stable"])
    except UnstableOffsetCommitError as error:
        return f"{error.kafka_name} -1"
    return f"NONE {-1 if value is None else value.offset}"


def _expired(offsets: GroupOffsets, step: Step) -> str:
    group = GroupMembership(step["group"])
    return _names(
        offsets.expired(
            step["group"],
            base_timestamp_ms=group.expiry_base(),
            is_subscribed=group.is_subscribed,
            retention_ms=RETENTION_MS,
            now_ms=step["now"],
        )
    )


def _names(keys: list[OffsetKey]) -> str:
    return " ".join(sorted(f"{key.group_id}/{key.topic}-{key.partition}" for key in keys))


def test_offsets_are_kept_as_the_real_coordinator_keeps_them(oracle: Oracle, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    stories = [_story(rng) for _ in range(STORIES)]
    main_class = "org.apache.kafka.coordinator.group.GroupOffsetStories"
    answers = oracle.answers(main_class, questions=stories, cwd=tmp_path)
    for story, answer in zip(stories, answers, strict=True):
        assert _told(story) == answer, story
    said = {result.split(" ")[0] for answer in answers for result in answer}
    assert said >= {"NONE", "UNSTABLE_OFFSET_COMMIT", "g/t-0"}
