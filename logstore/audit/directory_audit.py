"""Every rule, asked of a whole data directory: what lies on the disk, and what it means.

audited = audit_directory("data", now_ms)
audited.findings
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import DataDirectoryError
from ..topics import transaction_state
from .coordinator_log import CoordinatorLog, read_coordinator_log
from .evidence import Cluster, Evidence, Known
from .finding import Finding
from .group_log import GroupLog, read_group_log
from .group_rules import ReadableOffsets, group_findings
from .lives import Lives
from .log_pass import Check, run_checks
from .offset_ranges import OffsetRanges
from .open_transactions import OpenTransaction, open_transactions
from .partition import Partition, Report, open_partitions
from .partition_transactions import PartitionTransactions
from .record_checks import RecordChecks
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
from .verify import VerifiedDirectory, findings_around, verify_once


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a directory.

    Attributes:
        histories: of each live partition.
        open: of all partitions, the oldest of each first.
        lives: their markers beside the decisions of coordinators.
        cluster: what the directory says of its cluster.
        is_closed: no broker runs on the directory.
    """

    histories: dict[tuple[str, int], PartitionTransactions]
    lives: Lives
    log: CoordinatorLog
    cluster: Cluster
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


def crossing_findings(path: str, now_ms: int) -> tuple[Finding, ...]:
    """Check what partitions of the data directory at `path` say of each other, and what lies around them.

    With `partition_checks` of each partition it is all that `audit_directory` finds; each log is read once here.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    return read_until_stable(path, lambda: _crossing(path, now_ms), lambda found: found)[1]


def partition_checks(evidence: Evidence, report: Report) -> list[Check]:
    """Return the checks of one partition beside those of `verify`."""
    return [OffsetRanges(evidence, report), SequenceChecks(evidence, report), RecordChecks(evidence, report)]


class _Followed:
    """What a pass keeps of the live partitions of a directory, for what is asked across them."""

    def __init__(self, path: str) -> None:
        self.cluster = Cluster(path)
        self.histories: dict[tuple[str, int], PartitionTransactions] = {}
        self.ranges: dict[tuple[str, int], OffsetRanges] = {}

    def checks(self, evidence: Evidence, report: Report) -> list[Check]:
        """Return checks for one partition; a stray or future one only shares the name of one that is live."""
        if not evidence.partition.is_live:
            return []
        history = self.histories[evidence.partition.key] = PartitionTransactions(evidence)
        ranges = self.ranges[evidence.partition.key] = OffsetRanges(evidence, report)
        return [history, ranges]

    def judged(self, now_ms: int) -> tuple[Transactions, Groups, list[Finding]]:
        """Return transactions and groups, and what is wrong with them."""
        partitions = [history.partition for history in self.histories.values()]
        transactions, findings = _transactions(partitions, self.histories, self.cluster, now_ms)
        groups, group_log_findings = _groups(partitions, self.histories, self.ranges)
        findings += [*group_log_findings, *transaction_findings(transactions, now_ms)]
        return transactions, groups, findings + group_findings(groups.log, groups.views)


def _read(path: str, now_ms: int) -> AuditedDirectory:
    followed = _Followed(path)

    def checks(evidence: Evidence, report: Report) -> list[Check]:
        if not evidence.partition.is_live:
            return partition_checks(evidence, report)
        return [*followed.checks(evidence, report), SequenceChecks(evidence, report), RecordChecks(evidence, report)]

    verified = verify_once(path, checks, followed.cluster)
    transactions, groups, findings = followed.judged(now_ms)
    return AuditedDirectory(verified, transactions, groups, (*verified.all_findings, *findings))


def _crossing(path: str, now_ms: int) -> list[Finding]:
    followed = _Followed(path)
    ends: list[tuple[Partition, int]] = []
    for partition in open_partitions(path):
        evidence = Evidence(partition, followed.cluster)
        try:
            end = run_checks(evidence, followed.checks(evidence, Report(*partition.key))).log_end_offset
        except DataDirectoryError:
            end = partition.first_offset  # `log-unreadable`, which is told of the partition itself
        ends.append((partition, end))
    return [*findings_around(path, ends, followed.cluster), *followed.judged(now_ms)[2]]


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
    cluster, partitions = Cluster(path), _live_partitions(path)
    histories = {
        partition.key: PartitionTransactions(Evidence(partition, cluster))
        for partition in partitions
        if only in (None, partition.name)
    }
    for history in histories.values():
        run_checks(history.evidence, [history])
    return _transactions(partitions, histories, cluster, now_ms)


def read_groups(path: str) -> tuple[Groups, list[Finding]]:
    """Only the groups of the data directory at `path`, and findings about records that do not parse.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory; a segment cannot be read.
    """
    followed, partitions = _Followed(path), _live_partitions(path)
    for partition in partitions:
        evidence = Evidence(partition, followed.cluster)
        run_checks(evidence, followed.checks(evidence, Report(*partition.key)))
    return _groups(partitions, followed.histories, followed.ranges)


def transaction_findings(transactions: Transactions, now_ms: int) -> list[Finding]:
    """Everything that is wrong with them."""
    findings = open_findings(transactions.open, is_closed=transactions.is_closed)
    findings += epoch_findings(transactions.histories)
    findings += atomicity_findings(transactions.lives)
    findings += repeated_findings(transactions.lives)
    findings += decision_findings(transactions.lives, transactions.log)
    if not transactions.is_closed:
        findings += no_data_findings(transactions.lives, transactions.log, now_ms)
    return findings


def _transactions(
    partitions: list[Partition],
    histories: dict[tuple[str, int], PartitionTransactions],
    cluster: Cluster,
    now_ms: int,
) -> tuple[Transactions, list[Finding]]:
    partition_count = cluster.partition_count(transaction_state.TOPIC)
    is_whole_broker = cluster.is_whole_broker is Known.YES
    log, log_findings = read_coordinator_log(partitions, partition_count, is_whole_broker=is_whole_broker)
    lives = Lives(histories, log)
    found = tuple(one for history in histories.values() for one in open_transactions(history, lives, log, now_ms))
    is_closed = bool(partitions) and partitions[0].surroundings.was_closed
    return Transactions(histories, lives, log, cluster, found, is_closed), cluster.findings + log_findings


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
            is_behind=history.evidence.cluster.is_in_sync(*key) is Known.NO,
        )
        for key, history in histories.items()
    }
    return Groups(log, views), findings


def _live_partitions(path: str) -> list[Partition]:
    return [partition for partition in open_partitions(path) if partition.is_live]
