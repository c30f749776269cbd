"""Audit of a whole data directory: each partition alone, and what partitions say of each other.

audited = audit_directory("data", now_ms)
audited.findings
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from ..disk.directory import DataDirectoryFiles
from ..layout.file_names import METADATA_TOPIC
from ..topics import INTERNAL_TOPICS, consumer_offsets, transaction_state
from ..topics.partition_for import partition_for
from ..view.walk import Advance
from .checks.batches import timestamp_future
from .checks.checkpoints import lost_partitions
from .checks.groups import group_offsets
from .checks.internal_records import metadata_problems, metadata_records
from .checks.transactions import crossing_transactions
from .cluster import Cluster, Known
from .directory_verify import Follow, Looks, VerifiedDirectory, found_in, in_reading_order, places_of
from .evidence import Evidence
from .facts.coordinators import CoordinatorLog, GroupLog
from .facts.times import Retained
from .finding import Finding, Silence, Where, findings_of
from .groups import Groups
from .lives import Lives
from .open_transactions import RULE_OF, Moment, Transactions, Verdict
from .partition import Partition, open_partitions
from .processes import follow
from .stable_reading import read_until_stable
from .tails import follow_tail, with_open
from .verdicts import judge
from .verify import Asked, PartitionFacts, verify_partition


@dataclass(frozen=True, slots=True)
class AuditedDirectory(VerifiedDirectory):
    """A verified directory with its transactions and groups."""

    transactions: Transactions
    groups: Groups


#: the facts of partitions by every rule about a partition alone; `decodes` and `advance` as of `verify_partition`
follow_all = partial(follow, asked=Asked.EVERYTHING)
#: verdicts that count markers of the whole log
_OF_WHOLE_LOG = (Verdict.HANGING, Verdict.MARKER_MISSING, Verdict.RECENT)


def audit_directory(path: str, now_ms: int, follow: Follow = follow_all) -> AuditedDirectory:
    """Check the data directory at `path` against every rule; read each log once.

    Look again if something is wrong while it changes; see `stable_reading`.

    Args:
        now_ms: reference time for ages.
        follow: as of `Looks`.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    audited, findings = _looked_at(path, now_ms, Looks(path, follow))
    confirmed = {(finding.rule, finding.where) for finding in findings}
    unconfirmed = {(finding.rule, finding.where) for finding in audited.findings} - confirmed
    return replace(audited, findings=findings, transactions=_with_recent(audited.transactions, unconfirmed))


def _suspects(audited: AuditedDirectory) -> set[tuple[str | None, int | None]]:
    """Return the partitions that findings are about; if it is the commit of a group, also the one that it has read."""
    places = places_of(audited.findings)
    commits = {
        (one.where.partition, one.where.offset) for one in audited.findings if one.where.topic == consumer_offsets.TOPIC
    }
    for target, made in audited.groups.commits.items() if commits else ():
        if not commits.isdisjoint(one.place for one in made):
            places.add(target[1:])
    return places


