"""What a data directory holds, as rows: topics, segments, producers, groups. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any

from ..disk.directory import PartitionFiles, list_data_directory
from ..disk.mapped import segment_size
from ..disk.names import child, file_name, normal_path, parent, path_text
from ..disk.recognition import names_partition, require_data_directory
from ..disk.side_files import topic_id_of
from ..errors import DataDirectoryError, LogstoreError
from ..folds.producer_state import ProducerEntry
from ..layout.file_names import DirectoryKind, directory_name, parse_partition_directory
from ..rows.groups import GroupRow
from ..rows.listing import Rows
from ..rows.places import ProducerRow, SegmentRow, TopicRow
from ..rows.schema import row_of, unless_missing
from ..topics import consumer_offsets
from ..view.walk import Advance
from .checks.internal_records import metadata_problems
from .cluster import Cluster
from .directory_audit import read_coordinators, read_groups
from .evidence import Evidence
from .facts.coordinators import CoordinatorLog
from .finding import Finding, findings_of
from .groups import GroupLag, group_lags
from .log_pass import follow
from .partition import Partition, open_partition, open_partitions, unless_gone
from .segment_table import SegmentFigures, SegmentTable, end_figures
from .stable_reading import read_until_stable
from .tails import follow_tail

Path = str | PathLike[str]
_COUNTED = ("batch_count", "record_count", "control_count", "transactional_count", "damaged_size", "codecs")


def unlisted(path: str) -> list[LogstoreError]:
    """Return the errors of listing the data directory at `path` and its partitions."""
    directory = list_data_directory(path)
    return [*directory.errors, *(error for partition in directory.partitions for error in partition.errors)]


def _unlisted_in(cluster: Cluster) -> Iterator[LogstoreError]:
    for root in cluster.roots:
        yield from unlisted(root)


def data_directory_at(path: Path) -> str:
    """Return the path of a data directory; raise UsageError for a partition and for anything else."""
    require_data_directory(path_text(path))
    return path_text(path)


def place_at(path: Path) -> tuple[str, str | None]:
    """Return a data directory with None, or the one around a partition with the partition's name; both absolute."""
    absolute = normal_path(path_text(path))
    return (parent(absolute), file_name(absolute)) if names_partition(path_text(path)) else (absolute, None)


def not_looked_at(path: str) -> DataDirectoryError:
    """Return the error of a partition's directory of which nothing is known: a broker has set it aside, say."""
    named = parse_partition_directory(file_name(path))
    kind = DirectoryKind.LIVE if named is None else named.kind
    if kind is DirectoryKind.LIVE:
        return DataDirectoryError("The partition cannot be looked at", path=path, advice="see `logstore verify`")
    return DataDirectoryError(
        "The partition cannot be looked at: a broker has set its directory aside",
        path=path,
        expected="a directory that is named topic-partition",
        found=f"one whose name ends in {kind.value}",
        advice="`logstore salvage` gives a copy of it the live name",
    )


def groups(path: Path, *, beside: Iterable[Path] = (), advance: Advance = lambda size: None) -> Rows[GroupRow]:
    """List the committed offsets of all groups in a data directory, and how far each is behind.

    Reads `__consumer_offsets`, and other logs from the smallest committed offset or the newest snapshot on. Groups
    whose partition of `__consumer_offsets` is in another directory are not listed; a text among `problems` says so.

    Args:
        beside: the other data directories of a broker that has several, which count as one.
        advance: told of the bytes that are read.

    Raises:
        UsageError: `path` is no data directory, or one `beside` it is not of the same broker.
        DataDirectoryError: it cannot be read.
    """
    found, cluster, findings = read_groups(data_directory_at(path), advance, list(map(data_directory_at, beside)))
    problems = [*findings, *_unlisted_in(cluster), *_elsewhere(cluster)]
    return Rows(GroupRow, list(map(_group, group_lags(found))), problems)


