"""`logstore groups`, `topics`, `producers` and `segments`: tables of the content of a data directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from logstore.rows import listing
from logstore.rows.groups import GroupRow
from logstore.rows.places import ProducerRow, SegmentRow, TopicRow

from .paths import place_of, whole_directory
from .progress import Progress, log_size
from .rows import DIRECTORY_COLUMN, PARTITION_COLUMN, Column, Row, RowType, TypedRows, VerbAnswer, by_directory
from .verbs import Verb, code_of_problems, paths_argument


def _record_lag(row: Row) -> str | None:
    return None if row["recordLag"] is None else f"{'' if row['recordLagIsExact'] else '≥ '}{row['recordLag']}"


def _config_text(row: Row) -> str | None:
    return " ".join(f"{name}={value}" for name, value in sorted(row["config"].items())) or None


def _minor(heading: str, cell: Callable[[Row], Any] | None = None) -> Column:
    return Column(heading, cell, is_minor=True)


GROUP = RowType.of(
    GroupRow,
    "group",
    {
        "group_id": "group",
        "partition": PARTITION_COLUMN,
        "offset": "committed offset",
        "lag": "lag",
        "record_lag": Column("records to read", _record_lag),
        "producer_id": _minor("producer id"),
        "commit_timestamp": _minor("committed at"),
        "pending_offset": _minor("pending offset"),
        "pending_producer_id": _minor("by producer"),
    },
)
TOPIC = RowType.of(
    TopicRow,
    "topic",
    {
        "topic": "topic",
        "topic_id": _minor("topic id"),
        "partitions": Column("partitions here", lambda row: len(row["partitions"])),
        "partition_count": "of all",
        "segment_count": "segments",
        "size": "bytes",
        "config": _minor("configuration", _config_text),
    },
)
PRODUCER = RowType.of(
    ProducerRow,
    "producer",
    {
        "partition": DIRECTORY_COLUMN,
        "producer_id": "producer id",
        "producer_epoch": "epoch",
        "transactional_id": "transactional id",
        "last_sequence": _minor("last sequence"),
        "last_offset": _minor("last offset"),
        "last_timestamp": _minor("last written"),
        "coordinator_epoch": _minor("coordinator epoch"),
        "current_txn_first_offset": "open since offset",
    },
)
SEGMENT = RowType.of(
    SegmentRow,
    "segment",
    {
        "path": "partition",
        "base_offset": "base offset",
        "end_offset": "end offset",
        "size": "bytes",
        "batch_count": "batches",
        "record_count": _minor("records"),
        "control_count": _minor("control"),
        "transactional_count": _minor("transactional"),
        "damaged_size": "damaged",
        "first_timestamp": _minor("first time"),
        "largest_timestamp": _minor("largest time"),
        "offset_entries": _minor(".index"),
        "time_entries": _minor(".timeindex"),
        "aborted_entries": _minor(".txnindex"),
        "codecs": _minor("codecs", lambda row: " ".join(row["codecs"] or ()) or None),
    },
)


def _answer(of: RowType, *listed: listing.Rows[Any]) -> VerbAnswer:
    """Return the rows of several places as one table, with what could not be read."""
    problems = list(dict.fromkeys(problem for rows in listed for problem in rows.problems))
    return VerbAnswer(
        [TypedRows(of, [row for rows in listed for row in rows])], code_of_problems(problems), notes=problems
    )


def _progress(verb: str, paths: Sequence[tuple[str, bool]]) -> Progress:
    """Return the progress over the logs of some paths, of which most is left out."""
    return Progress(verb, lambda: sum(log_size(path, is_partition=one) for path, one in paths), has_rate=False)


_directories = paths_argument(whole_directory)


@click.command("groups", cls=Verb, prints=[GROUP], example="logstore groups /var/lib/kafka/data")
@_directories
def groups(paths: list[str]) -> VerbAnswer:
    """List the committed offsets of all groups in a data directory, and how far each is behind.

    Lag counts offsets, as other tools do: markers and aborted records let it stay above 0 for ever, and it is negative
    beyond the end of a log that was cut or made anew, where the group starts by auto.offset.reset. Beside it stand the
    records that a read_committed consumer still gets; ≥ where the cleaner has thinned out the batch it stands in.

    A pending offset is of an open transaction: until that ends, a consumer of read_committed is told no committed
    offset and gets nothing. See `logstore txns list`.

    Read: `__consumer_offsets`, and other logs from the smallest committed offset or the newest snapshot on. Damage
    elsewhere is not seen; see `logstore verify`.

    Name all data directories of a broker that has several: a group's log and those that it reads may be in two.
    """
    from logstore.audit import listings

    with _progress("groups", [(path, False) for path in paths]) as progress:
        listed = listings.groups(paths[0], beside=paths[1:], advance=progress.advance)
    return _answer(GROUP, listed)


@click.command("topics", cls=Verb, prints=[TOPIC], example="logstore topics /var/lib/kafka/data")
@_directories
def topics(paths: list[str]) -> VerbAnswer:
    """List the topics of a data directory: ids, partitions, sizes, and what was configured.

    Ids and configurations are of `__cluster_metadata`; without it the ids are those of `partition.metadata`.

    Name all data directories of a broker that has several: a topic is in all of them, and the metadata in one.
    """
    from logstore.audit import listings

    return _answer(TOPIC, listings.topics(paths[0], beside=paths[1:]))


@click.command("producers", cls=Verb, prints=[PRODUCER], example="logstore producers /var/lib/kafka/data/orders-0")
@paths_argument()
def producers(paths: list[tuple[str, bool]]) -> VerbAnswer:
    """List the producers of data directories or partitions that a broker would know now, as it starts.

    They are those of the newest snapshot and of what follows, as `kafka-transactions.sh describe-producers` has them. A
    running broker also forgets one that has not written for `producer.id.expiration.ms`, a day by default.

    Read: `__transaction_state`, and other logs from the newest snapshot on. Damage elsewhere is not seen; see `logstore
    verify`.

    Name all data directories of a broker that has several: its coordinators may be in another one.
    """
    from logstore.audit import listings

    places = [(path, place_of(path, is_one)[0]) for path, is_one in paths]
    roots = {root for _, root in places}
    with _progress("producers", paths) as progress:
        listed = [listings.producers(path, beside=roots - {root}, advance=progress.advance) for path, root in places]
    answer = _answer(PRODUCER, *listed)
    return answer._replace(lines=by_directory(*answer.rows))


@click.command("segments", cls=Verb, prints=[SEGMENT], example="logstore segments '/var/lib/kafka/data/orders-*'")
@click.option("--contents", is_flag=True, help="Read all batches, and count them, their records, and damage.")
@paths_argument()
def segments(paths: list[tuple[str, bool]], contents: bool) -> VerbAnswer:
    """List the segments of data directories or partitions: offsets, sizes, times, index entries.

    Read: the first batch of each segment, and the last ones. Damage elsewhere is not seen; see --contents, and
    `logstore verify`.
    """
    from logstore.audit import listings

    with _progress("segments", paths) as progress:
        listed = [listings.segments(path, contents=contents, advance=progress.advance) for path, _ in paths]
    return _answer(SEGMENT, *listed)
