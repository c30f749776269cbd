"""Table `findings`: the findings of `logstore audit`.

Tasks of partitions, internal topics included, find what concerns a partition alone, and leave its facts. One task for
each data directory finds what concerns several partitions (checkpoints, transactions, groups): it joins the facts that
are there (`left_facts`), and reads the other logs again, coordinators last. `logstore audit --spark` (`spread`) sends
facts to the driver instead, and reads each log once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logstore import clock
from logstore.audit.answers import finding_row
from logstore.audit.checks.directory import unlisted_entry
from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import crossing_findings
from logstore.audit.finding import Finding, findings_of
from logstore.audit.verify import Asked, PartitionFacts, verify_partition_directory
from logstore.disk.names import parent
from logstore.disk.system_errors import path_in
from logstore.rows.findings import FindingRow
from logstore.topics import transaction_state

from .directories import find_partitions
from .left_facts import LeftFacts
from .options import Options, TopicChoice
from .schemas import columns_of
from .seen import SeenFiles
from .spread import without_collection
from .tables import PartitionsTask, Table, batch_of, grouped

_TYPES = columns_of(FindingRow)
COLUMNS = {name: _TYPES[name] for name in ("rule", "severity", "path")} | _TYPES  # what queries ask for first
EVERYTHING = TopicChoice(is_everything=True)


@dataclass
class FindingsTask(PartitionsTask):
    """The findings of partitions alone.

    Attributes:
        query: the same for all tasks of a query, and for no other.
        joined: the data directories for which a task joins facts.
    """

    query: str
    joined: frozenset[str]


@dataclass
class DirectoryTask(PartitionsTask):
    """The findings of the data directory at `root` that concern several partitions, all of which the driver saw."""

    root: str
    query: str


@dataclass
class EntriesTask(InputPartition):
    """The findings about directories of chosen partitions that cannot be listed, and are in no `DirectoryTask`."""

    findings: tuple[Finding, ...]


def _plan(options: Options) -> list[InputPartition]:
    """Return tasks of the partitions that a broker loads, and tasks of the data directories around them."""
    choice = EVERYTHING if options.choice == TopicChoice() else options.choice
    found = find_partitions(options.paths, choice, is_strict=False)
    query = uuid.uuid4().hex
    groups = grouped(found.listed, options)
    roots = frozenset(one.path for one in found.roots) if options.choice == TopicChoice() else frozenset()
    tasks: list[InputPartition] = [FindingsTask(group, query, roots) for group in groups]
    seen_in: dict[str, list[SeenFiles]] = {path: [] for path in roots}
    for one in chain.from_iterable(groups):
        seen_in.get(parent(one.path), []).append(one)
    # the last ones: by then most facts are there
    tasks += [DirectoryTask(tuple(seen), path, query) for path, seen in seen_in.items()]
    refused = [(one.error, path_in(one.error) or "") for one in found.refused]
    findings = findings_of(unlisted_entry(error, path) for error, path in refused if parent(path) not in roots)
    if findings:
        tasks.append(EntriesTask(tuple(findings)))
    return tasks


def _read(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if isinstance(task, DirectoryTask):
        now_ms = clock.now_ms() if options.now_ms is None else options.now_ms
        with without_collection():
            found = _joined(task, now_ms)
        yield from _batches(found, schema)
        return
    if isinstance(task, EntriesTask):
        yield from _batches(task.findings, schema)
        return
    assert isinstance(task, FindingsTask)
    for root, group in groupby(task.partitions, lambda seen: parent(seen.path)):
        leaving = LeftFacts(root, task.query).leaving() if root in task.joined else nullcontext(list[PartitionFacts]())
        with leaving as left:
            for seen in group:
                seen.require()
                cluster = _cluster(root, task.query)
                facts = verify_partition_directory(seen.path, Asked.EVERYTHING, cluster=cluster)
                yield from _batches(facts.findings, schema)
                if facts.partition.files.topic != transaction_state.TOPIC:
                    facts.evidence.cluster = Cluster(root)  # which the other task has
                    left.append(facts)


def _joined(task: DirectoryTask, now_ms: int) -> Sequence[Finding]:
    left = LeftFacts(task.root, task.query).take()
    for seen in task.partitions:
        if seen.path not in left:
            seen.require()
    return crossing_findings(task.root, now_ms, left)


@lru_cache(maxsize=4)
def _cluster(path: str, query: str) -> Cluster:
    """Return the cluster around partitions: a worker replays its metadata log once for all tasks of a query."""
    return Cluster(path)


def _batches(findings: Sequence[Finding], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if findings:
        yield batch_of(list(map(finding_row, findings)), schema)


TABLE = Table(COLUMNS, None, _plan, _read)
