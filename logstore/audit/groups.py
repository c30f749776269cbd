"""How far groups are behind: committed offsets beside what a consumer can still read (KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .facts.coordinators import Commit, GroupLog, Target
from .facts.offsets import OffsetRanges, ReadableOffsets, visible_count
from .facts.transactions import PartitionTransactions


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a directory, and the partitions as consumers can read them.

    What can be read takes more memory than what it is made of, so it is made where it is asked for.

    Attributes:
        commits: of each group and partition, in the order in which they took effect.
        unknown: groups with partitions that the cluster does not have.
        readable: what each partition's view is made of.
    """

    commits: GroupLog
    unknown: frozenset[Target]
    readable: dict[tuple[str, int], tuple[OffsetRanges, PartitionTransactions]]
    _views: dict[tuple[str, int], ReadableOffsets] = field(default_factory=dict)

    def view(self, topic: str, partition: int) -> ReadableOffsets | None:
        """Return a partition as consumers can read it; None if it is not in the directory."""
        key = topic, partition
        if key not in self._views and key in self.readable:
            ranges, transactions = self.readable[key]
            self._views[key] = ranges.view(transactions)
        return self._views.get(key)


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


def group_lags(groups: Groups) -> list[GroupLag]:
    """Of every group and partition, by their names."""
    found = []
    for (group_id, topic, partition), commits in sorted(groups.commits.items()):
        view, lag, count, is_exact = groups.view(topic, partition), None, None, True
        if view is not None:
            lag = view.end - commits[-1].offset
            count, is_exact = visible_count(view.ranges, max(commits[-1].offset, view.start), view.stable_end)
        found.append(GroupLag(group_id, topic, partition, commits[-1], lag, count, is_exact))
    return found
