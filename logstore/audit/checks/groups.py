"""Rules about committed offsets of groups, and their chains of read-process-write transactions (KIP-447)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ...disk.names import child
from ...layout.file_names import directory_name
from ...topics.consumer_offsets import TOPIC
from ..facts.coordinators import Commit, Target
from ..finding import Broken, Place, Silence, Where, rule
from ..groups import Groups
from .batches import ERROR, UNSETTLED, WARNING

BEHIND = Silence.BEHIND


@rule(
    WARNING,
    "it starts anew by auto.offset.reset: was the log truncated, or its topic made again? set the group's offset",
    unless=(BEHIND, UNSETTLED),
)
def group_ahead(groups: Groups) -> Iterator[Place]:
    """A group has committed an offset beyond the end of the log."""
    return _ahead(groups, is_chain=False)


@rule(
    WARNING,
    "it starts anew by auto.offset.reset: retention or DeleteRecords took what it had not read",
    unless=(BEHIND,),
)
def group_behind(groups: Groups) -> Iterator[Place]:
    """A group has committed an offset below the start of the log."""
    for target, commits in sorted(groups.commits.items()):
        view, offset = groups.view(*target[1:]), commits[-1].offset
        if view is not None and offset < view.oldest <= view.end and offset != -1:  # which some clients commit for none
            expected = f"{_named(target)}: an offset from {view.oldest} on, where the log starts"
            yield _place(groups, commits[-1]), expected, offset, BEHIND if view.is_behind else None


@rule(WARNING, "was the topic deleted? `kafka-consumer-groups.sh --delete-offsets` forgets it")
def group_unknown(groups: Groups) -> Iterator[Place]:
    """A group has committed an offset of a partition that the cluster does not have."""
    for target in sorted(groups.unknown):
        expected = f"{_named(target)}: a partition of the cluster"
        yield _place(groups, groups.commits[target][-1]), expected, "none of this name"


@rule(
    ERROR,
    "the input has lost records behind what was processed: compare with the other replicas, `logstore diff`",
    unless=(BEHIND, UNSETTLED),
)
def chain_ahead(groups: Groups) -> Iterator[Place]:
    """A committed read-process-write transaction has read further than its input goes."""
    return _ahead(groups, is_chain=True)


def _ahead(groups: Groups, *, is_chain: bool) -> Iterator[Place]:
    """Judge each group's last commit if it is of no transaction, or with `is_chain` its last one in a transaction."""
    for target, commits in sorted(groups.commits.items()):
        asked = [commit for commit in commits if commit.producer_id is not None] if is_chain else commits
        view = groups.view(*target[1:])
        if view is None or not asked:
            continue
        commit = asked[-1]
        if commit.offset > view.end and (commit.producer_id is not None) == is_chain:
            silence = UNSETTLED if commit.commit_timestamp > view.settled_ms else None
            expected = f"{_named(target)}: an offset up to {view.end}, where the log ends"
            yield _place(groups, commit), expected, commit.offset, BEHIND if view.is_behind else silence


@rule(
    ERROR, "input was processed twice: was the group reset, or did two instances without fencing work on one partition?"
)
def chain_back(groups: Groups) -> Iterator[Place]:
    """A committed read-process-write transaction goes back behind an earlier one's input."""
    for target, commits in sorted(groups.commits.items()):
        for before, commit in pairwise(commits):
            if None not in (commit.producer_id, before.producer_id) and commit.offset < before.offset:
                expected = f"{_named(target)}: an offset from {before.offset} on, by producer {commit.producer_id}"
                yield _place(groups, commit), expected, commit.offset


@rule(WARNING, "exactly once needs all commits within: enable.auto.commit=false, no commitSync")
def chain_mixed(groups: Groups) -> Iterator[Place]:
    """A group commits offsets of one partition within transactions and outside of them.

    A commit that goes back is an operator's reset of the group.
    """
    for target, commits in sorted(groups.commits.items()):
        for before, commit in pairwise(commits):
            is_further = commit.offset > before.offset
            if commit.producer_id is None and before.producer_id is not None and is_further:
                expected = f"{_named(target)}: a commit within a transaction, as of producer {before.producer_id}"
                yield _place(groups, commit), expected, f"offset {commit.offset} outside of one"


def _named(target: Target) -> str:
    return f"group {target[0]}, {target[1]}-{target[2]}"


def _place(groups: Groups, commit: Commit) -> Where:
    partition, offset = commit.place
    return Where(child(groups.root, directory_name(TOPIC, partition)), TOPIC, partition, offset=offset)


def group_offsets(groups: Groups) -> Iterator[Broken]:
    """Yield what is wrong with committed offsets."""
    for one in (group_ahead, group_behind, group_unknown, chain_ahead, chain_back, chain_mixed):
        yield from one(groups)
