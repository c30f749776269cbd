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
from .checks.batches import BatchHeaders, DamagedBytes, log_offset_order
from .checks.directory import files_of_partition
from .checks.epochs import EpochCheckpoint
from .checks.indexes import OffsetIndexCheck, TimeIndexCheck
from .checks.internal_records import InternalRecords
from .checks.metadata_log import ControllerLog
from .checks.producers import Producers
from .checks.records import DecodedRecords
from .checks.sequences import Sequences
from .checks.swaps import CopiedSwap
from .cluster import Cluster
from .evidence import Evidence, Follower
from .facts.coordinators import Commit, GroupLog, Target
from .facts.offsets import OffsetRanges
from .facts.states import StateRecords
from .facts.transactions import PartitionTransactions
from .finding import Finding, Silence, unreadable
from .log_pass import LOG_START, LogStart, follow
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
        states, commits, pending, bad_count: of a partition of an internal topic, see `InternalRecords`.
        error: the reason why it could not be read to its end.
    """

    partition: Partition
    evidence: Evidence
    findings: tuple[Finding, ...]
    transactions: PartitionTransactions
    ranges: OffsetRanges
    states: StateRecords
    commits: GroupLog
    pending: dict[Target, Commit]
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
    evidence = Evidence(partition, cluster)
    transactions = PartitionTransactions(evidence)
    ranges, swap = OffsetRanges(transactions), CopiedSwap(evidence)
    records = InternalRecords(evidence)
    followers = [DamagedBytes(evidence, is_all=bool(asked)), transactions.times, transactions, ranges, swap, *beside]
    if partition.files.topic in (transaction_state.TOPIC, consumer_offsets.TOPIC):
        followers.append(records)
    if asked:
        evidence.report.take(files_of_partition(partition))
        followers += _checks(evidence, asked, decodes=decodes)
    unreadable_log: DataDirectoryError | None = None
    try:
        follow(evidence, followers, advance, start)
    except DataDirectoryError as error:
        evidence.give_up()
        transactions.times.finish()
        transactions.finish()
        evidence.report.take([unreadable(error, partition.where())])
        unreadable_log = error
    if (cleaned := swap.without_copies()) is not None:
        read_again = verify_partition(cleaned, cluster, asked, decodes=decodes, advance=advance)
        read_again.evidence.report.note(log_offset_order, Silence.COPIED, partition.where())
        return read_again
    findings, evidence.report.findings = tuple(evidence.report.findings), []
    facts = partition, evidence, findings, transactions, ranges
    of_groups = records.commits, records.pending
    return PartitionFacts(*facts, records.states, *of_groups, records.bad_count, unreadable_log)


def _checks(evidence: Evidence, asked: Asked, *, decodes: bool) -> list[Follower]:
    """Return the checks of a partition alone."""
    checks: list[Follower] = [DecodedRecords()] if decodes else []
    if not evidence.partition.is_set_aside:
        checks += [OffsetIndexCheck(evidence), TimeIndexCheck(evidence), Producers(evidence), EpochCheckpoint(evidence)]
    if evidence.partition.files.topic == METADATA_TOPIC:
        checks.append(ControllerLog(evidence))
    if asked is Asked.EVERYTHING:
        checks.append(Sequences(evidence))
    return [*checks, BatchHeaders()]


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
