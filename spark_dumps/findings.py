"""Table `findings`: the findings of `logstore audit`.

Tasks of partitions, internal topics included, find what concerns a partition alone. One task for each data directory
finds what concerns several partitions (checkpoints, transactions, groups), and reads their logs again. `logstore audit
--spark` (`session.audit_with_spark`) collects facts instead, and reads each log once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logstore import clock
from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import crossing_findings
from logstore.audit.finding import Finding
from logstore.audit.partition import Partition
from logstore.audit.verify import Asked, PartitionFacts, verify_partition, verify_partition_directory

from .directories import find_data_directories, find_partitions
from .options import Options, TopicChoice
from .schemas import columns_of
from .tables import PartitionsTask, Table, batch_of, grouped, row_of

COLUMNS = columns_of(
    "rule string, severity string, path string, topic string, partition int, position long, offset long, "
    "expected string, found string, advice string"
)
EVERYTHING = TopicChoice(is_everything=True)


@dataclass
class DirectoryTask(InputPartition):
    """The findings of one data directory that concern several partitions."""

    path: str


def facts_of(partition: Partition, cluster: Cluster, *, decodes: bool) -> PartitionFacts:
    """Return the facts of a partition, without its cluster, which the driver has and need not be sent."""
    facts = verify_partition(partition, cluster, Asked.EVERYTHING, decodes=decodes)
    facts.transactions.evidence.cluster = Cluster(os.path.dirname(partition.files.path))
    return facts


def _plan(options: Options) -> list[InputPartition]:
    """Return tasks of the partitions that a broker loads, and tasks of the data directories around them."""
    choice = EVERYTHING if options.choice == TopicChoice() else options.choice
    tasks: list[InputPartition] = [*grouped(find_partitions(options.paths, choice, is_strict=False))]
    if options.choice == TopicChoice():
        tasks += map(DirectoryTask, find_data_directories(options.paths))
    return tasks


def _read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if isinstance(task, DirectoryTask):
        now_ms = clock.now_ms() if options.now_ms is None else options.now_ms
        yield from _batches(crossing_findings(task.path, now_ms), schema)
        return
    assert isinstance(task, PartitionsTask)
    for one in task.partitions:
        yield from _batches(verify_partition_directory(one.files.path, Asked.EVERYTHING).findings, schema)


def _batches(findings: Sequence[Finding], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if findings:
        rows = [row_of(COLUMNS, one, one.where, severity=one.severity.value) for one in findings]
        yield batch_of(rows, schema)


TABLE = Table(COLUMNS, None, _plan, _read)
