"""Checks of partitions: batches that are what they say, and every file beside them true to the log.

    facts = verify_partition_directory("data/orders-0")
    facts.findings                                  empty if nothing is wrong

Nothing is written, and a broker may be running.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ..errors import DataDirectoryError
from ..layout.file_names import METADATA_TOPIC
from ..topics import consumer_offsets, transaction_state
from ..view.walk import Advance
from . import rules
from .cluster import Cluster
from .evidence import AuditedBatches, BadBytes, Evidence, Follower
from .facts.coordinators import GroupLog, InternalRecords
from .facts.epochs import EpochFacts
from .facts.indexes import OffsetIndexFacts, TimeIndexFacts
from .facts.metadata_log import ControllerLog
from .facts.offsets import Holes, OffsetRanges
from .facts.producers import ProducerFacts
from .facts.records import DecodedRecords
from .facts.sequences import Sequences
from .facts.states import StateRecords
from .facts.swaps import BESIDE_MERGED, CopiedSwap
from .facts.transactions import PartitionTransactions
from .finding import Ask, Breach, Finding
from .log_pass import LOG_START, LogStart, PassSize, follow
from .partition import Partition, open_partition
from .stable_reading import read_until_stable


class Asked(IntEnum):
    """The rules that a pass asks."""

    NOTHING = 0  # only those about damage: follow transactions, offsets and the records of internal topics
    FILES = 1  # those about batches, and files beside the log
    EVERYTHING = 2


class PartitionFacts(NamedTuple):
    """The facts that one pass over a partition leaves.

    Attributes:
        findings: those of rules about a partition alone.
        states, commits, bad_count: of a partition of an internal topic, see `InternalRecords`.
        error: the reason why it could not be read to its end.
    """

    partition: Partition
    size: PassSize
    findings: tuple[Finding, ...]
    transactions: PartitionTransactions
    ranges: OffsetRanges
    states: StateRecords
    commits: GroupLog
    bad_count: int
    error: DataDirectoryError | None


def verify_partition(
    partition: Partition,
    cluster: Cluster | None = None,
    asked: Asked = Asked.FILES,
    *,
    decodes: bool = True,
    advance: Advance = lambda size: None,
    start: LogStart = LOG_START,
    beside: Sequence[Follower] = (),
) -> PartitionFacts:
    """Read the log of one partition once, and check everything beside it.

    Damage is a finding, and so is a file that cannot be read.

    Args:
        cluster: that of the data directory around it, if it is at hand.
        decodes: decode records; otherwise trust a batch with the right checksum.
        advance: told of the bytes that are read.
        start: where to begin; the whole log by default.
        beside: more that follows the pass; not where it has to be made again for the whole log.
    """
    evidence, findings = Evidence(partition, cluster), list[Finding]()
    ask = _asking(evidence, asked, findings)
    transactions = PartitionTransactions(evidence)
    ranges = OffsetRanges(transactions)
    records = InternalRecords(evidence, ask)
    swap = CopiedSwap(evidence)
    followers: list[Follower] = [transactions, ranges, swap, *beside]
    if partition.files.topic in (transaction_state.TOPIC, consumer_offsets.TOPIC):
        followers.append(records)
    if asked:
        _ask_of_files(partition, ask)
        followers += _followers(evidence, asked, ask, decodes=decodes)
    unreadable: DataDirectoryError | None = None
    try:
        size = follow(evidence, followers, ask, advance, start)
    except DataDirectoryError as error:
        unreadable, size = error, _given_up(evidence, error, ask)
    if (cleaned := swap.without_copies()) is not None:
        read_again = verify_partition(cleaned, cluster, asked, decodes=decodes, advance=advance)
        read_again.transactions.evidence.unasked.add(BESIDE_MERGED)
        return read_again
    facts = partition, size, tuple(findings), transactions, ranges
    return PartitionFacts(*facts, records.states, records.commits, records.bad_count, unreadable)


def _asking(evidence: Evidence, asked: Asked, findings: list[Finding]) -> Ask:
    """Return what asks the rules that are asked of facts, and adds to `findings`; damage is always one."""

    def ask(facts: object) -> None:
        if (
            asked
            or isinstance(facts, Breach)
            or (isinstance(facts, BadBytes) and evidence.may_hide_batches(facts.piece))
        ):
            findings.extend(rules.ask(facts))
        if asked is Asked.EVERYTHING and isinstance(facts, AuditedBatches):
            findings.extend(rules.ask(Holes(facts)))

    return ask


def _given_up(evidence: Evidence, error: DataDirectoryError, ask: Ask) -> PassSize:
    """Report a log that cannot be read to its end; return what is known of its size."""
    evidence.give_up()
    ask(Breach.unreadable(evidence.partition.where(), error))
    return PassSize(log_end_offset=evidence.partition.first_offset, is_end_known=False)


def _followers(evidence: Evidence, asked: Asked, ask: Ask, *, decodes: bool) -> list[Follower]:
    """Return what finds facts that only rules ask for."""
    followers: list[Follower] = [DecodedRecords(ask)] if decodes else []
    if not evidence.partition.is_set_aside:
        indexes = OffsetIndexFacts(evidence, ask), TimeIndexFacts(evidence, ask)
        followers += [*indexes, ProducerFacts(evidence, ask), EpochFacts(evidence, ask)]
    if evidence.partition.files.topic == METADATA_TOPIC:
        followers.append(ControllerLog(evidence, ask))
    if asked is Asked.EVERYTHING:
        followers.append(Sequences(ask))
    return followers


def _ask_of_files(partition: Partition, ask: Ask) -> None:
    ask(partition)
    for entry in partition.files.errors:
        ask(Breach.of("directory-entry", partition.where(), entry, "only files of Kafka's"))


def verify_partition_directory(
    path: str,
    asked: Asked = Asked.FILES,
    *,
    cluster: Cluster | None = None,
    decodes: bool = True,
    advance: Advance = lambda size: None,
) -> PartitionFacts:
    """Verify the one partition whose directory is at `path`.

    Read it again if something is wrong while it changes; see `stable_reading`.

    Args:
        asked, decodes, advance: as of `verify_partition`.
        cluster: that of the data directory around it, for a caller that verifies several; one of now is made if the
            partition is read again.

    Raises:
        InvalidNameError: the name is no partition's.
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """

    known = [] if cluster is None else [cluster]

    def read() -> PartitionFacts:
        around = known.pop() if known else None
        partition = open_partition(path, None if around is None else around.checkpoints)
        return verify_partition(partition, around, asked, decodes=decodes, advance=advance)

    found, findings = read_until_stable(path, read, lambda one: one.findings)
    return found._replace(findings=findings)
