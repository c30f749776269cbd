"""Every rule, asked of a whole data directory: what lies on the disk, and what it means.

audited = audit_directory("data", now_ms)
audited.findings
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..topics import transaction_state
from .cluster_log import Topic, read_topics
from .coordinator_log import CoordinatorLog, read_coordinator_log
from .finding import Finding
from .group_log import GroupLog, read_group_log
from .group_rules import ReadableOffsets, group_findings
from .log_pass import Check, run_checks
from .offset_ranges import OffsetRanges
from .open_transactions import OpenTransaction, open_transactions
from .partition import Partition, Report, open_partitions
from .partition_transactions import PartitionTransactions
from .sequence_checks import SequenceChecks
from .stable_reading import read_until_stable
from .transaction_rules import (
    atomicity_findings,
    decision_findings,
    epoch_findings,
    no_data_findings,
    open_finding,
    open_findings,
    repeated_findings,
)
from .verify import VerifiedDirectory, verify_once


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a directory.

    Attributes:
        histories: of each partition.
        open: of all partitions, the oldest of each first.
        is_closed: no broker runs on the directory.
    """

    histories: dict[tuple[str, int], PartitionTransactions]
    log: CoordinatorLog
    topics: dict[str, Topic]
    open: tuple[OpenTransaction, ...]
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a directory, and the partitions as consumers can read them."""

    log: GroupLog
    views: dict[tuple[str, int], ReadableOffsets]


@dataclass(frozen=True, slots=True)
class AuditedDirectory:
    """What was found, and on what grounds."""

    verified: VerifiedDirectory
    transactions: Transactions
    groups: Groups
    findings: tuple[Finding, ...]


def audit_directory(path: str, now_ms: int) -> AuditedDirectory:
    """Ask every rule of the data directory at `path`; each log is read once, those of internal topics twice.

    Where something is wrong while the directory changes, all is read again, see `stable_reading`.

    Args:
        now_ms: the time that ages are counted to.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    audited, findings = read_until_stable(path, lambda: _read(path, now_ms), lambda found: found.findings)
    return replace(audited, verified=audited.verified.only(findings), findings=findings)


def _read(path: str, now_ms: int) -> AuditedDirectory:
    histories: dict[tuple[str, int], PartitionTransactions] = {}
    ranges: dict[tuple[str, int], OffsetRanges] = {}

    def checks(partition: Partition, report: Report) -> Sequence[Check]:
        history = histories[_key(partition)] = PartitionTransactions(partition)
        offsets = ranges[_key(partition)] = OffsetRanges(partition, report)
        return [history, offsets, SequenceChecks(partition, report)]

    verified = verify_once(path, checks)
    partitions = [one.partition for one in verified.partitions]
    transactions, findings = _transactions(partitions, histories, now_ms)
    groups, group_log_findings = _groups(partitions, histories, ranges)
    all_findings = list(verified.all_findings)
    all_findings += [*findings, *group_log_findings, *transaction_findings(transactions, now_ms)]
    all_findings += group_findings(groups.log, groups.views)
    return AuditedDirectory(verified, transactions, groups, tuple(all_findings))


def read_transactions(path: str, now_ms: int, only: str | None = None) -> tuple[Transactions, list[Finding]]:
    """Only the transactions of the data directory at `path`, and findings about records that do not parse.

    An open one that is to be ended by nobody, or late, is among them if it stays so, see `stable_reading`.

    Args:
        only: the name of the one partition whose transactions are asked for; None for all.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory; a segment cannot be read.
    """
    found, lasting = read_until_stable(
        path, lambda: _read_transactions(path, now_ms, only), lambda one: open_findings(one[0].open, is_closed=False)
    )
    transactions, findings = found
    lasts = tuple(one for one in transactions.open if open_finding(one) in {None, *lasting})
    return replace(transactions, open=lasts), findings


def _read_transactions(path: str, now_ms: int, only: str | None) -> tuple[Transactions, list[Finding]]:
    partitions = open_partitions(path)
    histories = {
        _key(partition): PartitionTransactions(partition) for partition in partitions if only in (None, partition.name)
    }
    for history in histories.values():
        run_checks(history.partition, [history])
    return _transactions(partitions, histories, now_ms)


def read_groups(path: str) -> tuple[Groups, list[Finding]]:
    """Only the groups of the data directory at `path`, and findings about records that do not parse.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory; a segment cannot be read.
    """
    partitions = open_partitions(path)
    histories = {_key(partition): PartitionTransactions(partition) for partition in partitions}
    ranges = {_key(partition): OffsetRanges(partition, Report(*_key(partition))) for partition in partitions}
    for partition in partitions:
        run_checks(partition, [histories[_key(partition)], ranges[_key(partition)]])
    return _groups(partitions, histories, ranges)


def transaction_findings(transactions: Transactions, now_ms: int) -> list[Finding]:
    """Everything that is wrong with them."""
    findings = open_findings(transactions.open, is_closed=transactions.is_closed)
    findings += epoch_findings(transactions.histories)
    findings += atomicity_findings(transactions.histories)
    findings += repeated_findings(transactions.histories)
    findings += decision_findings(transactions.histories, transactions.log)
    if not transactions.is_closed:
        findings += no_data_findings(transactions.histories, transactions.log, now_ms)
    return findings


def _transactions(
    partitions: list[Partition], histories: dict[tuple[str, int], PartitionTransactions], now_ms: int
) -> tuple[Transactions, list[Finding]]:
    topics, findings = read_topics(partitions)
    topic = topics.get(transaction_state.TOPIC)
    log, log_findings = read_coordinator_log(partitions, None if topic is None else len(topic.partitions))
    found = tuple(one for history in histories.values() for one in open_transactions(history, log, now_ms))
    is_closed = bool(partitions) and partitions[0].surroundings.was_closed
    return Transactions(histories, log, topics, found, is_closed), findings + log_findings


def _groups(
    partitions: list[Partition],
    histories: dict[tuple[str, int], PartitionTransactions],
    ranges: dict[tuple[str, int], OffsetRanges],
) -> tuple[Groups, list[Finding]]:
    log, findings = read_group_log(partitions)
    views = {
        key: ReadableOffsets(
            history.partition.first_offset,
            history.last_stable_offset,
            history.log_end_offset,
            tuple(ranges[key].labelled(history.transactions)),
        )
        for key, history in histories.items()
    }
    return Groups(log, views), findings


def _key(partition: Partition) -> tuple[str, int]:
    return partition.files.topic, partition.files.partition
