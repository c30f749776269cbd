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
from ..cluster import Known
from ..evidence import AuditedBatches, BadBytes
from ..facts.epochs import EpochFacts
from ..facts.offsets import Holes
from ..facts.times import Retained
from ..facts.transactions import read_markers
from ..finding import Broken, Rule, Severity, rule

ERROR, WARNING = Severity.ERROR, Severity.WARNING
_EACH_OFFSET = "a record at each offset"
_SALVAGE = "`logstore salvage` copies all good batches to a new directory; a healthy replica is better still"
_STOPS = (
    "a broker loads it and consumers stop at it: seek behind it, or compare with a healthy replica, `logstore diff`"
)


@rule(ERROR, _SALVAGE)
def log_crc(bad: BadBytes) -> Iterator[Broken]:
    """A batch is not what its checksum says."""
    piece = bad.piece
    if piece.is_batch and not _is_torn(bad):
        yield bad.where, piece.expected, piece.found


@rule(ERROR, _SALVAGE)
def log_length(bad: BadBytes) -> Iterator[Broken]:
    """Bytes in the middle of a segment are no batch."""
    piece = bad.piece
    if not piece.is_batch and not _is_torn(bad):
        yield bad.where, piece.expected, f"{piece.found}; the next {piece.end - piece.start} bytes are no batch"


@rule(
    WARNING,
    "a broker cuts them off on a start after a crash; after a clean shutdown it writes behind them: `logstore repair`",
)
def log_tail(bad: BadBytes) -> Iterator[Broken]:
    """Bytes behind the last batch of a segment are no batch."""
    if _is_torn(bad) and not bad.is_unused:
        yield bad.where._replace(offset=None), "the end of the file", f"{bad.piece.end - bad.piece.start} bytes"


def _is_torn(bad: BadBytes) -> bool:
    """Return whether the bytes may be the beginning of a batch, at the end of the file."""
    piece = bad.piece
    return piece.is_tail and not (piece.is_batch and piece.end - piece.start >= HEADER_SIZE)


@rule(ERROR, _STOPS)
def log_magic(batches: AuditedBatches) -> Iterator[Broken]:
    """A batch of a magic that nobody knows."""
    magic = batches.table.magic
    return batches.broken(magic > MAGIC_V2, "magic 0 to 2", magic, magic)


@rule(ERROR, _STOPS)
def log_codec(batches: AuditedBatches) -> Iterator[Broken]:
    """A batch is compressed with a codec that Kafka does not know."""
    codec = batches.table.attributes & CODEC_MASK
    return batches.broken(codec > max(Codec), "codec 0 to 4", codec, codec)


@rule(
    ERROR,
    "consumers pass over offsets below those that they have read, and a broker that recovers the segment may empty it: "
    "compare with the other replicas, `logstore diff`; `logstore salvage` keeps all that a broker can load",
)
def log_offset_order(batches: AuditedBatches) -> Iterator[Broken]:
    """Offsets go back or come twice."""
    is_wrong = (batches.base < batches.before) | (batches.span < 1)
    return batches.broken(is_wrong, "an offset above {}", batches.before - 1, batches.base)


@rule(
    ERROR,
    "a broker that recovers the segment splits it or does not start: `logstore salvage` copies the batches into "
    "segments that hold them",
)
def log_offset_range(batches: AuditedBatches) -> Iterator[Broken]:
    """A batch has offsets that its segment cannot hold."""
    low, high = batches.segment.base_offset, batches.offset_max
    is_low = batches.base < low
    found = np.where(is_low, batches.base, batches.last)
    return batches.broken(is_low | (batches.last > high), f"offsets from {low} to {high}", found, found)


@rule(ERROR, "consumers may read it, a broker may refuse what comes next: find out what wrote it")
def log_header(batches: AuditedBatches) -> Iterator[Broken]:
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


@rule(ERROR, "its tombstones and markers may go too early: compare with the other replicas, `logstore diff`")
def log_delete_horizon(batches: AuditedBatches) -> Iterator[Broken]:
    """A batch has a delete horizon, as the cleaner gives it one, in a log that was never compacted."""
    has_horizon = batches.is_v2 & (batches.table.attributes & DELETE_HORIZON_FLAG != 0)
    has_horizon &= batches.last >= batches.evidence.cleaner_offset
    if has_horizon.any() and not batches.evidence.may_be_cleaned(batches.segment):
        yield from batches.broken(
            has_horizon, "no delete horizon", batches.base, batches.table.column(fields.BASE_TIMESTAMP)
        )


