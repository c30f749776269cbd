"""Table `findings`: what `logstore audit` says, partition by partition, and once for each data directory.

What concerns a partition alone is found in tasks of their own, internal topics too. What partitions say of each other
(checkpoints, transactions across partitions, groups) is one task for each data directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logstore import clock
from logstore.audit import directory_audit, group_rules, rules
from logstore.audit.checkpoint_checks import LogRange, checkpoint_findings, topic_id_findings
from logstore.audit.finding import Finding, Where
from logstore.audit.log_pass import Check
from logstore.audit.offset_ranges import OffsetRanges
from logstore.audit.partition import Partition, Report, open_partition, open_partitions
from logstore.audit.sequence_checks import SequenceChecks
from logstore.audit.verify import verify_partition
from logstore.disk.directory import list_data_directory
from logstore.layout.file_names import DirectoryKind

from .directories import find_data_directories, find_partitions
from .options import READ_UNCOMMITTED, Options, TopicChoice
from .ranges import find_bounds
from .schemas import columns_of
from .tables import PartitionsTask, Row, Table, batch_of, grouped

COLUMNS = columns_of(
    "rule string, severity string, path string, topic string, partition int, position long, offset long, "
    "expected string, found string, advice string"
)
EVERYTHING = TopicChoice(is_everything=True)


@dataclass
class DirectoryTask(InputPartition):
    """What partitions of one data directory say of each other."""

    path: str


def _plan(options: Options) -> list[InputPartition]:
    """The partitions of all kinds that a broker would load, and the data directories around them."""
    choice = EVERYTHING if options.choice == TopicChoice() else options.choice
    tasks: list[InputPartition] = [*grouped(find_partitions(options.paths, choice, is_strict=False))]
    if options.choice == TopicChoice():
        tasks += map(DirectoryTask, find_data_directories(options.paths))
    return tasks


def _read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if isinstance(task, DirectoryTask):
        now_ms = clock.now_ms() if options.now_ms is None else options.now_ms
        yield from _batches(directory_findings(task.path, now_ms), schema)
        return
    assert isinstance(task, PartitionsTask)
    for one in task.partitions:
        yield from _batches(partition_findings(open_partition(one.files.path)), schema)


def partition_findings(partition: Partition) -> Sequence[Finding]:
    """What is wrong with one partition, by itself."""

    def checks(partition: Partition, report: Report) -> list[Check]:
        return [OffsetRanges(partition, report), SequenceChecks(partition, report)]

    return verify_partition(partition, checks).findings


def directory_findings(path: str, now_ms: int) -> list[Finding]:
    """What partitions of a data directory say of each other.

    Args:
        now_ms: the time that ages of transactions are counted to.
    """
    directory = list_data_directory(path)
    findings = [
        rules.DIRECTORY_ENTRY.finding(
            Where(str(error.path or path)), expected="only directories of partitions", found=error.message
        )
        for error in directory.errors
    ]
    was_closed = {one.name: one.surroundings.was_closed for one in open_partitions(path)}
    ranges = {}
    for one in find_partitions([path], EVERYTHING, is_strict=False):
        bounds = find_bounds(one, READ_UNCOMMITTED)
        base = bounds.segments[0].files.base_offset if bounds.segments else 0
        is_open = not was_closed.get(f"{one.topic}-{one.partition}", False)
        ranges[one.key] = LogRange(base, bounds.log_end_offset, is_open)
    findings += checkpoint_findings(directory, ranges)
    findings += topic_id_findings([files for files in directory.partitions if files.kind is DirectoryKind.LIVE])
    transactions, more = directory_audit.read_transactions(path, now_ms)
    findings += [*more, *directory_audit.transaction_findings(transactions, now_ms)]
    groups, more = directory_audit.read_groups(path)
    return [*findings, *more, *group_rules.group_findings(groups.log, groups.views)]


def _batches(findings: Sequence[Finding], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if findings:
        yield batch_of(list(map(_row, findings)), schema)


def _row(finding: Finding) -> Row:
    where = finding.where._asdict()
    told = {"expected": finding.expected, "found": finding.found, "advice": finding.advice}
    return {"rule": finding.rule, "severity": finding.severity.value, **where, **told}


TABLE = Table(COLUMNS, None, _plan, _read)
