"""One pass over a partition for tables that are made of its batches, with errors for what is no batch."""

from __future__ import annotations

from collections.abc import Callable

from logstore.audit.cluster import Cluster
from logstore.audit.evidence import Evidence, Follower
from logstore.audit.log_pass import follow
from logstore.audit.partition import open_partition
from logstore.errors import CorruptRecordError, LogstoreError
from logstore.view.walk import Damage

from .listed_partition import ListedPartition


def follow_partition(
    partition: ListedPartition, cluster: Cluster, make: Callable[[Evidence], Follower]
) -> list[LogstoreError]:
    """Let a follower read the whole log of a partition; return errors of damage, behind which it goes on.

    A cut batch, or zeros, at the end of the last segment are being written, and no damage.
    """
    evidence = Evidence(open_partition(partition.files.path, cluster.checkpoints), cluster)
    damage = _DamageErrors(evidence)
    follow(evidence, [make(evidence), damage])
    return damage.errors


class _DamageErrors(Follower):
    """Keeps an error of each damage."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._tail: list[LogstoreError] = []  # what may be a batch that is being written
        self.errors: list[LogstoreError] = []

    def skip(self, piece: Damage) -> None:
        segment = self._evidence.segment
        assert segment is not None
        if segment is self._evidence.partition.last_segment and not piece.may_hide_batches:
            return
        error = CorruptRecordError(
            "bytes that are no batch",
            path=segment.log,
            position=piece.start,
            offset=piece.offset,
            expected=piece.expected,
            found=piece.found,
        )
        (self._tail if piece.is_tail else self.errors).append(error)

    def end(self) -> None:
        self.errors += [] if self._evidence.is_growing else self._tail
        self._tail = []
