"""What `__consumer_offsets` of a data directory knows: committed offsets, and in which order they came (KIP-447).

Offsets of a transaction count once its marker is COMMIT; until then they are pending (`GroupCoordinator`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import LogstoreError, SchemaError
from ..layout.batch import NO_PRODUCER_ID
from ..topics.consumer_offsets import TOPIC, CommittedOffset, OffsetKey, decode_key, decode_value
from ..view.replay import ControlBatch, ReplayedRecord
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
        pending: in transactions that are open, by producer id.
    """

    commits: dict[Target, list[Commit]] = field(default_factory=dict)
    pending: dict[int, list[tuple[Target, Commit]]] = field(default_factory=dict)


def read_group_log(partitions: Iterable[Partition]) -> tuple[GroupLog, list[Finding]]:
    """Read `__consumer_offsets` among `partitions`; a finding for each record that does not parse."""
    log = GroupLog()
    findings: list[Finding] = []
    for partition in partitions:
        if partition.files.topic != TOPIC:
            continue
        report = Report(TOPIC, partition.files.partition)
        one = GroupLog()  # a marker settles what is pending in its own partition
        for record in topic_records(partition, report):
            if isinstance(record, ControlBatch):
                _settle(one, record)
            else:
                _take(one, partition, record, report)
        log.commits.update(one.commits)
        for producer_id, waiting in one.pending.items():
            log.pending.setdefault(producer_id, []).extend(waiting)
        findings += report.findings
    return log, findings


def _take(log: GroupLog, partition: Partition, record: ReplayedRecord, report: Report) -> None:
    try:
        if record.key is None:
            raise SchemaError("The record has no key", offset=record.offset)
        key = decode_key(record.key, offset=record.offset)
        value = decode_value(key, record.value, offset=record.offset)
    except SchemaError as error:
        report.add_error(rules.INTERNAL_RECORD, partition.files.path, error, expected="a group's state")
        return
    if not isinstance(key, OffsetKey):
        return
    target = (key.group_id, key.topic, key.partition)
    if not isinstance(value, CommittedOffset):
        log.commits.pop(target, None)
        for waiting in log.pending.values():
            waiting[:] = [one for one in waiting if one[0] != target]
        return
    place = (partition.files.partition, record.offset)
    producer_id = record.producer_id if record.producer_id != NO_PRODUCER_ID else None
    commit = Commit(value.offset, producer_id, place, value.commit_timestamp_ms)
    if producer_id is None:
        log.commits.setdefault(target, []).append(commit)
    else:
        log.pending.setdefault(producer_id, []).append((target, commit))


def _settle(log: GroupLog, marker: ControlBatch) -> None:
    """As the coordinator does: a commit counts unless a later record has been committed meanwhile."""
    try:
        is_commit = marker.is_commit()
    except LogstoreError:
        return  # `verify` tells of it
    for target, commit in log.pending.pop(marker.producer_id, []):
        commits = log.commits.setdefault(target, []) if is_commit else None
        if commits is not None and (not commits or commits[-1].place < commit.place):
            commits.append(commit)