def crossing_findings(path: str, now_ms: int, known: Mapping[str, PartitionFacts]) -> tuple[Finding, ...]:
    """Check what partitions of the data directory at `path` say of each other, and what lies around them.

    These and the findings of `verify_partition_directory` for each partition are those of `audit_directory`.

    Args:
        known: facts of partitions, by path, whose logs are read again for a second look only.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    left = dict(known)

    def facts_of(partition: Partition, cluster: Cluster) -> PartitionFacts:
        facts = left.pop(partition.files.path, None) or verify_partition(partition, cluster, Asked.NOTHING)
        facts.evidence.cluster = cluster
        return facts._replace(findings=())

    listed = {one.partition.files.path: one.partition.files for one in known.values()}
    looks = Looks(path, lambda partitions, cluster: [facts_of(one, cluster) for one in partitions], listed)
    return _looked_at(path, now_ms, looks)[1]


def _looked_at(path: str, now_ms: int, looks: Looks) -> tuple[AuditedDirectory, tuple[Finding, ...]]:
    """Return what the last look found, and the findings that last."""

    def read() -> AuditedDirectory:
        audited = join(*looks.look(), now_ms)
        looks.suspect(_suspects(audited))
        return audited

    return read_until_stable(path, read, lambda found: found.findings)


def join(
    directory: DataDirectoryFiles, partitions: Sequence[PartitionFacts], cluster: Cluster, now_ms: int
) -> AuditedDirectory:
    """Join the facts of all partitions of a data directory, and check them against each other."""
    live = [one for one in partitions if _counts(one.partition, cluster)]
    transactions, groups = _transactions(live, cluster, now_ms), _groups(live, cluster)
    crossing = chain(
        metadata_records(cluster),
        crossing_transactions(transactions),
        group_offsets(groups),
        *map(timestamp_future, _retained(live, cluster, now_ms)),
    )
    findings, notes = found_in(directory, partitions, cluster, crossing)
    return AuditedDirectory(tuple(partitions), findings, notes, transactions, groups)


def read_transactions(
    path: str,
    now_ms: int,
    only: str | None = None,
    advance: Advance = lambda size: None,
    beside: Collection[str] = (),
) -> tuple[Transactions, list[Finding]]:
    """Read the open transactions of the data directory at `path`, and find damage and records that do not parse.

    Each log is read from its newest snapshot on, and from the earliest open transaction on if that is before; a whole
    log only where no coordinator is going to end one.

    What hangs or is late is told only if a second reading confirms it, see `stable_reading`; till then it is RECENT.

    Args:
        only: the name of the partition whose transactions are read; None reads those of all.
        beside: other data directories; coordinators in those of the same broker count.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory; partition `only` cannot be read.
    """
    is_coordinator = _is_of(transaction_state.TOPIC)

    def read() -> tuple[Transactions, list[Finding], list[Finding]]:
        read_whole = set[str]()
        while True:
            cluster = Cluster(path, beside)
            follow = partial(_with_open, cluster, read_whole, advance)
            partitions = _live([path], cluster, follow, lambda one: only in (None, one.name) or is_coordinator(one))
            partitions += _live(cluster.other_roots, cluster, follow, is_coordinator)
            for error in [one.error for one in partitions if one.error is not None and one.partition.name == only]:
                raise error
            found = _transactions(partitions, cluster, now_ms, only)
            doubted = {one.name for one in found.open if one.verdict in _OF_WHOLE_LOG} - read_whole
            if not doubted:
                told = _told(partitions, cluster, transaction_state.TOPIC)
                return found, told, findings_of(crossing_transactions(found))
            read_whole |= doubted

    (transactions, told, judged), confirmed = read_until_stable(path, read, lambda found: found[1] + found[2], beside)
    places = {(finding.rule, finding.where) for finding in confirmed}
    unconfirmed = {(finding.rule, finding.where) for finding in judged} - places
    return _with_recent(transactions, unconfirmed), [one for one in told if (one.rule, one.where) in places]


def _told(partitions: Sequence[PartitionFacts], cluster: Cluster, topic: str) -> list[Finding]:
    """Return what could not be read of partitions, and of the metadata log: damage, and records that do not parse.

    None of the partitions of `topic`, that of the coordinators, may be missing.
    """
    found = findings_of(chain(metadata_problems(cluster), lost_partitions(cluster, topic)))
    found += [finding for one in partitions for finding in one.findings]
    return list(dict.fromkeys(found))  # the metadata log may be among the partitions


def _with_recent(transactions: Transactions, unconfirmed: Collection[tuple[str | None, Where]]) -> Transactions:
    """Return the transactions with RECENT in the place of verdicts that only the last reading saw."""
    judged = (
        replace(one, verdict=Verdict.RECENT) if (RULE_OF.get(one.verdict), one.where) in unconfirmed else one
        for one in transactions.open
    )
    return replace(transactions, open=tuple(judged))


def _with_open(cluster: Cluster, read_whole: Collection[str], advance: Advance, partition: Partition) -> PartitionFacts:
    """Follow a partition as far back as transactions of it are open; a coordinator's whole log."""
    if partition.files.topic == transaction_state.TOPIC or partition.name in read_whole:
        return verify_partition(partition, cluster, Asked.NOTHING, advance=advance)
    return with_open(follow_tail(partition, cluster, advance=advance), cluster, advance)


