"""Rules about batches and records by themselves (`LogValidator`, `LogSegment`, `DefaultRecordBatch`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_fields import NO_EPOCH, has_producer_problem
from ...columns.batch_table import BoolArray
from ...kernels.scan import batches as fields
from ...layout.batch import (
    ALL_FLAGS,
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    MAGIC_V2,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from ...layout.file_names import METADATA_TOPIC
from ...model import Codec
from ...topics import INTERNAL_TOPICS, transaction_state
from ...view.walk import Damage
from ..cluster import Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..facts.times import Retained
from ..facts.transactions import read_markers
from ..finding import CLEANED, Broken, Place, Rule, Severity, Silence, rule
from ..partition import Partition

ERROR, WARNING = Severity.ERROR, Severity.WARNING
GROWING, DAMAGED, UNSETTLED = Silence.GROWING, Silence.DAMAGED, Silence.UNSETTLED
EACH_OFFSET = "a record at each offset"
_SALVAGE = "`logstore salvage` copies all good batches to a new directory; a healthy replica is better still"
_STOPS = (
    "a broker loads it and consumers stop at it: seek behind it, or compare with a healthy replica, `logstore diff`"
)


log_crc = Rule("log-crc", ERROR, "A batch is not what its checksum says.", _SALVAGE, (GROWING,))
log_length = Rule("log-length", ERROR, "Bytes in the middle of a segment are no batch.", _SALVAGE)
log_tail = Rule(
    "log-tail",
    WARNING,
    "Bytes behind the last batch of a segment are no batch.",
    "a broker cuts them off on a start after a crash; after a clean shutdown it writes behind them, or does not start "
    "on zeros: `logstore repair`",
    (GROWING,),
)


class DamagedBytes(Follower):
    """Tells of bytes that are no good batch, of all with `is_all`, else of those that may have been whole batches.

    Those at the end may be of a batch that is being written.
    """

    def __init__(self, evidence: Evidence, *, is_all: bool) -> None:
        self._evidence, self._is_all = evidence, is_all
        self._tail: list[Broken] = []

    def skip(self, piece: Damage) -> list[Broken]:
        evidence = self._evidence
        if evidence.is_unused or not (self._is_all or evidence.may_hide_batches(piece)):
            return []
        assert evidence.segment is not None
        found = damage(evidence.partition, evidence.segment.log, piece)
        if piece.is_tail:
            self._tail.append(found)
        return [] if piece.is_tail else [found]

    def end(self) -> list[Broken]:
        tail, self._tail = self._tail, []
        return [one._replace(silence=GROWING) for one in tail] if self._evidence.is_growing else tail


def damage(partition: Partition, path: str, piece: Damage) -> Broken:
    """Return what bytes that are no good batch break."""
    where, count = partition.where(path, piece.start, piece.offset), piece.end - piece.start
    if piece.is_tail and not (piece.is_batch and count >= HEADER_SIZE):  # it may be the beginning of a batch
        return log_tail.at(where._replace(offset=None), "the end of the file", f"{count} bytes")
    if piece.is_batch:
        return log_crc.at(where, piece.expected, piece.found)
    return log_length.at(where, piece.expected, f"{piece.found}; the next {count} bytes are no batch")


@rule(ERROR, _STOPS)
def log_magic(batches: AuditedBatches) -> Iterator[Place]:
    """A batch of a magic that nobody knows."""
    magic = batches.table.magic
    return batches.broken(magic > MAGIC_V2, "magic 0 to 2", magic, magic)


@rule(ERROR, _STOPS)
def log_codec(batches: AuditedBatches) -> Iterator[Place]:
    """A batch is compressed with a codec that Kafka does not know."""
    codec = batches.table.attributes & CODEC_MASK
    return batches.broken(codec > max(Codec), "codec 0 to 4", codec, codec)


@rule(
    ERROR,
    "consumers pass over offsets below those that they have read, and a broker that recovers the segment may empty it: "
    "compare with the other replicas, `logstore diff`; `logstore salvage` keeps all that a broker can load",
    unless=(Silence.COPIED,),
)
def log_offset_order(batches: AuditedBatches) -> Iterator[Place]:
    """Offsets go back or come twice."""
    is_wrong = (batches.base < batches.before) | (batches.span < 1)
    return batches.broken(is_wrong, "an offset above {}", batches.before - 1, batches.base)


@rule(
    ERROR,
    "a broker that recovers the segment splits it or does not start: `logstore salvage` copies the batches into "
    "segments that hold them",
)
def log_offset_range(batches: AuditedBatches) -> Iterator[Place]:
    """A batch has offsets that its segment cannot hold."""
    low, high = batches.segment.base_offset, batches.offset_max
    is_low = batches.base < low
    found = np.where(is_low, batches.base, batches.last)
    return batches.broken(is_low | (batches.last > high), f"offsets from {low} to {high}", found, found)


@rule(ERROR, "consumers may read it, a broker may refuse what comes next: find out what wrote it")
def log_header(batches: AuditedBatches) -> Iterator[Place]:
    """A batch with the right checksum has fields in its header that no client and no broker writes.

    `MemoryRecordsBuilder.validateProducerState` refuses some, `LogValidator.validateBatch` others of a client.
    """
    table, sequences = batches.table, batches.table.column(fields.BASE_SEQUENCE)
    is_control = table.attributes & CONTROL_FLAG != 0  # `log-marker` tells of one without a producer
    is_wrong = has_producer_problem(table.matrix) & ~(is_control & (table.producer_id == NO_PRODUCER_ID))
    is_wrong |= (table.producer_id < NO_PRODUCER_ID) | (table.producer_epoch < NO_EPOCH) | (sequences < NO_SEQUENCE)
    is_wrong |= table.attributes & ~ALL_FLAGS != 0
    is_wrong |= _is_no_brokers(batches)
    is_unusual = is_control & batches.is_producers
    is_late = table.column(fields.BASE_TIMESTAMP) != table.max_timestamp  # of its one record, but for the flagged ones
    is_late &= table.attributes & (DELETE_HORIZON_FLAG | LOG_APPEND_TIME_FLAG) == 0
    is_unusual &= (sequences != NO_SEQUENCE) | (table.attributes & CODEC_MASK != 0) | is_late
    if is_unusual.any():
        markers, _ = read_markers(batches)
        is_wrong[markers] |= is_unusual[markers]
    for row in np.flatnonzero(batches.is_v2 & is_wrong).tolist():
        found = f"producer {table.producer_id[row]} of epoch {table.producer_epoch[row]}, sequence {sequences[row]}"
        found += f", timestamps {table.column(fields.BASE_TIMESTAMP)[row]} to {table.max_timestamp[row]}"
        expected = "known attributes, a whole producer or none, and of a marker one timestamp"
        yield batches.where(row), expected, f"attributes {table.attributes[row]:#x}, {found}"


def _is_no_brokers(batches: AuditedBatches) -> BoolArray:
    """Return which batches of an internal topic have fields that no coordinator and no controller writes.

    A client of a user's topic may leave anything beside the producer id -1.
    """
    table, topic = batches.table, batches.partition.files.topic
    if topic not in (METADATA_TOPIC, *INTERNAL_TOPICS):
        return np.zeros(len(table), np.bool_)
    # coordinators of groups and shares write 0 since Kafka 4.0 (`CoordinatorRuntime`)
    highest = NO_SEQUENCE if topic in (METADATA_TOPIC, transaction_state.TOPIC) else 0
    is_wrong: BoolArray = (table.producer_epoch != NO_EPOCH) | (table.column(fields.BASE_SEQUENCE) > highest)
    is_wrong &= ~batches.is_producers
    if topic == METADATA_TOPIC:
        is_wrong |= batches.is_producers | (table.attributes & ~CONTROL_FLAG != 0)
    return is_wrong


@rule(
    ERROR,
    "its tombstones and markers may go too early: compare with the other replicas, `logstore diff`",
    unless=CLEANED,
)
def log_delete_horizon(batches: AuditedBatches) -> Iterator[Place]:
    """A batch has a delete horizon, as the cleaner gives it one, in a log that was never compacted."""
    has_horizon = batches.is_v2 & (batches.table.attributes & DELETE_HORIZON_FLAG != 0)
    has_horizon &= batches.last >= batches.evidence.cleaner_offset
    if batches.evidence.may_be_cleaned(batches.segment):
        batches.evidence.note(log_delete_horizon, batches.evidence.cleaned, has_horizon)
    else:
        yield from batches.broken(
            has_horizon, "no delete horizon", batches.base, batches.table.column(fields.BASE_TIMESTAMP)
        )


@rule(ERROR, _STOPS)
def log_record_count(batches: AuditedBatches) -> Iterator[Place]:
    """A batch says it has more records than offsets."""
    count = batches.table.record_count
    is_wrong = batches.is_v2 & ((count < 0) | (count > batches.span))
    return batches.broken(is_wrong, "at most {} records", batches.span, count)


@rule(ERROR, "two leaders wrote: compare with the other replicas, `logstore diff`")
def log_leader_epoch(batches: AuditedBatches) -> Iterator[Place]:
    """Leader epochs of batches go back."""
    is_wrong = batches.is_v2 & (batches.epochs < batches.epoch_before)
    return batches.broken(is_wrong, "epoch {} or above", batches.epoch_before, batches.epochs)


@rule(
    ERROR,
    "records are gone: compare with the other replicas, `logstore diff`",
    unless=(*CLEANED, Silence.START_UNKNOWN),
)
def offsets_lost(batches: AuditedBatches) -> Iterator[Place]:
    """Offsets are missing in a log that was never compacted, and no damage tells why.

    `log.cleanup.policy=compact` in the brokers' `server.properties` is known only by a topic that was cleaned here.
    """
    evidence = batches.evidence
    is_hole, is_thin = batches.is_hole, batches.is_thin
    is_hole = is_hole & (batches.base > evidence.cleaner_offset)
    is_thin = is_thin & (batches.last + 1 > evidence.cleaner_offset)
    if evidence.may_be_cleaned(batches.segment):
        evidence.note(offsets_lost, evidence.cleaned, is_hole | is_thin)
        return
    if evidence.is_cleaned_beyond is not Known.NO:
        is_before = batches.before < batches.segment.base_offset  # those are of cleaned segments
        evidence.note(offsets_lost, evidence.cleaned, is_hole & is_before)
        is_hole = is_hole & ~is_before
    for row in np.flatnonzero(is_thin).tolist():
        found = f"{int(batches.table.record_count[row])} of {int(batches.span[row])} records in the batch"
        yield batches.where(row), EACH_OFFSET, found
    for row in np.flatnonzero(is_hole).tolist():
        start, end = int(batches.before[row]), int(batches.base[row])
        yield batches.where(row, start), EACH_OFFSET, f"none at {end - start} offsets up to {end - 1}"


@rule(
    ERROR,
    "`logstore salvage` leaves out one that keeps a broker from starting; consumers pass over any other",
)
def log_marker(batches: AuditedBatches) -> Iterator[Place]:
    """A control batch is no transaction marker: consumers pass over what is in it.

    Of one that has a producer id the producers' fold tells what is wrong.
    """
    table = batches.table
    is_control = batches.is_v2 & (table.attributes & CONTROL_FLAG != 0) & (table.record_count != 0)
    is_wrong = is_control & (table.producer_id == NO_PRODUCER_ID) & (batches.partition.files.topic != METADATA_TOPIC)
    for row in np.flatnonzero(is_wrong).tolist():
        yield batches.where(row), "a marker with a producer id", "a control batch without"


@rule(
    WARNING,
    "set the clock or the unit of its producer right; `kafka-delete-records.sh` removes the records before their time",
    unless=(Silence.METADATA_MISSING,),
)
def timestamp_future(facts: Retained) -> Iterator[Place]:
    """A timestamp is ahead of the clock by more than an hour: till then `retention.ms` removes nothing from there on.

    A broker logs "contains future timestamp(s), making it ineligible to be deleted" (`UnifiedLog`). Retention goes from
    the oldest segment on by the largest timestamp of each, and `message.timestamp.after.max.ms` refuses such records.
    """
    found = facts.ahead
    if found is not None:
        where = facts.partition.where(found.path, offset=found.largest_offset)
        expected = "a timestamp up to an hour ahead of its file and of the clock"
        yield where, expected, found.largest_timestamp, facts.silence


_OF_EACH = (
    log_magic,
    log_codec,
    log_offset_order,
    log_offset_range,
    log_header,
    log_delete_horizon,
    log_record_count,
    log_leader_epoch,
    log_marker,
    offsets_lost,
)


class BatchHeaders(Follower):
    """Asks the rules about batches."""

    def step(self, batches: AuditedBatches) -> Iterator[Broken]:
        for one in _OF_EACH:
            yield from one(batches)
