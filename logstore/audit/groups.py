"""Lag of groups: committed offsets beside what a consumer can still read (KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .facts.coordinators import Commit, GroupLog, Target
from .facts.offsets import OffsetRanges, ReadableOffsets, visible_count

_NONE = Commit(offset=-1, producer_id=None, place=(-1, -1), commit_timestamp=-1)


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a directory, and the partitions as consumers can read them.

    Attributes:
        commits: those of each group and partition, in the order in which they took effect.
        pending: those of open transactions, for whose end consumers of read_committed wait.
        unknown: groups and partitions that the cluster does not have.
        ranges: those of each partition in the directory.
        root: the path of the directory.
    """

    commits: GroupLog
    pending: dict[Target, Commit]
    unknown: frozenset[Target]
    ranges: dict[tuple[str, int], OffsetRanges]
    root: str

    def view(self, topic: str, partition: int) -> ReadableOffsets | None:
        """Return a partition as consumers can read it; None if it is not in the directory."""
        found = self.ranges.get((topic, partition))
        return None if found is None else found.view()


class GroupLag(NamedTuple):
    """The lag of a group in one partition.

    Attributes:
        lag: offsets up to the log's end, as other tools count; negative beyond it; None if the partition is not in the
            directory, or the committed offset is -1, which some clients commit for none.
        record_lag: records that a read_committed consumer still gets.
        is_exact: whether `record_lag` is exact, or a lower bound.
        pending: the commit of an open transaction.
    """

    group_id: str
    topic: str
    partition: int
    commit: Commit
    lag: int | None
    record_lag: int | None
    is_exact: bool
    pending: Commit | None


def group_lags(groups: Groups) -> list[GroupLag]:
    """Return the lags of all groups, by group, topic and partition."""
    found = []
    for target in sorted(groups.commits.keys() | groups.pending.keys()):
        view, lag, count, is_exact = groups.view(*target[1:]), None, None, True
        commit = groups.commits.get(target, [_NONE])[-1]
        if view is not None and commit.offset >= 0:
            lag = view.end - commit.offset
            count, is_exact = visible_count(view.ranges, max(commit.offset, view.start), view.stable_end)
        found.append(GroupLag(*target, commit, lag, count, is_exact, groups.pending.get(target)))
    return found
