"""Audit of a whole data directory: each partition alone, and what partitions say of each other.

audited = audit_directory("data", now_ms)
audited.findings
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ..topics import consumer_offsets, transaction_state
from ..view.walk import Advance
from . import rules
from .cluster import Cluster, Known
from .evidence import Evidence
from .facts.coordinators import CoordinatorLog
from .finding import Finding
from .groups import Groups
from .lives import Lives
from .open_transactions import Transactions, judge
from .partition import Partition, open_partitions
from .rules.transactions import VERDICTS
from .stable_reading import read_until_stable
from .verify import Asked, PartitionFacts, VerifiedDirectory, found_in, verify_partition


@dataclass(frozen=True, slots=True)
class AuditedDirectory(VerifiedDirectory):
    """A verified directory with its transactions and groups."""

    transactions: Transactions
    groups: Groups


FollowAll = Callable[[list[Partition], Cluster], Sequence[PartitionFacts]]


def follow_all(
    partitions: list[Partition], cluster: Cluster, *, decodes: bool = True, advance: Advance = lambda size: None
) -> Sequence[PartitionFacts]:
    """Check each partition alone against every rule; `decodes` and `advance` as of `verify_partition`."""
    return [verify_partition(one, cluster, Asked.EVERYTHING, decodes=decodes, advance=advance) for one in partitions]


def audit_directory(path: str, now_ms: int, follow: FollowAll = follow_all) -> AuditedDirectory:
    """Check the data directory at `path` against every rule; read each log once.

    Read it again if something is wrong while it changes; see `stable_reading`.

    Args:
        now_ms: reference time for ages.
        follow: collects the facts of all partitions, perhaps on other machines.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """

    def read() -> AuditedDirectory:
        cluster = Cluster(path)
        return join(path, follow(open_partitions(path), cluster), cluster, now_ms)

    audited, findings = read_until_stable(path, read, lambda found: found.findings)
    return replace(audited, findings=findings)


def crossing_findings(path: str, now_ms: int) -> tuple[Finding, ...]:
    """Check what partitions of the data directory at `path` say of each other, and what lies around them.

    These and the findings of `verify_partition_directory` for each partition are those of `audit_directory`.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """

    def read() -> tuple[Finding, ...]:
        cluster = Cluster(path)
        partitions = [verify_partition(one, cluster, Asked.NOTHING) for one in open_partitions(path)]
        return join(path, [replace(one, findings=()) for one in partitions], cluster, now_ms).findings

    return read_until_stable(path, read, lambda found: found)[1]


def join(path: str, partitions: Sequence[PartitionFacts], cluster: Cluster, now_ms: int) -> AuditedDirectory:
    """Join the facts of all partitions of the data directory at `path`, and check them against each other."""
    live = [one for one in partitions if _counts(one.partition, cluster)]
    transactions, groups = _transactions(live, cluster, now_ms), _groups(live, cluster)
    crossing = [finding for facts in (*cluster.unreadable, transactions, groups) for finding in rules.ask(facts)]
    findings = *found_in(path, partitions, cluster), *crossing
    return AuditedDirectory(tuple(partitions), findings, transactions, groups)


def read_transactions(path: str, now_ms: int, only: str | None = None) -> tuple[Transactions, list[Finding]]:
    """Read the transactions of the data directory at `path`, and find records that do not parse.

    A transaction that hangs or is late is reported only if a second reading confirms it, see `stable_reading`.

    Args:
        only: the name of the partition whose transactions are read; None reads those of all.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory; partition `only` cannot be read.
    """

    def read() -> tuple[Transactions, list[Finding], list[Finding]]:
        cluster = Cluster(path)
        partitions = _live(path, cluster, {transaction_state.TOPIC}, only)
        bad = [finding for one in cluster.unreadable for finding in rules.ask(one)]
        found = _transactions(partitions, cluster, now_ms, only)
        return found, bad + [finding for one in partitions for finding in one.findings], rules.ask(found)

    (transactions, findings, seen), confirmed = read_until_stable(path, read, lambda found: found[2])
    confirmed_places = {(finding.rule, finding.where) for finding in confirmed}
    unconfirmed = {(finding.rule, finding.where) for finding in seen} - confirmed_places
    kept = (one for one in transactions.open if (VERDICTS.get(one.verdict), one.where) not in unconfirmed)
    return replace(transactions, open=tuple(kept)), findings


def read_groups(path: str) -> tuple[Groups, list[Finding]]:
    """Read the groups of the data directory at `path`, and find records that do not parse.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    cluster = Cluster(path)
    partitions = _live(path, cluster)
    told = [one for one in partitions if one.error or one.partition.files.topic == consumer_offsets.TOPIC]
    return _groups(partitions, cluster), [finding for one in told for finding in one.findings]


