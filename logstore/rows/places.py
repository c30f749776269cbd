"""Rows about topics, partitions, their segments, their indexes, and their producers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from .schema import Int32, TimeMs


class TopicRow(NamedTuple):
    """A topic of a data directory."""

    topic: Annotated[str, "name of the topic"]
    topic_id: Annotated[str | None, "its id, as Kafka writes it in base 64"]
    partitions: Annotated[tuple[Int32, ...], "numbers of the partitions here"]
    partition_count: Annotated[Int32 | None, "of all partitions, as the metadata says"]
    segment_count: Annotated[Int32, "how many segments, of directories that are stray or being moved too"]
    size: Annotated[int, "bytes of these"]
    config: Annotated[Mapping[str, str], "configurations of the topic"]


class PartitionRow(NamedTuple):
    """A partition of a data directory, with its bounds."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    topic_id: Annotated[str | None, "id of the topic, as Kafka writes it in base 64"]
    path: Annotated[str, "the directory"]
    segment_count: Annotated[Int32, "how many segments"]
    size: Annotated[int, "bytes of its log"]
    log_start_offset: Annotated[int, "the first offset that consumers get"]
    log_end_offset: Annotated[int, "behind its last batch"]
    last_stable_offset: Annotated[int, "read_committed consumers get what is below"]
    leader_epoch: Annotated[Int32 | None, "the newest of `leader-epoch-checkpoint`"]


class SegmentRow(NamedTuple):
    """A segment of a log; what only reading all of it tells is null unless that was asked for."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    path: Annotated[str, "the directory"]
    base_offset: Annotated[int, "first offset that it may hold"]
    end_offset: Annotated[int, "behind its last batch; the base offset without one"]
    size: Annotated[int, "bytes of the log"]
    batch_count: Annotated[int | None, "good batches"]
    record_count: Annotated[int | None, "with those of markers; magic 0 and 1: of entries"]
    control_count: Annotated[int | None, "batches with a marker"]
    transactional_count: Annotated[int | None, "batches of transactions"]
    damaged_size: Annotated[int | None, "bytes that are no good batch"]
    first_timestamp: Annotated[TimeMs | None, "of its first batch"]
    largest_timestamp: Annotated[TimeMs | None, "largest of its batches; without their contents by its index"]
    offset_entries: Annotated[Int32 | None, "entries of .index; null without the file"]
    time_entries: Annotated[Int32 | None, "entries of .timeindex"]
    aborted_entries: Annotated[Int32 | None, "entries of .txnindex"]
    codecs: Annotated[tuple[str, ...] | None, "of its batches"]


class ProducerRow(NamedTuple):
    """What a broker that starts knows of a producer of a log."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    path: Annotated[str, "the directory"]
    producer_id: Annotated[int, "its id"]
    producer_epoch: Annotated[Int32, "its epoch"]
    transactional_id: Annotated[str | None, "its transactional id"]
    first_sequence: Annotated[Int32 | None, "sequence of the first record of its last batch"]
    last_sequence: Annotated[Int32 | None, "sequence of its last record"]
    first_offset: Annotated[int | None, "offset of the first record of its last batch"]
    last_offset: Annotated[int | None, "offset of its last record"]
    last_timestamp: Annotated[TimeMs | None, "of its last batch"]
    coordinator_epoch: Annotated[Int32 | None, "of its last marker"]
    current_txn_first_offset: Annotated[int | None, "where its open transaction begins"]


class AbortedRow(NamedTuple):
    """An entry of a `.txnindex`: an aborted transaction."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    segment: Annotated[int, "base offset of the segment"]
    producer_id: Annotated[int, "of the producer"]
    first_offset: Annotated[int, "of the transaction"]
    last_offset: Annotated[int, "of its marker"]
    last_stable_offset: Annotated[int, "as the marker was written"]


class IndexEntryRow(NamedTuple):
    """An entry of an `.index` or a `.timeindex`, unchecked."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    segment: Annotated[int, "base offset of the segment"]
    index: Annotated[str, "offset or time"]  # type: ignore[assignment]  # a tuple has a method of that name
    entry: Annotated[Int32, "its number in the file, from 0"]
    offset: Annotated[int, "where it leads"]
    position: Annotated[int | None, "byte in the log, of an `.index`"]
    timestamp_ms: Annotated[int | None, "of a `.timeindex`, as it stands there"]
