"""Result of a recovery: a partition's offsets, segments, producers and repairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import DataDirectoryError
from ...folds.producer_state import ProducerEntry
from ...layout.batch import NO_SEQUENCE
from ..segment.log_segment import LogSegment
from ..segment.writable_folder import Repair


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """One recovered segment.

    Attributes:
        size: bytes of the `.log`.
        next_offset: behind its last batch; None if its index leads nowhere, which a clean start does not check.
        aborted_transactions: (producer id, first offset, last offset, last stable offset) of each.
    """

    base_offset: int
    size: int
    next_offset: int | None
    index_entry_count: int
    time_index_entry_count: int
    aborted_transactions: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """One recovered partition, in the state in which a broker with one replica would continue.

    Attributes:
        topic_id: of `partition.metadata`; None without the file.
        high_watermark: the log end offset, as nothing is replicated.
        recovery_point: the first offset that is not known to be durable.
        leader_epochs: (epoch, start offset) of each.
        producers: by ascending id.
        repairs: changes in order.
    """

    topic: str
    partition: int
    path: str
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    high_watermark: int
    recovery_point: int
    segments: tuple[RecoveredSegment, ...]
    leader_epochs: tuple[tuple[int, int], ...]
    producers: tuple[ProducerEntry, ...]
    repairs: tuple[Repair, ...]


def describe_segment(segment: LogSegment) -> RecoveredSegment:
    """Return the description of a segment."""
    index = segment.transaction_index
    columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
    return RecoveredSegment(
        base_offset=segment.base_offset,
        size=segment.size,
        next_offset=_next_offset(segment),
        index_entry_count=segment.offset_index.entry_count,
        time_index_entry_count=segment.time_index.entry_count,
        aborted_transactions=tuple(zip(*(column.tolist() for column in columns), strict=True)),
    )


def _next_offset(segment: LogSegment) -> int | None:
    try:
        return segment.next_offset()
    except (ValueError, DataDirectoryError):
        return None  # an index that a clean start does not check leads nowhere


def as_json(log: RecoveredLog) -> dict[str, Any]:
    """Return `log` as plain values, under the names of Kafka's own classes and tools."""
    return {
        "topicId": log.topic_id,
        "logStartOffset": log.log_start_offset,
        "logEndOffset": log.log_end_offset,
        "lastStableOffset": log.last_stable_offset,
        "highWatermark": log.high_watermark,
        "recoveryPoint": log.recovery_point,
        "segments": [_segment_json(segment) for segment in log.segments],
        "leaderEpochs": [list(entry) for entry in log.leader_epochs],
        "producers": [_producer_json(producer) for producer in log.producers],
        "repaired": [repair._asdict() for repair in log.repairs],
    }


def _segment_json(segment: RecoveredSegment) -> dict[str, Any]:
    return {
        "base": segment.base_offset,
        "bytes": segment.size,
        "next": segment.next_offset,
        "indexEntries": segment.index_entry_count,
        "timeIndexEntries": segment.time_index_entry_count,
        "abortedTxns": [list(transaction) for transaction in segment.aborted_transactions],
    }


def _producer_json(producer: ProducerEntry) -> dict[str, Any]:
    first_offset = producer.current_txn_first_offset
    return {
        "producerId": producer.producer_id,
        "producerEpoch": producer.producer_epoch,
        "lastSequence": producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
        "lastTimestamp": producer.last_timestamp,
        "coordinatorEpoch": producer.coordinator_epoch,
        "currentTxnStartOffset": -1 if first_offset is None else first_offset,
    }