def read_coordinators(path: str) -> tuple[CoordinatorLog, list[Finding]]:
    """Read `__transaction_state` of the data directory at `path`, and find records that do not parse.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    partitions = _live(path, Cluster(path), {transaction_state.TOPIC}, "")
    log = CoordinatorLog([one.states for one in partitions])
    return log, [each for one in partitions for each in one.findings]


def _counts(partition: Partition, cluster: Cluster) -> bool:
    """Return whether the directory is the cluster's partition of this name."""
    return partition.is_live and cluster.has_partition(*partition.key) is not Known.NO


def _live(path: str, cluster: Cluster, topics: Collection[str] = (), only: str | None = None) -> list[PartitionFacts]:
    """Follow the live partitions of `topics` and partition `only`; None follows all.

    A partition that cannot be read is a finding; if it is `only`, its error is raised.
    """
    wanted = [
        one
        for one in open_partitions(path)
        if _counts(one, cluster) and (only in (None, one.name) or one.files.topic in topics)
    ]
    found = [verify_partition(one, cluster, Asked.NOTHING) for one in wanted]
    for error in [one.error for one in found if one.error is not None and one.partition.name == only]:
        raise error
    return found


def _transactions(
    partitions: Sequence[PartitionFacts], cluster: Cluster, now_ms: int, only: str | None = None
) -> Transactions:
    states = [one for one in partitions if one.partition.files.topic == transaction_state.TOPIC]
    numbers = {one.partition.files.partition for one in states if one.error is None}
    whole_from = {one.partition.files.partition: _whole_from(one.transactions.evidence) for one in states}
    log = CoordinatorLog([one.states for one in states], whole_from)
    count = cluster.partition_count(transaction_state.TOPIC)
    expected = range(max(numbers, default=-1) + 1 if count is None else count)
    log.is_complete = cluster.is_whole_broker is Known.YES and bool(numbers) and numbers >= set(expected)
    log.bad_count, log.born_ms = sum(one.bad_count for one in states), cluster.created_ms(transaction_state.TOPIC)
    log.is_whole = log.is_complete and all(one.transactions.evidence.is_whole for one in states)
    asked = [one for one in partitions if only in (None, one.partition.name)]
    histories = {one.partition.key: one.transactions for one in asked}
    lives = Lives(histories, log)
    found = tuple(
        judge(history, one, lives, now_ms, cluster.settled_ms)
        for history in histories.values()
        for one in history.open_transactions
    )
    is_closed = any(one.partition.surroundings.was_closed for one in partitions)
    return Transactions(histories, lives, log, found, is_closed, min(now_ms, cluster.settled_ms))


def _whole_from(evidence: Evidence) -> int:
    """Return the offset from which a partition has every record that no newer one of the same key has replaced.

    Its own cleaner leaves nothing older than what it took. A follower fetches the holes that its leader's cleaner made,
    while it keeps older records.
    """
    if evidence.has_damage:
        return evidence.log_end_offset
    return 0 if evidence.cluster.is_alone is Known.YES else evidence.hole_end


def _groups(partitions: Sequence[PartitionFacts], cluster: Cluster) -> Groups:
    commits = {target: found for one in partitions for target, found in one.commits.items()}
    unknown = frozenset(target for target in commits if cluster.has_partition(*target[1:]) is Known.NO)
    return Groups(commits, unknown, {one.partition.key: one.ranges for one in partitions if one.error is None})