def _elsewhere(cluster: Cluster) -> Iterator[str]:
    """Yield how many partitions have groups that are not listed: those of other brokers, or of other `log.dirs`."""
    topic = consumer_offsets.TOPIC
    names = [directory_name(topic, number) for number in range(cluster.partition_count(topic) or 0)]
    absent = sum(not cluster.has_directory(name) for name in names)
    if absent:
        here = "these directories" if cluster.other_roots else "this directory"
        yield f"{absent} of {len(names)} partitions of {topic} are not in {here}: their groups are not listed"


def _group(lag: GroupLag) -> GroupRow:
    return row_of(
        GroupRow,
        lag,
        lag.commit,
        record_lag_is_exact=lag.is_exact,
        producer_id=unless_missing(lag.commit.producer_id),
        commit_timestamp=unless_missing(lag.commit.commit_timestamp),
        pending_offset=lag.pending and lag.pending.offset,
        pending_producer_id=lag.pending and lag.pending.producer_id,
    )


def topics(path: Path, *, beside: Iterable[Path] = ()) -> Rows[TopicRow]:
    """List the topics of a data directory: ids, partitions, sizes, and what was configured.

    Ids and configurations are of `__cluster_metadata`; without it the ids are those of `partition.metadata`.

    Args:
        beside: as of `groups`.

    Raises:
        UsageError: `path` is no data directory, or one `beside` it is not of the same broker.
        DataDirectoryError: it cannot be read.
    """
    root, others = data_directory_at(path), list(map(data_directory_at, beside))

    def read() -> tuple[list[TopicRow], list[Finding], list[LogstoreError]]:
        cluster = Cluster(root, others)
        cluster.require_one_broker()
        problems = list(_unlisted_in(cluster))
        partitions = [partition for one in cluster.roots for partition in open_partitions(one)]
        return _topics(partitions, cluster, problems), findings_of(metadata_problems(cluster)), problems

    (rows, _, problems), told = read_until_stable(root, read, lambda found: found[1], others)
    return Rows(TopicRow, rows, [*problems, *told])


def _topics(partitions: Sequence[Partition], cluster: Cluster, problems: list[LogstoreError]) -> list[TopicRow]:
    by_topic: dict[str, list[Partition]] = {name: [] for name in cluster.image.topics}
    for partition in partitions:
        by_topic.setdefault(partition.files.topic, []).append(partition)
    return [_topic(name, found, cluster, problems) for name, found in sorted(by_topic.items())]


def _topic(name: str, partitions: Sequence[Partition], cluster: Cluster, problems: list[LogstoreError]) -> TopicRow:
    """Return a topic as a row; add to `problems` why one of its partitions is not counted."""
    topic, size = cluster.topic(name), 0
    topic_id = None if topic is None else topic.topic_id
    for one in partitions:
        try:
            topic_id = topic_id or topic_id_of(one.files.path)
            size += sum(unless_gone(segment_size, segment.log) or 0 for segment in one.files.segments)
        except LogstoreError as error:
            problems.append(error)
    return TopicRow(
        topic=name,
        topic_id=topic_id,
        partitions=tuple(sorted(one.files.partition for one in partitions if one.is_live)),
        partition_count=None if topic is None else len(topic.partitions),
        segment_count=sum(len(one.files.segments) for one in partitions),
        size=size,
        config=cluster.image.topic_config(name),
    )