@rule(ERROR, _STOPS)
def log_record_count(batches: AuditedBatches) -> Iterator[Broken]:
    """A batch says it has more records than offsets."""
    count = batches.table.record_count
    is_wrong = batches.is_v2 & ((count < 0) | (count > batches.span))
    return batches.broken(is_wrong, "at most {} records", batches.span, count)


@rule(ERROR, "two leaders wrote: compare with the other replicas, `logstore diff`")
def log_leader_epoch(batches: AuditedBatches) -> Iterator[Broken]:
    """Leader epochs of batches go back."""
    is_wrong = batches.is_v2 & (batches.epochs < batches.epoch_before)
    return batches.broken(is_wrong, "epoch {} or above", batches.epoch_before, batches.epochs)


@rule(ERROR, "records are gone: compare with the other replicas, `logstore diff`")
def offsets_lost(facts: Holes | EpochFacts) -> Iterator[Broken]:
    """Offsets are missing in a log that was never compacted, and no damage tells why."""
    return _lost_behind_start(facts) if isinstance(facts, EpochFacts) else _lost_in(facts.batches)


def _lost_behind_start(epochs: EpochFacts) -> Iterator[Broken]:
    """Find epochs below the log start, which truncates them when it is raised (`truncateFromStart`)."""
    evidence, first, start = epochs.evidence, epochs.starts[:1], epochs.evidence.oldest_offset
    if evidence.is_start_known and not epochs.disordered and (first < start).any():
        if any(first[0] <= base_offset < start for base_offset in evidence.partition.deleted_base_offsets):
            return  # its last segments were deleted just before it was closed: epochs are flushed by another thread
        found = f"none at {start - int(first[0])} offsets up to {start - 1}, which are of its epochs"
        yield evidence.partition.where(epochs.path, offset=int(first[0])), _EACH_OFFSET, found


def _lost_in(batches: AuditedBatches) -> Iterator[Broken]:
    evidence = batches.evidence
    is_hole, is_thin = batches.is_hole, batches.is_thin
    is_hole = is_hole & (batches.base > evidence.cleaner_offset)
    is_thin = is_thin & (batches.last + 1 > evidence.cleaner_offset)
    if evidence.may_be_cleaned(batches.segment):
        if (is_hole | is_thin).any():
            evidence.leave_out("offsets-lost")
        return
    if evidence.is_cleaned_beyond is not Known.NO:
        is_hole = is_hole & (batches.before >= batches.segment.base_offset)  # those before are of cleaned segments
    for row in np.flatnonzero(is_thin).tolist():
        found = f"{int(batches.table.record_count[row])} of {int(batches.span[row])} records in the batch"
        yield batches.where(row), _EACH_OFFSET, found
    for row in np.flatnonzero(is_hole).tolist():
        start, end = int(batches.before[row]), int(batches.base[row])
        yield batches.where(row, start), _EACH_OFFSET, f"none at {end - start} offsets up to {end - 1}"


@rule(
    ERROR,
    "`logstore salvage` leaves out one that keeps a broker from starting; consumers pass over any other",
)
def log_marker(batches: AuditedBatches) -> Iterator[Broken]:
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
)
def timestamp_future(facts: Retained) -> Iterator[Broken]:
    """A timestamp is ahead of the clock by more than an hour: till then `retention.ms` removes nothing from there on.

    A broker logs "contains future timestamp(s), making it ineligible to be deleted" (`UnifiedLog`). Retention goes from
    the oldest segment on by the largest timestamp of each, and `message.timestamp.after.max.ms` refuses such records.
    """
    found = facts.ahead
    if found is not None:
        where = facts.partition.where(found.path, offset=found.largest_offset)
        yield where, "a timestamp up to an hour ahead of its file and of the clock", found.largest_timestamp


log_records = Rule(
    "log-records",
    ERROR,
    "A batch with the right checksum has records that are not what they say.",
    "consumers stop at it: seek behind its last offset, and find out which producer wrote it",
)

log_unreadable = Rule(
    "log-unreadable",
    ERROR,
    "The system refuses to read a file or a directory.",
    "look at the permissions and the disk; see the system's log",
)

log_size = Rule(
    "log-size",
    ERROR,
    "A segment is larger than a broker opens.",
    "`logstore salvage` copies its batches into segments that a broker opens",
)

internal_partition = Rule(
    "internal-partition",
    ERROR,
    "A record of an internal topic is in a partition where its coordinator does not look for it.",
    "was a directory renamed, or the number of partitions changed? put each partition back under its name",
)

internal_record = Rule(
    "internal-record",
    ERROR,
    "A record of an internal topic does not parse.",
    "a coordinator that loads it fails or skips it: what wrote it?",
)