def read_groups(
    path: str, advance: Advance = lambda size: None, beside: Collection[str] = ()
) -> tuple[Groups, Cluster, list[Finding]]:
    """Read the groups of the data directory at `path`, and find damage and records that do not parse.

    Of other logs than the groups' own, what groups have not read yet is read, and the end. Raises as `open_partitions`.

    Args:
        beside: other data directories of the same broker, which are read too; UsageError for one that is none.
    """
    is_groups = _is_of(consumer_offsets.TOPIC)

    def read() -> tuple[Groups, Cluster, list[Finding]]:
        cluster = Cluster(path, beside)
        cluster.require_one_broker()
        whole = partial(verify_partition, cluster=cluster, asked=Asked.NOTHING, advance=advance)
        partitions = _live(cluster.roots, cluster, whole, is_groups)
        since = dict[tuple[str, int], int]()
        for (_, topic, number), commits in (each for one in partitions for each in one.commits.items()):
            key, offset = (topic, number), commits[-1].offset
            since[key] = min(since.get(key, offset), offset)

        def end(partition: Partition) -> PartitionFacts:
            return follow_tail(partition, cluster, since[partition.key], advance).facts

        partitions += _live(cluster.roots, cluster, end, lambda one: one.key in since and not is_groups(one))
        return _groups(partitions, cluster), cluster, _told(partitions, cluster, consumer_offsets.TOPIC)

    (groups, cluster, _), told = read_until_stable(path, read, lambda found: found[2], beside)
    return groups, cluster, list(told)


def read_coordinators(
    path: str, advance: Advance = lambda size: None, beside: Collection[str] = ()
) -> tuple[CoordinatorLog, Cluster, list[Finding]]:
    """Read `__transaction_state` of the data directory at `path`, and find damage and records that do not parse.

    Args:
        beside: as of `read_transactions`.

    Raises as `open_partitions`.
    """

    def read() -> tuple[CoordinatorLog, Cluster, list[Finding]]:
        cluster = Cluster(path, beside)
        whole = partial(verify_partition, cluster=cluster, asked=Asked.NOTHING, advance=advance)
        partitions = _live(cluster.roots, cluster, whole, _is_of(transaction_state.TOPIC))
        told = _told(partitions, cluster, transaction_state.TOPIC)
        count = cluster.partition_count(transaction_state.TOPIC)
        return CoordinatorLog([one.states for one in partitions], count=count), cluster, told

    (log, cluster, _), told = read_until_stable(path, read, lambda found: found[2], beside)
    return log, cluster, list(told)


def _counts(partition: Partition, cluster: Cluster) -> bool:
    """Return whether the directory is the cluster's partition of this name; metadata without a topic was lost."""
    return partition.is_live and not (cluster.image.topics and cluster.has_partition(*partition.key) is Known.NO)


def _live(
    roots: Iterable[str],
    cluster: Cluster,
    check: Callable[[Partition], PartitionFacts],
    is_wanted: Callable[[Partition], bool] = lambda partition: True,
) -> list[PartitionFacts]:
    """Check the wanted ones of the live partitions; one that cannot be read is a finding."""
    opened = chain.from_iterable(map(open_partitions, roots))
    wanted = [one for one in opened if _counts(one, cluster) and is_wanted(one)]
    facts = {one.files.path: check(one) for group in in_reading_order(wanted) for one in group}
    return [facts[one.files.path] for one in wanted]


def _is_of(topic: str) -> Callable[[Partition], bool]:
    return lambda partition: partition.files.topic == topic