def producers(path: Path, *, beside: Iterable[Path] = (), advance: Advance = lambda size: None) -> Rows[ProducerRow]:
    """List the producers of a data directory or partition that a broker would know now, as it starts.

    They are those of the newest snapshot and of what follows, as `kafka-transactions.sh describe-producers` has them. A
    running broker also forgets one that has not written for `producer.id.expiration.ms`, a day by default. Reads
    `__transaction_state`, and other logs from the newest snapshot on.

    Args:
        beside: other data directories, of which coordinators in those of the same broker are asked for names.
        advance: told of the bytes that are read.

    Raises:
        UsageError: `path` is neither a data directory nor a partition.
        DataDirectoryError: it cannot be read.
    """
    root, only = place_at(path)
    log, cluster, findings = read_coordinators(root, advance, list(map(data_directory_at, beside)))
    rows, problems = list[ProducerRow](), list[LogstoreError]()
    chosen = [partition for partition in open_partitions(root) if only in (None, file_name(partition.files.path))]
    if only is not None and not chosen:
        raise not_looked_at(child(root, only))
    for partition in chosen:
        try:
            rows += _producers(partition, cluster, log, problems, advance)
        except LogstoreError as error:
            problems.append(error)
    return Rows(ProducerRow, rows, [*problems, *findings, *unlisted(root)])


def _producers(
    partition: Partition, cluster: Cluster, log: CoordinatorLog, problems: list[LogstoreError], advance: Advance
) -> Iterator[ProducerRow]:
    """Yield the producers of a partition; add to `problems` what keeps its log from being followed to its end."""
    facts, producers = follow_tail(partition, cluster, advance=advance)
    if facts.error is not None:
        raise facts.error
    problems += producers.problems
    for producer in sorted(producers.state, key=lambda producer: producer.producer_id):
        yield producer_row(partition.files, producer, log.owners.get(producer.producer_id))


def producer_row(files: PartitionFiles, producer: ProducerEntry, transactional_id: str | None) -> ProducerRow:
    """Return a producer of a partition as a row."""
    last = producer.batches[-1] if producer.batches else None
    return row_of(
        ProducerRow,
        files,
        producer,
        transactional_id=transactional_id,
        first_sequence=last and last.first_sequence,
        last_sequence=last and last.last_sequence,
        first_offset=last and last.first_offset,
        last_offset=last and last.last_offset,
        last_timestamp=unless_missing(producer.last_timestamp),
        coordinator_epoch=unless_missing(producer.coordinator_epoch),
    )


def segments(path: Path, *, contents: bool = False, advance: Advance = lambda size: None) -> Rows[SegmentRow]:
    """List the segments of a data directory or partition: offsets, sizes, times, index entries.

    Args:
        contents: read all batches, to count them and their records; else only indexes, and the last batches of each
            segment, and what is counted is None.
        advance: told of the bytes of segments that are done.

    Raises:
        UsageError: `path` is neither a data directory nor a partition.
        DataDirectoryError: it cannot be read.
    """
    is_partition = names_partition(path_text(path))
    partitions = [open_partition(path_text(path))] if is_partition else open_partitions(path_text(path))
    rows, problems = list[SegmentRow](), list[LogstoreError]()
    for partition in partitions:
        try:
            rows += (_read_segments if contents else _listed_segments)(partition, problems, advance)
        except DataDirectoryError as error:
            problems.append(error)
    listed = partitions[0].files.errors if is_partition else unlisted(path_text(path))
    return Rows(SegmentRow, rows, [*problems, *listed])


def _read_segments(partition: Partition, problems: list[LogstoreError], advance: Advance) -> Iterator[SegmentRow]:
    evidence = Evidence(partition)
    table = SegmentTable(evidence)
    follow(evidence, [table], advance=advance)
    for figures in table.rows:
        yield _segment(partition, figures, codecs=tuple(sorted(figures.codecs)))


def _listed_segments(partition: Partition, problems: list[LogstoreError], advance: Advance) -> Iterator[SegmentRow]:
    """Yield what the ends of segments tell; add damage there to `problems`."""
    for segment in partition.files.segments:
        figures = end_figures(partition, segment, problems)
        if figures is not None:
            advance(figures.size)
            yield _segment(partition, figures, **dict.fromkeys(_COUNTED))


def _segment(partition: Partition, figures: SegmentFigures, **values: Any) -> SegmentRow:
    return row_of(
        SegmentRow,
        partition.files,
        figures,
        first_timestamp=unless_missing(figures.first_timestamp),
        largest_timestamp=unless_missing(figures.largest_timestamp),
        **values,
    )
