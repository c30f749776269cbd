"""One pass over a partition for tables that are made of its batches, with errors for what is no batch."""

from __future__ import annotations

from collections.abc import Callable

from logstore.audit.cluster import Cluster
from logstore.audit.evidence import BadBytes, Evidence, Follower
from logstore.audit.log_pass import follow
from logstore.audit.partition import open_partition
from logstore.errors import CorruptRecordError, LogstoreError

from .directories import ListedPartition


def follow_partition(
    partition: ListedPartition, cluster: Cluster, make: Callable[[Evidence], Follower]
) -> list[LogstoreError]:
    """Let a follower read the whole log of a partition; return errors of damage, behind which it goes on.

    A cut batch, or zeros, at the end of the last segment are being written, and no damage.
    """
    opened = open_partition(partition.files.path, cluster.checkpoints)
    evidence, damage = Evidence(opened, cluster), list[LogstoreError]()

    def keep(facts: object) -> None:
        if isinstance(facts, BadBytes) and not _is_being_written(facts):
            damage.append(
                CorruptRecordError(
                    "bytes that are no batch",
                    path=facts.path,
                    position=facts.piece.start,
                    offset=facts.piece.offset,
                    expected=facts.piece.expected,
                    found=facts.piece.found,
                )
            )

    follow(evidence, [make(evidence)], keep)
    return damage


def _is_being_written(bad: BadBytes) -> bool:
    last = bad.partition.last_segment
    return last is not None and bad.path == last.log and bad.piece.is_tail and not bad.piece.is_batch
