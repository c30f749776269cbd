"""All that a directory promises: batches that are what they say, and every file beside them true to the log.

    result = verify_partition_directory("data/orders-0")
    result = verify_directory("data")               all partitions, and the checkpoints around them
    result.findings                                 empty if nothing is wrong

Nothing is written, and a broker may be running.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ..disk.directory import DataDirectoryFiles, list_data_directory
from ..errors import DataDirectoryError
from ..layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from . import rules
from .batch_checks import BatchChecks
from .checkpoint_checks import LogRange, checkpoint_findings, topic_id_findings
from .epoch_checks import EpochChecks
from .evidence import Cluster, Evidence, Unasked
from .finding import Finding, Where
from .index_checks import OffsetIndexChecks, TimeIndexChecks
from .log_pass import Check, PassSize, run_checks
from .partition import Partition, Report, open_partition, open_partitions
from .producer_checks import ProducerChecks
from .stable_reading import read_until_stable

Checks = Callable[[Evidence, Report], Sequence[Check]]


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at of one partition, what was found, and which rules were not asked somewhere in it."""

    partition: Partition
    size: PassSize
    findings: tuple[Finding, ...]
    unasked: frozenset[Unasked] = frozenset()


@dataclass(frozen=True, slots=True)
class VerifiedDirectory:
    """Of a data directory: its partitions, and findings about what lies around them."""

    partitions: tuple[Verified, ...]
    findings: tuple[Finding, ...]

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Those around the partitions, then those of each."""
        return self.findings + tuple(finding for one in self.partitions for finding in one.findings)

    @property
    def unasked(self) -> dict[Unasked, int]:
        """Rules that were not asked, each with its reason and the number of partitions."""
        return Counter(each for one in self.partitions for each in one.unasked)

    def only(self, findings: Collection[Finding]) -> VerifiedDirectory:
        """The same with no findings but these."""
        wanted = set(findings)
        partitions = (
            replace(one, findings=tuple(finding for finding in one.findings if finding in wanted))
            for one in self.partitions
        )
        return VerifiedDirectory(tuple(partitions), tuple(one for one in self.findings if one in wanted))


def verify_partition(
    partition: Partition, more: Checks = lambda evidence, report: (), cluster: Cluster | None = None
) -> Verified:
    """Read the whole log of one partition once, and prove everything beside it.

    Damage is a finding, and so is a file that cannot be read.

    Args:
        more: other checks for the same pass.
        cluster: of the data directory around it, if it is at hand.
    """
    files, evidence = partition.files, Evidence(partition, cluster)
    report = Report(files.topic, files.partition)
    for error in files.errors:
        report.add_error(rules.DIRECTORY_ENTRY, files.path, error, expected="only files of Kafka's")
    for path in files.left_overs:
        if path.endswith((OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)):
            report.add(rules.ORPHAN_INDEX, path, expected="a .log beside it", found="none")
        if path.endswith(LOG_SUFFIX + SWAP_SUFFIX) and os.path.lexists(path):
            report.add(rules.SWAP_LEFT_OVER, path, expected="no cleaning under way", found="its output")
    checks: list[Check] = [
        BatchChecks(partition, report),
        OffsetIndexChecks(partition, report),
        TimeIndexChecks(evidence, report),
        ProducerChecks(evidence, report),
        EpochChecks(evidence, report),
        *more(evidence, report),
    ]
    try:
        size = run_checks(evidence, checks)
    except DataDirectoryError as error:
        report.add_error(rules.LOG_UNREADABLE, files.path, error, expected="a file that can be read")
        size = PassSize(log_end_offset=partition.first_offset)
    return Verified(partition, size, tuple(report.findings), frozenset(evidence.unasked))


def verify_directory(path: str) -> VerifiedDirectory:
    """Verify all partitions of the data directory at `path`, and its checkpoints.

    Where something is wrong while the directory changes, all is read again, see `stable_reading`.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    found, findings = read_until_stable(path, lambda: verify_once(path), lambda one: one.all_findings)
    return found.only(findings)


def verify_partition_directory(path: str, more: Checks = lambda evidence, report: ()) -> Verified:
    """Verify the one partition whose directory is at `path`; as `verify_directory`, `more` as `verify_partition`.

    Raises:
        InvalidNameError: the name is no partition's.
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    found, findings = read_until_stable(
        path, lambda: verify_partition(open_partition(path), more), lambda one: one.findings
    )
    return replace(found, findings=findings)


def verify_once(
    path: str, more: Checks = lambda evidence, report: (), cluster: Cluster | None = None
) -> VerifiedDirectory:
    """Read the data directory at `path` once; `more` and `cluster` as for a partition.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    cluster = cluster or Cluster(path)
    partitions = tuple(verify_partition(partition, more, cluster) for partition in open_partitions(path))
    around = findings_around(path, [(one.partition, one.size.log_end_offset) for one in partitions], cluster)
    return VerifiedDirectory(partitions, tuple(around))


def findings_around(path: str, ends: Iterable[tuple[Partition, int]], cluster: Cluster) -> list[Finding]:
    """Check what lies around the partitions of the data directory at `path`: entries, checkpoints, topic ids.

    Args:
        ends: the partitions, each with its log end offset.
    """
    directory = list_data_directory(path)
    ranges = {
        one.key: LogRange(
            one.files.segments[0].base_offset if one.files.segments else 0, end, not one.surroundings.was_closed
        )
        for one, end in ends
        if one.is_live
    }
    findings = _entry_findings(directory)
    findings += checkpoint_findings(directory, ranges)
    known_ids = {} if cluster.image is None else {one.name: one.topic_id for one in cluster.image.topics.values()}
    return findings + topic_id_findings(list(directory.partitions), known_ids)


def _entry_findings(directory: DataDirectoryFiles) -> list[Finding]:
    return [
        rules.DIRECTORY_ENTRY.finding(
            Where(directory.path if error.path is None else str(error.path)),
            expected="only directories of partitions",
            found=error.message,
        )
        for error in directory.errors
    ]
