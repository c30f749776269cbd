"""`logstore groups`, `topics`, `producers` and `segments`: tables of the content of a data directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from logstore.disk.names import file_name
from logstore.errors import DataDirectoryError, LogstoreError

from .paths import data_directory, place_of
from .rows import (
    PLACE,
    PLACE_BY_PATH,
    PLACE_OF_DIRECTORY,
    TOPIC,
    Row,
    RowField,
    RowType,
    members,
    print_rows,
    unless_missing,
)
from .verbs import Verb, note_directory, note_unreadable, path_argument, paths_argument

if TYPE_CHECKING:
    from logstore.audit.cluster import Cluster
    from logstore.audit.facts.coordinators import CoordinatorLog
    from logstore.audit.groups import GroupLag
    from logstore.audit.partition import Partition


def _record_lag(row: Row) -> str | None:
    return None if row["recordLag"] is None else f"{'' if row['recordLagIsExact'] else '≥ '}{row['recordLag']}"


def _partition_count(row: Row) -> int:
    return len(row["partitions"])


def _config_text(row: Row) -> str | None:
    return " ".join(f"{name}={value}" for name, value in sorted(row["config"].items())) or None


GROUP = RowType(
    "group",
    "A committed offset of a group.",
    (
        RowField("group", "string", "id of the group", "group"),
        *PLACE,
        RowField("offset", "integer", "the committed offset: the next one to read", "committed offset"),
        RowField("lag", "integer?", "offsets up to the end of the log; null without the partition", "lag"),
        RowField("recordLag", "integer?", "records that are still to be read", "records to read", _record_lag),
        RowField("recordLagIsExact", "boolean", "false: recordLag is the least that it can be"),
        RowField("producerId", "integer?", "of the transaction that committed it", "producer id", is_minor=True),
        RowField("commitTimestamp", "time?", "when it was committed", "committed at", is_minor=True),
    ),
)
TOPIC_ROW = RowType(
    "topic",
    "A topic.",
    (
        TOPIC._replace(heading="topic"),
        RowField("topicId", "string?", "its id", "topic id", is_minor=True),
        RowField("partitions", "array", "numbers of the partitions here", "partitions here", _partition_count),
        RowField("partitionCount", "integer?", "of all partitions, as the metadata says", "of all"),
        RowField("segmentCount", "integer", "how many segments", "segments"),
        RowField("size", "integer", "bytes of its logs", "bytes"),
        RowField("config", "object", "configurations of the topic", "configuration", _config_text, is_minor=True),
    ),
)
PRODUCER = RowType(
    "producer",
    "What a broker that starts knows of a producer of a log.",
    (
        *PLACE_OF_DIRECTORY,
        RowField("producerId", "integer", "its id", "producer id"),
        RowField("producerEpoch", "integer", "its epoch", "epoch"),
        RowField("transactionalId", "string?", "its transactional id", "transactional id"),
        RowField("lastSequence", "integer?", "sequence of its last record", "last sequence", is_minor=True),
        RowField("lastOffset", "integer?", "offset of its last record", "last offset", is_minor=True),
        RowField("lastTimestamp", "time?", "of its last batch", "last written", is_minor=True),
        RowField("coordinatorEpoch", "integer?", "of its last marker", "coordinator epoch", is_minor=True),
        RowField("currentTxnFirstOffset", "integer?", "where its open transaction begins", "open since offset"),
    ),
)
SEGMENT = RowType(
    "segment",
    "A segment of a log.",
    (
        *PLACE_BY_PATH,
        RowField("baseOffset", "integer", "first offset that it may hold", "base offset"),
        RowField("endOffset", "integer", "behind its last batch; the base offset without one", "end offset"),
        RowField("size", "integer", "bytes of the log", "bytes"),
        RowField("batchCount", "integer", "good batches", "batches"),
        RowField(
            "recordCount", "integer", "with those of markers; magic 0 and 1: of entries", "records", is_minor=True
        ),
        RowField("controlCount", "integer", "batches with a marker", "control", is_minor=True),
        RowField("transactionalCount", "integer", "batches of transactions", "transactional", is_minor=True),
        RowField("damagedSize", "integer", "bytes that are no good batch", "damaged"),
        RowField("firstTimestamp", "time?", "of its first batch", "first time", is_minor=True),
        RowField("largestTimestamp", "time?", "largest of its batches", "largest time", is_minor=True),
        RowField("offsetEntries", "integer?", "entries of .index; null without the file", ".index", is_minor=True),
        RowField("timeEntries", "integer?", "entries of .timeindex", ".timeindex", is_minor=True),
        RowField("abortedEntries", "integer?", "entries of .txnindex", ".txnindex", is_minor=True),
        RowField("codecs", "array", "of its batches", "codecs", lambda row: " ".join(row["codecs"]), is_minor=True),
    ),
)


@click.command("groups", cls=Verb, prints=[GROUP], example="logstore groups /var/lib/kafka/data")
@path_argument("directory", data_directory)
def groups(directory: str, form: str) -> int:
    """List the committed offsets of all groups in a data directory, and how far each is behind.

    Lag counts offsets, as other tools do: markers and aborted records let it stay above 0 for ever. Beside it stand the
    records that a read_committed consumer still gets; ≥ where the cleaner has thinned out the batch it stands in.
    """
    from logstore.audit.directory_audit import read_groups
    from logstore.audit.groups import group_lags

    found, findings = read_groups(directory)
    print_rows(GROUP, map(_group, group_lags(found)), form)
    note_directory(directory, findings)
    return 0


def _group(lag: GroupLag) -> Row:
    return members(lag, lag.commit) | {
        "group": lag.group_id,
        "recordLagIsExact": lag.is_exact,
        "producerId": unless_missing(lag.commit.producer_id),
    }


@click.command("topics", cls=Verb, prints=[TOPIC_ROW], example="logstore topics /var/lib/kafka/data")
@path_argument("directory", data_directory)
def topics(directory: str, form: str) -> int:
    """List the topics of a data directory: ids, partitions, sizes, and what was configured.

    Ids and configurations are of `__cluster_metadata`; without it the ids are those of `partition.metadata`.
    """
    from logstore.audit.cluster import Cluster
    from logstore.audit.partition import open_partitions
    from logstore.audit.rules import ask

    partitions = open_partitions(directory)
    cluster = Cluster(directory)
    by_topic: dict[str, list[Partition]] = {name: [] for name in cluster.image.topics}
    for partition in partitions:
        by_topic.setdefault(partition.files.topic, []).append(partition)
    print_rows(TOPIC_ROW, [_topic(name, found, cluster) for name, found in sorted(by_topic.items())], form)
    note_directory(directory, [finding for bad in cluster.unreadable for finding in ask(bad)])
    return 0


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
        "segmentCount": len(logs),
        "size": sum(unless_gone(segment_size, log) or 0 for log in logs),
        "config": cluster.image.topic_config(name),
    }


@click.command("producers", cls=Verb, prints=[PRODUCER], example="logstore producers /var/lib/kafka/data/orders-0")
@paths_argument(place_of)
def producers(paths: list[tuple[str, str | None]], form: str) -> int:
    """List the producers of data directories or partitions that a broker would know now, as it starts.

    They are those of the newest snapshot and of what follows, as `kafka-transactions.sh describe-producers` has them. A
    running broker also forgets one that has not written for `producer.id.expiration.ms`, a day by default.
    """
    from logstore.audit.directory_audit import read_coordinators
    from logstore.audit.partition import open_partitions

    rows: list[Row] = []
    for root, only in paths:
        log, findings = read_coordinators(root)
        for partition in open_partitions(root):
            if only in (None, file_name(partition.files.path)):
                try:
                    rows += _producers(partition, log)
                except LogstoreError as error:
                    note_unreadable(error)
        note_directory(root, findings)
    print_rows(PRODUCER, rows, form)
    return 0


def _producers(partition: Partition, log: CoordinatorLog) -> Iterator[Row]:
    from logstore.view.partition_reader import PartitionReader

    reader = PartitionReader(partition.files.path, log_start_offset=partition.surroundings.log_start_offset or 0)
    if reader.problem is not None:
        note_unreadable(reader.problem)
    for producer in sorted(reader.producers or (), key=lambda one: one.producer_id):
        last = producer.batches[-1] if producer.batches else None
        yield members(partition.files, producer) | {
            "transactionalId": log.owners.get(producer.producer_id),
            "lastSequence": None if last is None else last.last_sequence,
            "lastOffset": None if last is None else last.last_offset,
            "coordinatorEpoch": unless_missing(producer.coordinator_epoch),
        }


@click.command("segments", cls=Verb, prints=[SEGMENT], example="logstore segments '/var/lib/kafka/data/orders-*'")
@paths_argument()
def segments(paths: list[tuple[str, bool]], form: str) -> int:
    """List the segments of data directories or partitions: offsets, sizes, times, index entries."""
    from logstore.audit.partition import open_partition, open_partitions

    rows: list[Row] = []
    for path, is_partition in paths:
        partitions = [open_partition(path)] if is_partition else open_partitions(path)
        for partition in partitions:
            try:
                rows += _segments(partition)
            except DataDirectoryError as error:
                note_unreadable(error)
        if is_partition:
            for unlisted in partitions[0].files.errors:
                note_unreadable(unlisted)
        else:
            note_directory(path)
    print_rows(SEGMENT, rows, form)
    return 0


def _segments(partition: Partition) -> Iterator[Row]:
    from logstore.audit.evidence import Evidence
    from logstore.audit.log_pass import follow
    from logstore.audit.segment_table import SegmentTable

    evidence = Evidence(partition)
    table = SegmentTable(evidence)
    follow(evidence, [table])
    for row in table.rows:
        yield members(partition.files, row) | {"codecs": sorted(row.codecs)}