def _transactions(
    partitions: Sequence[PartitionFacts], cluster: Cluster, now_ms: int, only: str | None = None
) -> Transactions:
    states = [one for one in partitions if one.partition.files.topic == transaction_state.TOPIC]
    numbers = {one.partition.files.partition for one in states if one.error is None}
    whole_from = {one.partition.files.partition: _whole_from(one.evidence) for one in states}
    whole = {one.partition.files.partition for one in states if one.evidence.is_whole}
    count = cluster.partition_count(transaction_state.TOPIC)
    log = CoordinatorLog([one.states for one in states], whole_from, whole, count)
    log.is_newer = cluster.image.newer_kafka is not None
    expected = range(max(numbers, default=-1) + 1 if count is None else count)
    log.is_complete = cluster.is_whole_broker is Known.YES and bool(numbers) and numbers >= set(expected)
    log.bad_count, log.born_ms = sum(one.bad_count for one in states), cluster.created_ms(transaction_state.TOPIC)
    log.is_whole = log.is_complete and all(one.evidence.is_whole for one in states)
    log.has_damage = any(one.evidence.has_damage for one in states)
    log.times = {one.partition.files.partition: one.transactions.times for one in states}
    asked = [one for one in partitions if only in (None, one.partition.name)]
    histories = {one.partition.key: one.transactions for one in asked}
    lives, moment = Lives(histories, log), Moment(now_ms, cluster)
    opened = [judge(history, one, lives, moment) for history in histories.values() for one in history.open_transactions]
    is_closed = any(one.partition.surroundings.was_closed for one in partitions)
    return Transactions(histories, lives, log, tuple(opened), is_closed, moment)


def _retained(partitions: Sequence[PartitionFacts], cluster: Cluster, now_ms: int) -> Iterator[Retained]:
    """Yield the partitions of which `retention.ms` may remove segments, as far as the configuration is known."""
    # another policy may be in what is missing; partitions without any broker's files have Kafka's defaults
    is_known = not (cluster.image.is_partial and (cluster.has_metadata or cluster.is_whole_broker is not Known.YES))
    silence = None if is_known else Silence.METADATA_MISSING
    stamps = [one.transactions.times.largest_stamp for one in partitions]
    now_ms = max([now_ms, *stamps, *(topic.created_ms for topic in cluster.image.topics.values())])
    for one in partitions:
        topic = one.partition.files.topic
        config = cluster.image.topic_config(topic)
        is_never = topic in (METADATA_TOPIC, *INTERNAL_TOPICS) or config.get("retention.ms", "").startswith("-")
        if not is_never and "delete" in (config.get("cleanup.policy") or "delete"):
            yield Retained(one.partition, one.transactions.times, now_ms, silence)


def _whole_from(evidence: Evidence) -> int:
    """Return the offset from which a partition has every record that no newer one of the same key has replaced.

    Its own cleaner leaves nothing older than what it took. A follower fetches the holes that its leader's cleaner made,
    while it keeps older records.
    """
    if evidence.has_damage:
        return evidence.log_end_offset
    return 0 if evidence.cluster.is_alone is Known.YES else evidence.hole_end


def _groups(partitions: Sequence[PartitionFacts], cluster: Cluster) -> Groups:
    count, commits = cluster.partition_count(consumer_offsets.TOPIC), GroupLog()
    for one in partitions:
        for target, made in one.commits.items():
            # where its coordinator looks, if it is elsewhere too, as in a topic that was given partitions (KIP-895)
            if target not in commits or (count and partition_for(target[0], count) == one.partition.files.partition):
                commits[target] = made
    targets = commits if cluster.image.topics else ()
    unknown = frozenset(target for target in targets if cluster.has_partition(*target[1:]) is Known.NO)
    ranges = {one.partition.key: one.ranges for one in partitions if one.error is None}
    pending = {target: made for one in partitions for target, made in one.pending.items()}
    return Groups(commits, pending, unknown, ranges, cluster.root)
