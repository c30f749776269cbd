"""All that a directory promises: batches that are what they say, and every file beside them true to the log.

    result = verify_partition_directory("data/orders-0")
    result = verify_directory("data")               all partitions, and the checkpoints around them
    result.findings                                 empty if nothing is wrong

Nothing is written, and a broker may be running.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from ..disk.directory import DataDirectoryFiles, list_data_directory
from ..errors import DataDirectoryError
from ..layout.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    DirectoryKind,
)
from . import rules
from .batch_checks import BatchChecks
from .checkpoint_checks import LogRange, checkpoint_findings, topic_id_findings
from .epoch_checks import EpochChecks
from .finding import Finding, Where
from .index_checks import OffsetIndexChecks, TimeIndexChecks
from .log_pass import Check, PassSize, run_checks
from .partition import Partition, Report, open_partition, open_partitions
from .producer_checks import ProducerChecks
from .stable_reading import read_until_stable

Checks = Callable[[Partition, Report], Sequence[Check]]


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at of one partition, and what was found; `log_end_offset` is exclusive."""

    partition: Partition
    size: PassSize
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class VerifiedDirectory:
    """Of a data directory: its partitions, and findings about what lies around them."""

    partitions: tuple[Verified, ...]
    findings: tuple[Finding, ...]

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Those around the partitions, then those of each."""
        return self.findings + tuple(finding for one in self.partitions for finding in one.findings)

    def only(self, findings: Collection[Finding]) -> VerifiedDirectory:
        """The same with no findings but these."""
        wanted = set(findings)
        partitions = (
            replace(one, findings=tuple(finding for finding in one.findings if finding in wanted))
            for one in self.partitions
        )
        return VerifiedDirectory(tuple(partitions), tuple(one for one in self.findings if one in wanted))


def verify_partition(partition: Partition, more: Checks = lambda partition, report: ()) -> Verified:
    """Read the whole log of one partition once, and prove everything beside it.

    Damage is a finding, and so is a file that cannot be read.

    Args:
        more: other checks for the same pass.
    """
    files = partition.files
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
        TimeIndexChecks(partition, report),
        ProducerChecks(partition, report),
        EpochChecks(partition, report),
        *more(partition, report),
    ]
    try:
        size = run_checks(partition, checks)
    except DataDirectoryError as error:
        report.add_error(rules.LOG_UNREADABLE, files.path, error, expected="a file that can be read")
        size = PassSize(log_end_offset=partition.first_offset)
    return Verified(partition, size, tuple(report.findings))


def verify_directory(path: str) -> VerifiedDirectory:
    """Verify all partitions of the data directory at `path`, and its checkpoints.

    Where something is wrong while the directory changes, all is read again, see `stable_reading`.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    found, findings = read_until_stable(path, lambda: verify_once(path), lambda one: one.all_findings)
    return found.only(findings)


def verify_partition_directory(path: str) -> Verified:
    """Verify the one partition whose directory is at `path`; as `verify_directory`.

    Raises:
        InvalidNameError: the name is no partition's.
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    found, findings = read_until_stable(path, lambda: verify_partition(open_partition(path)), lambda one: one.findings)
    return replace(found, findings=findings)


def verify_once(path: str, more: Checks = lambda partition, report: ()) -> VerifiedDirectory:
    """One reading of the data directory at `path`; `more` as for a partition.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    directory = list_data_directory(path)
    partitions = tuple(verify_partition(partition, more) for partition in open_partitions(path))
    ranges = {
        (one.partition.files.topic, one.partition.files.partition): _range(one)
        for one in partitions
        if one.partition.files.kind is DirectoryKind.LIVE
    }
    findings = _entry_findings(directory)
    findings += checkpoint_findings(directory, ranges)
    findings += topic_id_findings(list(directory.partitions))
    return VerifiedDirectory(partitions, tuple(findings))


def _range(one: Verified) -> LogRange:
    return LogRange(
        one.partition.files.segments[0].base_offset if one.partition.files.segments else 0,
        one.size.log_end_offset,
        not one.partition.surroundings.was_closed,
    )


def _entry_findings(directory: DataDirectoryFiles) -> list[Finding]:
    return [
        rules.DIRECTORY_ENTRY.finding(
            Where(directory.path if error.path is None else str(error.path)),
            expected="only directories of partitions",
            found=error.message,
        )
        for error in directory.errors
    ]
