"""What `__consumer_offsets` of a data directory knows: committed offsets, and in which order they came (KIP-447).

Offsets of a transaction count once its marker is COMMIT; until then they are pending (`GroupCoordinator`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import LogstoreError, SchemaError
from ..layout.batch import NO_PRODUCER_ID
from ..model import TopicPartition
from ..topics.consumer_offsets import TOPIC
from ..view.group_offsets import ReplayedCommit, ReplayedOffsets
from . import rules
from .finding import Finding
from .partition import Partition, Report
from .topic_records import topic_records


class Commit(NamedTuple):
    """A committed offset of a group in a partition of a topic.

    Attributes:
        offset: the next one to read.
        producer_id: of the transaction it came in; None if it came in none.
        place: partition of `__consumer_offsets` and offset of the record in it.
        commit_timestamp: ms.
    """

    offset: int
    producer_id: int | None
    place: tuple[int, int]
    commit_timestamp: int


Target = tuple[str, str, int]  # group, topic, partition


@dataclass(slots=True)
class GroupLog:
    """All commits that are there.

    Attributes:
        commits: of each group and partition, in the order in which they took effect; a deleted offset has none.
    """

    commits: dict[Target, list[Commit]] = field(default_factory=dict)


def read_group_log(partitions: Iterable[Partition]) -> tuple[GroupLog, list[Finding]]:
    """Read `__consumer_offsets` among `partitions`; a finding for each record that does not parse."""
    log = GroupLog()
    findings: list[Finding] = []
    for partition in partitions:
        if partition.files.topic != TOPIC:
            continue
        report = Report(TOPIC, partition.files.partition)
        history = _GroupHistory(partition.files.partition, log.commits)
        for item in topic_records(partition, report):
            try:
                history.replay_item(item)
            except SchemaError as error:
                report.add_error(rules.INTERNAL_RECORD, partition.files.path, error, expected="a group's state")
            except LogstoreError:
                continue  # a marker, of which `verify` tells
        findings += report.findings
    return log, findings


class _GroupHistory(ReplayedOffsets):
    """Keeps what was committed before, too."""

    def __init__(self, number: int, commits: dict[Target, list[Commit]]) -> None:
        super().__init__()
        self._number, self._commits = number, commits

    def put(self, group_id: str, partition: TopicPartition, commit: ReplayedCommit) -> None:
        super().put(group_id, partition, commit)
        producer_id = None if commit.producer_id == NO_PRODUCER_ID else commit.producer_id
        place = self._number, commit.record_offset
        made = Commit(commit.value.offset, producer_id, place, commit.value.commit_timestamp_ms)
        self._commits.setdefault((group_id, *partition), []).append(made)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        super().remove(group_id, partition)
        self._commits.pop((group_id, *partition), None)
