"""`logstore groups`, `topics`, `producers` and `segments`: tables of what a data directory holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from .audit_options import Row, directory_argument, exit_code_of, listing, tell, told_unreadable
from .paths import data_directory, input_paths, partition_in
from .timestamps import utc_text

if TYPE_CHECKING:
    from logstore.audit.evidence import Cluster
    from logstore.audit.facts.coordinators import CoordinatorLog
    from logstore.audit.groups import GroupLag
    from logstore.audit.partition import Partition

_GROUP_COLUMNS = ("group", "partition", "committed offset", "lag", "records to read", "producer id", "committed at")
_TOPIC_COLUMNS = ("topic", "topic id", "partitions here", "of all", "segments", "bytes", "configuration")
_PRODUCER_COLUMNS = (
    *("partition", "producer id", "epoch", "transactional id", "last sequence", "last offset", "last written"),
    *("coordinator epoch", "open since offset"),
)
_SEGMENT_COLUMNS = (
    *("partition", "base offset", "end offset", "bytes", "batches", "records", "control", "transactional", "damaged"),
    *("first time", "largest time", ".index", ".timeindex", ".txnindex", "codecs"),
)


def _group_cells(lag: Row) -> tuple[Any, ...]:
    records = None if lag["recordLag"] is None else f"{'' if lag['recordLagIsExact'] else '≥ '}{lag['recordLag']}"
    partition = f"{lag['topic']}-{lag['partition']}"
    committed_at = utc_text(lag["commitTimestamp"])
    return lag["group"], partition, lag["offset"], lag["lag"], records, lag["producerId"], committed_at


def _cells(**shown: Callable[[Any], Any]) -> Callable[[Row], list[Any]]:
    """Return what makes the cells of a row: its values, some of them shown in a way of their own."""
    return lambda row: [shown[name](value) if name in shown else value for name, value in row.items()]


def _config_text(config: dict[str, str]) -> str | None:
    return " ".join(f"{name}={value}" for name, value in sorted(config.items())) or None


@click.command("groups")
@directory_argument
@listing(_GROUP_COLUMNS, _group_cells)
def groups(directory: str) -> tuple[list[Row], int]:
    """List the committed offsets of all groups in a data DIRECTORY, and how far each is behind.

    Lag counts offsets, as other tools do: markers and aborted records let it stay above 0 for ever. Beside it stand the
    records that a read_committed consumer still gets; ≥ where the cleaner has thinned out the batch it stands in.
    """
    from logstore.audit.directory_audit import read_groups
    from logstore.audit.groups import group_lags

    found, findings = read_groups(data_directory(directory))
    return [_group(lag) for lag in group_lags(found)], exit_code_of(directory, findings)


def _group(lag: GroupLag) -> Row:
    return {
        "group": lag.group_id,
        "topic": lag.topic,
        "partition": lag.partition,
        "offset": lag.commit.offset,
        "lag": lag.lag,
        "recordLag": lag.record_lag,
        "recordLagIsExact": lag.is_exact,
        "producerId": lag.commit.producer_id,
        "commitTimestamp": lag.commit.commit_timestamp,
    }


@click.command("topics")
@directory_argument
@listing(_TOPIC_COLUMNS, _cells(config=_config_text, partitions=len))
def topics(directory: str) -> tuple[list[Row], int]:
    """List the topics of a data DIRECTORY: ids, partitions, sizes, and what was configured.

    Ids and configurations are of `__cluster_metadata`; without it the ids are those of `partition.metadata`.
    """
    from logstore.audit.evidence import Cluster
    from logstore.audit.partition import open_partitions
    from logstore.audit.rules import ask

    partitions = open_partitions(data_directory(directory))
    cluster = Cluster(directory)
    known = [] if cluster.image is None else cluster.image.topics
    by_topic: dict[str, list[Partition]] = {name: [] for name in known}
    for partition in partitions:
        by_topic.setdefault(partition.files.topic, []).append(partition)
    rows = [_topic(name, found, cluster) for name, found in sorted(by_topic.items())]
    return rows, exit_code_of(directory, [finding for bad in cluster.unreadable for finding in ask(bad)])


def _topic(name: str, partitions: list[Partition], cluster: Cluster) -> Row:
    from logstore.audit.partition import unless_gone
    from logstore.disk.mapped import segment_size
    from logstore.disk.side_files import topic_id_of

    topic = cluster.topic(name)
    local_ids = (topic_id for one in partitions if (topic_id := topic_id_of(one.files.path)) is not None)
    logs = [segment.log for one in partitions for segment in one.files.segments]
    return {
        "topic": name,
        "topicId": next(local_ids, None) if topic is None else topic.topic_id,
        "partitions": [one.files.partition for one in partitions],
        "partitionCount": None if topic is None else len(topic.partitions),
        "segments": len(logs),
        "bytes": sum(unless_gone(segment_size, log) or 0 for log in logs),
        "config": {} if cluster.image is None else cluster.image.topic_config(name),
    }


@click.command("producers")
@click.argument("path", type=click.Path())
@listing(_PRODUCER_COLUMNS, _cells(lastTimestamp=utc_text))
def producers(path: str) -> tuple[list[Row], int]:
    """List the producers of PATH, a data directory or one of its partitions, as the logs themselves tell them."""
    from logstore.audit.directory_audit import read_coordinators
    from logstore.audit.partition import open_partitions

    root, only = partition_in(path)
    log, findings = read_coordinators(root)
    looked_at = [partition for partition in open_partitions(root) if only in (None, partition.name)]
    rows = [producer for partition in looked_at for producer in _producers(partition, log)]
    return rows, exit_code_of(root, findings)


def _producers(partition: Partition, log: CoordinatorLog) -> Iterator[Row]:
    from logstore.audit.evidence import Evidence
    from logstore.audit.facts.producers import ProducerFacts
    from logstore.audit.log_pass import follow

    evidence = Evidence(partition)
    facts = ProducerFacts(evidence, lambda facts: None)
    follow(evidence, [facts])
    for producer in sorted(facts.state, key=lambda one: one.producer_id):
        last = producer.batches[-1] if producer.batches else None
        yield {
            "partition": partition.name,
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "transactionalId": log.owners.get(producer.producer_id),
            "lastSequence": None if last is None else last.last_sequence,
            "lastOffset": None if last is None else last.last_offset,
            "lastTimestamp": producer.last_timestamp,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": producer.current_txn_first_offset,
        }


@click.command("segments")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@listing(_SEGMENT_COLUMNS, _cells(first_timestamp=utc_text, largest_timestamp=utc_text, codecs=" ".join))
def segments(paths: tuple[str, ...]) -> tuple[list[Row], int]:
    """List the segments of each PATH, a data directory, a partition or a glob: offsets, sizes, times, index entries."""
    from logstore.audit.evidence import Evidence
    from logstore.audit.log_pass import follow
    from logstore.audit.partition import open_partition, open_partitions
    from logstore.audit.segment_table import SegmentTable

    rows: list[Row] = []
    code = 0
    for path, is_partition in input_paths(paths, tell):
        for partition in [open_partition(path)] if is_partition else open_partitions(path):
            table = SegmentTable()
            follow(Evidence(partition), [table])
            for row in table.rows:
                values = dataclasses.asdict(row) | {"codecs": sorted(row.codecs)}
                rows.append({"partition": partition.files.path, **values})
            if is_partition:
                code = max(code, told_unreadable(partition.files.errors))
        if not is_partition:
            code = max(code, exit_code_of(path))
    return rows, code
