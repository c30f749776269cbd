"""A recovered partition as the oracle tells it: plain values, under the names of Kafka's own classes and tools."""

from __future__ import annotations

from typing import Any

from logstore.errors import DataDirectoryError
from logstore.folds.producer_state import ProducerEntry
from logstore.layout.batch import NO_SEQUENCE
from logstore.log.segment.log_segment import LogSegment
from logstore.log.state import LogState


def as_json(log: LogState) -> dict[str, Any]:
    """Return `log` as plain values, under the names of Kafka's own classes and tools."""
    return {
        "topicId": log.topic_id,
        "logStartOffset": log.log_start_offset,
        "logEndOffset": log.log_end_offset,
        "lastStableOffset": log.last_stable_offset,
        "highWatermark": log.high_watermark,
        "recoveryPoint": log.recovery_point,
        "segments": [_segment_json(segment) for segment in log.segments],
        "leaderEpochs": [list(entry) for entry in log.epochs.entries],
        "producers": [
            _producer_json(producer) for producer in sorted(log.producers.state, key=lambda each: each.producer_id)
        ],
    }


def _segment_json(segment: LogSegment) -> dict[str, Any]:
    index = segment.transaction_index
    columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
    return {
        "base": segment.base_offset,
        "bytes": segment.size,
        "next": _next_offset(segment),
        "indexEntries": segment.offset_index.entry_count,
        "timeIndexEntries": segment.time_index.entry_count,
        "abortedTxns": [list(entry) for entry in zip(*(column.tolist() for column in columns), strict=True)],
    }


def _next_offset(segment: LogSegment) -> int | None:
    """The offset behind the last batch; None if the index leads nowhere, which a clean start does not check."""
    try:
        return segment.next_offset()
    except (ValueError, DataDirectoryError):
        return None


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
