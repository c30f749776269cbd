"""How far groups are behind, and rules about their chains of read-process-write transactions (KIP-447)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from ..topics.consumer_offsets import TOPIC
from . import rules
from .finding import Finding, Where
from .group_log import Commit, GroupLog, Target
from .offset_ranges import OffsetRange, visible_count


class ReadableOffsets(NamedTuple):
    """A partition as a consumer can read it: offsets from `start` to `stable_end`, or to `end`; both exclusive.

    Attributes:
        is_behind: a replica that is not in sync, or may not be; its leader may have more.
    """

    start: int
    stable_end: int
    end: int
    ranges: tuple[OffsetRange, ...]
    is_behind: bool = False


class GroupLag(NamedTuple):
    """How far a group is behind in one partition.

    Attributes:
        lag: offsets up to the log's end, as other tools count it, below 0 beyond it; None if the partition is not in
            the directory.
        record_lag: records that a read_committed consumer still gets.
        is_exact: whether `record_lag` is the number, or the least it can be.
    """

    group_id: str
    topic: str
    partition: int
    commit: Commit
    lag: int | None
    record_lag: int | None
    is_exact: bool


Views = Mapping[tuple[str, int], ReadableOffsets]


def group_lags(log: GroupLog, views: Views) -> list[GroupLag]:
    """Of every group and partition, by their names."""
    found = []
    for (group_id, topic, partition), commits in sorted(log.commits.items()):
        if not commits:
            continue
        view = views.get((topic, partition))
        if view is None:
            found.append(GroupLag(group_id, topic, partition, commits[-1], None, None, True))
            continue
        start = max(commits[-1].offset, view.start)
        count, is_exact = visible_count(view.ranges, start, view.stable_end)
        lag = view.end - commits[-1].offset
        found.append(GroupLag(group_id, topic, partition, commits[-1], lag, count, is_exact))
    return found


def group_findings(log: GroupLog, views: Views) -> list[Finding]:
    """Chains of read-process-write that are broken, or go where there is no input."""
    findings = []
    for target, commits in sorted(log.commits.items()):
        view = views.get((target[1], target[2]))
        if view is not None and not view.is_behind:
            findings += _ahead_findings(target, commits, view.end)
        findings += _chain_findings(target, commits)
    return findings


def _ahead_findings(target: Target, commits: list[Commit], end: int) -> list[Finding]:
    """Commits beyond the end of the log: the last one in a transaction, and the last one if it is in none."""
    last = next((commit for commit in reversed(commits) if commit.producer_id is not None), None)
    asked = [] if last is None else [(rules.CHAIN_AHEAD, last)]
    if commits and commits[-1].producer_id is None:
        asked.append((rules.GROUP_AHEAD, commits[-1]))
    expected = f"{_named(target)}: an offset up to {end}, where the log ends"
    return [
        rule.finding(_place(commit), expected=expected, found=commit.offset)
        for rule, commit in asked
        if commit.offset > end
    ]


def _chain_findings(target: Target, commits: list[Commit]) -> list[Finding]:
    findings = []
    for before, commit in pairwise(commits):
        if commit.producer_id is not None and before.producer_id is not None and commit.offset < before.offset:
            findings.append(
                rules.CHAIN_BACK.finding(
                    _place(commit),
                    expected=f"{_named(target)}: an offset from {before.offset} on, by producer {commit.producer_id}",
                    found=commit.offset,
                )
            )
        if commit.producer_id is None and before.producer_id is not None:
            findings.append(
                rules.CHAIN_MIXED.finding(
                    _place(commit),
                    expected=f"{_named(target)}: a commit within a transaction, as of producer {before.producer_id}",
                    found=f"offset {commit.offset} outside of one",
                )
            )
    return findings


def _named(target: Target) -> str:
    return f"group {target[0]}, {target[1]}-{target[2]}"


def _place(commit: Commit) -> Where:
    return Where(f"{TOPIC}-{commit.place[0]}", TOPIC, commit.place[0], offset=commit.place[1])
